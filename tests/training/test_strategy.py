import json

import numpy as np
import pytest
import tensorflow as tf

from tf_transformer.data import Batches, TokenPairs
from tf_transformer.errors import InputError
from tf_transformer.training.strategy import distribute, is_chief, make_strategy, workers

LENGTHS = np.array([[2, 3], [3, 2], [5, 5], [1, 2], [4, 4]], np.uint16)
PAIRS = TokenPairs.of(np.arange(10, 10 + LENGTHS.sum()).astype(np.uint16), LENGTHS)


def test_the_default_is_mirrored_on_one_device_here():
    strategy = make_strategy()
    assert type(strategy).__name__ == "MirroredStrategy"
    assert strategy.num_replicas_in_sync == 1
    assert is_chief(strategy)


def test_one_replica_gets_the_batches_as_they_are():
    batches = Batches(PAIRS, 16, seed=3)
    for given, expected in zip(distribute(batches, make_strategy()), batches.dataset(), strict=True):
        for one, other in zip(tf.nest.flatten(given), tf.nest.flatten(expected), strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.long
def test_every_replica_gets_its_part_of_every_batch(in_fork):
    found = in_fork(
        """
        import tensorflow as tf
        from tf_transformer.training.strategy import distribute, make_strategy
        strategy = make_strategy("mirrored", 3)
        import numpy as np
        from tf_transformer.data import Batches, TokenPairs
        lengths = np.array([[2, 3], [3, 2], [5, 5], [1, 2], [4, 4]], np.uint16)
        pairs = TokenPairs.of(np.arange(10, 10 + lengths.sum()).astype(np.uint16), lengths)
        for multiple_of in (1, 3):
            batches = Batches(pairs, 16, multiple_of=multiple_of, seed=3)
            for given, whole in zip(distribute(batches, strategy), batches.dataset(), strict=True):
                for one, other in zip(tf.nest.flatten(given), tf.nest.flatten(whole), strict=True):
                    parts = [part.numpy() for part in strategy.experimental_local_results(one)]
                    np.testing.assert_array_equal(np.concatenate(parts)[:len(other)], other)
                    assert len(parts) == 3
                    rows = [len(part) for part in parts]
                    assert rows == [rows[0]] * 3 if multiple_of == 3 else sum(rows) == max(3, len(other))
                    print(max(rows) - min(rows))
        """
    )
    assert {*found.splitlines()} == {"0", "1"}


def test_one_machine_is_not_led_astray_by_a_cluster(monkeypatch):
    for config in ("", json.dumps({"cluster": {"worker": ["a:1", "b:2"]}, "task": {"type": "worker", "index": 1}})):
        monkeypatch.setenv("TF_CONFIG", config)
        strategy = make_strategy("mirrored")
        assert is_chief(strategy)
        assert not workers(strategy)


def test_one_device():
    assert type(make_strategy("one-device")).__name__ == "OneDeviceStrategy"
    with pytest.raises(InputError, match="uses exactly one device. Received: 2 devices"):
        make_strategy("one-device", 2)


@pytest.mark.parametrize(
    "config",
    [
        None,
        "worker 0 of 2",
        "{}",
        json.dumps({"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": 1}}),
        json.dumps({"cluster": {"worker": ["a:1"]}, "task": {"type": "chief", "index": 0}}),
    ],
)
def test_several_machines_need_a_tf_config(config, monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    if config is not None:
        monkeypatch.setenv("TF_CONFIG", config)
    with pytest.raises(InputError, match="TF_CONFIG must name the machines and which one this is"):
        make_strategy("multiworker")


def test_nonsense_is_refused():
    with pytest.raises(InputError, match=r"mirored.*mirrored"):
        make_strategy("mirored")
    with pytest.raises(InputError, match="at least 1. Received: 0"):
        make_strategy("mirrored", 0)


def test_devices_cannot_change_once_tensorflow_is_used():
    make_strategy()
    with pytest.raises(InputError, match="before TensorFlow is first used. Received: 3 devices"):
        make_strategy("mirrored", 3)
