import os

import keras
import numpy as np
import pytest

from tf_transformer import checkpoints
from tf_transformer.checkpoints import CorruptCheckpointError
from tf_transformer.errors import InputError

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


def test_any_flipped_bit_is_detected_or_harmless(saved):
    """Of a small file every bit."""
    raw = saved.read_bytes()
    detected = 0
    for place in range(8 * len(raw)):
        flipped = bytearray(raw)
        flipped[place // 8] ^= 1 << place % 8
        saved.write_bytes(flipped)
        try:
            values, state = checkpoints.read(saved, VALUES), checkpoints.state_of(saved)
        except CorruptCheckpointError:
            detected += 1
            continue
        assert state == {"step": 12, "epoch": 3}
        assert values.keys() == VALUES.keys()
        for name, value in VALUES.items():
            np.testing.assert_array_equal(values[name], value)
    assert detected > len(raw)


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
