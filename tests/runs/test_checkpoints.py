import os

import keras
import numpy as np
import pytest

from tf_transformer.errors import InputError
from tf_transformer.runs import checkpoints
from tf_transformer.runs.checkpoints import CorruptCheckpointError

VALUES = {"a/kernel": np.arange(6, dtype="float32").reshape(2, 3), "seed/0": np.array([7, 11], "uint32")}


def variables(values):
    return {name: keras.Variable(value, dtype=value.dtype.name) for name, value in values.items()}


@pytest.fixture
def saved(tmp_path):
    return checkpoints.save(tmp_path / "checkpoints", 12, variables(VALUES), {"epoch": 3})


def test_what_is_saved_comes_back(saved):
    assert saved.name == "step-00000012.npz"
    assert checkpoints.state_of(saved) == {"step": 12, "epoch": 3}
    fresh = variables({name: np.zeros_like(value) for name, value in VALUES.items()})
    checkpoints.restore(saved, fresh)
    for name, value in VALUES.items():
        np.testing.assert_array_equal(fresh[name].numpy(), value)


def test_nothing_else_is_left_behind(saved):
    assert os.listdir(saved.parent) == [saved.name]


def test_they_are_listed_by_step(saved):
    for step in (5, 100):
        checkpoints.save(saved.parent, step, variables(VALUES), {})
    assert [checkpoints.state_of(path)["step"] for path in checkpoints.all_of(saved.parent)] == [5, 12, 100]
    assert checkpoints.all_of(saved.parent / "none") == []


@pytest.mark.parametrize("place", [0.1, 0.5, 0.9])
def test_a_flipped_bit_is_detected(saved, place):
    file = saved
    raw = bytearray(file.read_bytes())
    data = raw.index(VALUES["a/kernel"].tobytes())
    raw[data + int(place * VALUES["a/kernel"].nbytes)] ^= 4
    file.write_bytes(raw)
    fresh = variables(VALUES)
    with pytest.raises(CorruptCheckpointError, match=r"step-00000012.npz is damaged"):
        checkpoints.restore(saved, fresh)


@pytest.mark.parametrize("share", [0, 0.3, 0.95])
def test_a_truncated_file_is_detected(saved, share):
    file = saved
    file.write_bytes(file.read_bytes()[: int(share * file.stat().st_size)])
    with pytest.raises(CorruptCheckpointError, match="damaged"):
        checkpoints.restore(saved, variables(VALUES))


@pytest.mark.long
@pytest.mark.parametrize("size", [6, 5_003], ids=["small", "large"])
def test_any_flipped_bit_is_detected_or_harmless(tmp_path, size):
    """Every bit, but for those within the numbers of a large array: NumPy's own reader reads such ones in parts."""
    values = VALUES | {"a/kernel": np.arange(size, dtype="float32")}
    saved = checkpoints.write(tmp_path, 12, values.items(), {"epoch": 3})
    raw = saved.read_bytes()
    numbers = values["a/kernel"].tobytes()
    start = raw.index(numbers)
    detected = 0
    for place in range(8 * len(raw)):
        if start + 8 <= place // 8 < start + len(numbers) - 8:
            continue
        flipped = bytearray(raw)
        flipped[place // 8] ^= 1 << place % 8
        saved.write_bytes(flipped)
        try:
            found, state = checkpoints.read(saved, values), checkpoints.state_of(saved)
        except CorruptCheckpointError:
            detected += 1
            continue
        assert state == {"step": 12, "epoch": 3}
        assert found.keys() == values.keys()
        for name, value in values.items():
            np.testing.assert_array_equal(found[name], value)
    assert detected > 1_000


def test_a_validation_that_is_no_number_is_never_the_best(tmp_path):
    for step, loss in ((1, 3.0), (2, float("nan")), (3, 2.0), (4, float("inf")), (5, float("-inf")), (6, None)):
        checkpoints.write(tmp_path, step, VALUES.items(), {"val_loss": loss, "val_bleu": loss})
    for best_by, expected in (("loss", [3, 1]), ("bleu", [1, 3])):
        found = checkpoints.best(checkpoints.all_of(tmp_path), best_by)
        assert [checkpoints.state_of(path)["step"] for path in found] == expected


def test_nothing_is_assigned_from_a_damaged_checkpoint(saved):
    fresh = variables({name: value + 1 for name, value in VALUES.items()})
    saved.write_bytes(b"")
    with pytest.raises(CorruptCheckpointError):
        checkpoints.restore(saved, fresh)
    np.testing.assert_array_equal(fresh["a/kernel"].numpy(), VALUES["a/kernel"] + 1)


def test_another_model_is_refused(saved):
    with pytest.raises(InputError, match="holds no b/kernel"):
        checkpoints.restore(saved, variables({"b/kernel": VALUES["a/kernel"]}))
    with pytest.raises(InputError, match=r"\(3, 2\) here, \(2, 3\) there"):
        checkpoints.restore(saved, variables({"a/kernel": VALUES["a/kernel"].T}))
