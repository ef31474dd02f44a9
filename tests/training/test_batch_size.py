import json
import os
import resource
import subprocess
import sys

import pytest
import tensorflow as tf

from tf_transformer.config.overrides import override
from tf_transformer.errors import InputError
from tf_transformer.training import batch_size
from tf_transformer.training.batch_size import lacks_memory, with_fitting_batches

GIGABYTE = 2**30


def batches_of(config):
    return config.data.batch_tokens, config.training.accumulate


@pytest.mark.long
def test_an_update_that_fits_is_made_in_one_part(corpus, small):
    given = override(small(corpus), {"data": {"batch_tokens": 16}, "training": {"accumulate": 4}})
    found = with_fitting_batches(given)
    assert batches_of(found) == (64, 1)
    assert override(found, {"data": {"batch_tokens": 16}, "training": {"accumulate": 4}}) == given


@pytest.fixture
def attempts(monkeypatch):
    """Lets batches of up to so many tokens fit; gives the list of those that are attempted."""

    def up_to(most):
        made = []

        def fits(config, *_):
            made.append(config.data.batch_tokens)
            return config.data.batch_tokens <= most

        monkeypatch.setattr(batch_size, "fits", fits)
        return made

    return up_to


@pytest.mark.parametrize(("most", "expected"), [(1000, (1000, 1)), (999, (500, 2)), (499, (250, 4))])
def test_the_fewest_parts_that_fit_are_found(corpus, small, attempts, most, expected):
    made = attempts(most)
    assert batches_of(with_fitting_batches(override(small(corpus), {"data": {"batch_tokens": 1000}}))) == expected
    assert made == [1000 // 2**i for i in range(len(made))]


def test_where_no_batch_holds_the_longest_pair_it_is_said(corpus, small, attempts):
    made = attempts(17)
    with pytest.raises(InputError, match=r"not even batches of 31 tokens .*data.max_length=16"):
        with_fitting_batches(override(small(corpus), {"data": {"batch_tokens": 1000}}))
    assert made == [1000, 500, 250, 125, 62, 31]


def test_several_machines_are_refused(corpus, small, monkeypatch):
    with pytest.raises(InputError, match="is for one machine"):
        with_fitting_batches(small(corpus), "multiworker")
    monkeypatch.setenv("TF_CONFIG", "{}")
    with pytest.raises(InputError, match="is for one machine"):
        with_fitting_batches(small(corpus))


@pytest.mark.long
def test_what_is_wrong_with_a_device_is_said(corpus, small):
    with pytest.raises(InputError, match="one-device strategy uses exactly one device"):
        with_fitting_batches(small(corpus), "one-device", 3)


def test_a_failure_for_another_reason_is_not_taken_for_too_large(corpus, small, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(RuntimeError, match="an attempt to find data.batch_tokens failed"):
        with_fitting_batches(small(corpus))


ONEDNN = "Operation received an exception:Status: {}, message: could not create a primitive"


@pytest.mark.parametrize(
    ("error", "lacking"),
    [
        (MemoryError(), True),
        (tf.errors.ResourceExhaustedError(None, None, "OOM when allocating tensor"), True),
        (tf.errors.InternalError(None, None, "CUDNN: failed to allocate workspace"), True),
        (RuntimeError("std::bad_alloc"), True),
        (tf.errors.AbortedError(None, None, ONEDNN.format(1)), True),  # dnnl_out_of_memory
        (tf.errors.AbortedError(None, None, ONEDNN.format(3)), False),  # dnnl_unimplemented
        (tf.errors.InvalidArgumentError(None, None, "Incompatible shapes"), False),
    ],
)
def test_what_says_that_memory_ran_out(error, lacking):
    assert lacks_memory(error) == lacking


@pytest.mark.long
def test_training_finds_its_batches_where_memory_is_limited(corpus, tmp_path):
    """An update of 500,000 tokens takes 5.4 GB of addresses on two cores, of which TensorFlow itself takes 2.6."""
    command = [
        *(sys.executable, "-m", "tf_transformer", "train", "--data", str(corpus), "--source", "xx", "--target", "yy"),
        *("--run-dir", str(tmp_path / "run"), "--vocab-size", "300", "--max-steps", "2"),
    ]
    shape = {"num_layers": 1, "d_model": 16, "num_heads": 2, "dff": 16}
    settings = {f"model.{key}": value for key, value in shape.items()}
    (tmp_path / "auto.toml").write_text("[data]\nbatch_tokens = 500000\n")
    settings |= {"training.samples": 0, "data.max_length": 64, "data.batch_tokens": "auto"}
    command += ["--config", str(tmp_path / "auto.toml")]
    command += [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]

    def limit():
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])  # each thread takes addresses as well
        resource.setrlimit(resource.RLIMIT_AS, (4 * GIGABYTE, 4 * GIGABYTE))

    environment = os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"}
    first = subprocess.run(command, capture_output=True, text=True, preexec_fn=limit, env=environment, check=False)
    assert first.returncode == 0, first.stderr
    said = first.stdout + first.stderr
    assert "batches of 500,000 tokens do not fit into memory" in said
    config = json.loads((tmp_path / "run" / "config.json").read_text())["config"]
    tokens, parts = config["data"]["batch_tokens"], config["training"]["accumulate"]
    assert parts > 1
    assert tokens * parts == 500_000
    assert f"an update of 500,000 tokens fits in {parts} parts" in said

    # The run goes on with what was found, without another attempt.
    again = subprocess.run([*command, "--max-steps", "3"], capture_output=True, text=True, env=environment, check=False)
    assert again.returncode == 0, again.stderr
    assert "fit" not in again.stdout + again.stderr
    assert json.loads((tmp_path / "run" / "config.json").read_text())["config"]["data"]["batch_tokens"] == tokens
