import json

import pytest

from tf_transformer.errors import InputError
from tf_transformer.training.strategy import is_chief, make_strategy, workers


def test_the_default_is_mirrored_on_one_device_here():
    strategy = make_strategy()
    assert type(strategy).__name__ == "MirroredStrategy"
    assert strategy.num_replicas_in_sync == 1
    assert is_chief(strategy)


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
