import json

import pytest
import tensorflow as tf

from tf_transformer.errors import InputError
from tf_transformer.training.strategy import distribute, is_chief, make_strategy, workers


def test_the_default_is_mirrored_on_one_device_here():
    strategy = make_strategy()
    assert type(strategy).__name__ == "MirroredStrategy"
    assert strategy.num_replicas_in_sync == 1
    assert is_chief(strategy)


def test_one_replica_gets_the_batches_as_they_are():
    batches = [[1, 2, 3], [5, 7], [11]]
    dataset = tf.data.Dataset.from_generator(lambda: iter(batches), output_signature=tf.TensorSpec([None], tf.int64))
    assert [batch.numpy().tolist() for batch in distribute(dataset, make_strategy())] == batches


def test_every_replica_gets_its_part_of_every_batch(in_fresh_process):
    found = in_fresh_process(
        """
        import tensorflow as tf
        from tf_transformer.training.strategy import distribute, make_strategy
        strategy = make_strategy("mirrored", 3)
        dataset = tf.data.Dataset.from_tensor_slices([6, 3]).map(lambda n: (tf.range(n), tf.range(n) * 10))
        for batch in distribute(dataset, strategy):
            print([[part.numpy().tolist() for part in strategy.experimental_local_results(side)] for side in batch])
        """
    )
    first = [[[0, 1], [2, 3], [4, 5]], [[0, 10], [20, 30], [40, 50]]]
    assert found.splitlines() == [str(first), "[[[0], [1], [2]], [[0], [10], [20]]]"]


def test_one_machine_is_not_led_astray_by_a_cluster(monkeypatch):
    for config in ("", json.dumps({"cluster": {"worker": ["a:1", "b:2"]}, "task": {"type": "worker", "index": 1}})):
        monkeypatch.setenv("TF_CONFIG", config)
        strategy = make_strategy("mirrored")
        assert is_chief(strategy)
        assert not workers(strategy)


def test_one_device():
    assert type(make_strategy("one-device")).__name__ == "OneDeviceStrategy"
    with pytest.raises(InputError, match="has one device. Received: 2 devices"):
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
    with pytest.raises(InputError, match="before TensorFlow is used. Received: 3 devices"):
        make_strategy("mirrored", 3)
