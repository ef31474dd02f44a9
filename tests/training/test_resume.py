"""A run that was ended, however, goes on as if it had not been."""

import csv
import os
import re
import resource
import signal
import time

import numpy as np
import pytest

from tests.forks import Fork
from tf_transformer import load
from tf_transformer.errors import InputError
from tf_transformer.runs import checkpoints
from tf_transformer.runs.directory import RunDirectory
from tf_transformer.training.fit import train
from tf_transformer.training.trainer import Trainer


@pytest.fixture
def start(corpus, small, tmp_path):
    """Starts `tf-transformer train` in a process."""
    config = small(corpus).as_dict()
    del config["model"]["input_vocab_size"], config["model"]["target_vocab_size"]

    def start(run, *options, **training):
        settings = config | {"training": config["training"] | training}
        toml = tmp_path / f"{run}.toml"
        values = {k: v for s in settings.values() for k, v in s.items() if v is not None}
        assert not any(isinstance(v, dict) for v in values.values())
        lines = []
        for section, pairs in settings.items():
            lines.append(f"[{section}]")
            for key, value in pairs.items():
                if value is not None:
                    shown = str(value).lower() if isinstance(value, bool) else repr(value)
                    lines.append(f"{key} = {shown.replace('()', '[]')}")
        toml.write_text("\n".join(lines))
        command = ["train", "--config", str(toml), "--run-dir", str(tmp_path / run), *options]
        return Fork(f"import sys; from tf_transformer.commands.main import main; sys.exit(main({command!r}))")

    return start


def finish(process):
    assert process.wait() == 0, process.errors.read_text()
    return process.output.read_text() + process.errors.read_text()


def wait_for(condition, process, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        assert not process.has_ended(), process.errors.read_text()
        assert time.monotonic() < end
        time.sleep(0.005)


def assert_same_bits(one, other):
    with np.load(one) as one, np.load(other) as other:
        assert set(one.files) == set(other.files)
        assert any(name.startswith("seed/") for name in one.files)
        for name in set(one.files) - {checkpoints.STATE}:
            np.testing.assert_array_equal(one[name], other[name], err_msg=name)


@pytest.mark.long
def test_a_signal_saves_and_ends_and_the_run_goes_on(start, tmp_path):
    """Without --deterministic the bits may differ; steps, order and place may not."""
    settings = {"max_steps": 120, "checkpoint_every": 1000}
    run, stopped = tmp_path / "run", 0
    for number, code in ((signal.SIGTERM, 143), (signal.SIGINT, 130)):
        process = start("run", **settings)
        wait_for(lambda before=stopped: step_of_last(run) > before, process)
        process.send(number)
        assert process.wait(timeout=60) == code, process.errors.read_text()
        shown, errors = process.output.read_text(), process.errors.read_text()
        if stopped:
            assert f"going on from {checkpoints.path_of(run / 'checkpoints', stopped)}" in shown + errors
        stopped = int(re.search(r"stopped at step (\d+); the same command goes on", errors)[1])
        assert "Traceback" not in errors
        last = checkpoints.state_of(checkpoints.all_of(run / "checkpoints")[-1])
        assert last["step"] == stopped == 6 * last["epoch"] + last["batch"] < 120
    assert f"going on from {checkpoints.path_of(run / 'checkpoints', stopped)}" in finish(start("run", **settings))
    steps = [line.split(",")[1] for line in (run / "history.csv").read_text().splitlines()[1:]]
    assert sorted(set(map(int, steps))) == list(range(1, 121))  # a row a step, none twice or missed


def step_of_last(run) -> int:
    known = checkpoints.all_of(run / "checkpoints")
    return checkpoints.state_of(known[-1])["step"] if known else 0


@pytest.fixture
def train_in_sittings(tmp_path, in_fork):
    """Trains runs, by the names of their folders, with one config after the other; gives what was printed."""

    def run(sittings):
        configs = {name: [config.as_dict() for config in each] for name, each in sittings.items()}
        return in_fork(f"""
            from tf_transformer.config import Config
            from tf_transformer.config import override
            from tf_transformer.training.fit import train
            for name, each in {configs!r}.items():
                for config in each:
                    train(override(Config(), config), {str(tmp_path)!r} + "/" + name)
        """)

    return run


@pytest.mark.long
def test_a_signal_ends_a_run_that_has_made_no_update_at_once(corpus, tmp_path, small, monkeypatch, caplog):
    """The graph of the first update is still being built."""
    step = Trainer.train_step

    def stopped(trainer, data):
        signal.raise_signal(signal.SIGTERM)
        return step(trainer, data)

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "train_step", stopped)
        with pytest.raises(SystemExit) as raised, caplog.at_level("INFO"):
            train(small(corpus, max_steps=2), tmp_path / "run")
    assert raised.value.code == 143
    assert "stopped before the first update; the same command goes on" in caplog.messages
    run = train(small(corpus, max_steps=2), tmp_path / "run")
    assert [checkpoints.state_of(path)["step"] for path in checkpoints.all_of(run.checkpoints)] == [2]


@pytest.mark.long
@pytest.mark.parametrize("optimizer", ["adam", "muon"])
def test_a_run_in_three_sittings_equals_one_in_one(corpus, tmp_path, small, epoch_rows, train_in_sittings, optimizer):
    """Bit for bit, dropout and data order included; the first stop is within an epoch, the second at its end."""
    configs = {
        str(len(stops)): [small(corpus, max_steps=stop, deterministic=True, optimizer=optimizer) for stop in stops]
        for stops in ((15,), (3, 12, 15))
    }
    train_in_sittings(configs)
    once, thrice = (RunDirectory(tmp_path / name) for name in ("1", "3"))
    assert_same_bits(*(checkpoints.path_of(run.checkpoints, 15) for run in (once, thrice)))
    assert [row["step"] for row in epoch_rows(once)] == ["6", "12", "15"]
    assert [row["step"] for row in epoch_rows(thrice)] == ["3", "6", "12", "15"]


@pytest.mark.long
def test_a_damaged_checkpoint_is_named_and_the_one_before_is_used(corpus, tmp_path, caplog, small, stopped):
    """How it can be damaged is in test_checkpoints."""
    run = stopped(tmp_path / "run")
    last = checkpoints.path_of(run.checkpoints, 5)
    raw = bytearray(last.read_bytes())
    raw[len(raw) // 2] ^= 1
    last.write_bytes(raw)
    with caplog.at_level("INFO"):
        train(small(corpus, max_steps=6), run.path)
    assert "step-00000005.npz is damaged" in caplog.text
    assert f"going on from {checkpoints.path_of(run.checkpoints, 4)}" in caplog.text
    assert checkpoints.state_of(checkpoints.all_of(run.checkpoints)[-1])["step"] == 6


@pytest.mark.long
def test_where_all_checkpoints_are_damaged_nothing_is_begun(corpus, tmp_path, small, stopped):
    run = stopped(tmp_path / "run")
    known = checkpoints.all_of(run.checkpoints)
    for path in known:
        path.write_bytes(path.read_bytes()[:500])
    before = run.history.read_text()
    for _ in range(2):
        with pytest.raises(InputError, match=r"all checkpoints of .*run are damaged: start a new run with --overwrite"):
            train(small(corpus, max_steps=6), run.path)
    assert run.history.read_text() == before
    assert len(known) == 5 and checkpoints.all_of(run.checkpoints) == known


@pytest.mark.long
def test_a_full_disk_stops_with_a_clear_error_and_keeps_the_last_checkpoint(corpus, tmp_path, small, stopped):
    """Simulated by a limit on the size of files, below that of a checkpoint."""
    run = stopped(tmp_path / "run")
    good = checkpoints.all_of(run.checkpoints)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (good[0].stat().st_size // 2, before[1]))
    try:
        with pytest.raises(InputError, match=r"no room for the checkpoint of step 6 in .*checkpoints.*are kept"):
            train(small(corpus, max_steps=6), run.path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert checkpoints.all_of(run.checkpoints) == good
    assert sorted(os.listdir(run.checkpoints)) == [path.name for path in good]
    assert load(run.path).model


@pytest.mark.long
def test_a_rate_lowered_on_plateaus_is_resumed_exactly(corpus, tmp_path, small, train_in_sittings):
    """BLEU is 0 at all four validations: none after the first is better, and each lowers the rate."""
    same = {"schedule": "plateau", "plateau_patience": 1, "warmup_steps": 2, "best_by": "bleu", "bleu_every": 1}
    sittings = {
        str(len(stops)): [small(corpus, max_steps=stop, deterministic=True, **same) for stop in stops]
        for stops in ((24,), (18, 24))
    }
    train_in_sittings(sittings)
    once, twice = (RunDirectory(tmp_path / name) for name in ("1", "2"))
    assert_same_bits(*(checkpoints.path_of(run.checkpoints, 24) for run in (once, twice)))
    for run in (once, twice):
        with run.history.open() as file:
            rates = {
                int(row["step"]): float(row["learning_rate"]) for row in csv.DictReader(file) if row["learning_rate"]
            }
        assert [rates[step] / rates[6] for step in (12, 18, 24)] == pytest.approx([1, 0.5, 0.25], rel=1e-4)


@pytest.mark.long
def test_validation_within_epochs_changes_no_weight_and_resumes_exactly(
    corpus, tmp_path, small, epoch_rows, train_in_sittings
):
    """An epoch has 6 updates. The stop after 10 is within an epoch, and between two validations."""
    same = {"deterministic": True, "ema_decay": 0.9, "keep_last": 20, "bleu_every": 2}
    sittings = {
        "without": [small(corpus, max_steps=17, **same)],
        "within": [small(corpus, max_steps=17, validate_every=4, **same)],
        "resumed": [small(corpus, max_steps=stop, validate_every=4, **same) for stop in (10, 17)],
    }
    shown = train_in_sittings(sittings)
    runs = {name: RunDirectory(tmp_path / name) for name in sittings}
    for run in runs.values():
        assert_same_bits(*(checkpoints.path_of(one.checkpoints, 17) for one in (run, runs["without"])))
    rows = {name: {int(row["step"]): row for row in epoch_rows(run)} for name, run in runs.items()}
    assert list(rows["without"]) == [6, 12, 17]
    assert list(rows["within"]) == [4, 6, 8, 12, 16, 17]
    assert list(rows["resumed"]) == [4, 6, 8, 10, 12, 16, 17]
    assert [row["epoch"] for row in rows["within"].values()] == ["1", "1", "2", "2", "3", "3"]
    for step, row in rows["within"].items():
        assert row["val_loss"] == rows["resumed"][step]["val_loss"]
        assert row["val_loss"] == rows["without"].get(step, row)["val_loss"]
    scored = [step for step, row in rows["within"].items() if row["val_bleu"]]
    assert scored == [6, 12, 17]  # every second validation
    assert [step for step, row in rows["resumed"].items() if row["val_bleu"]] == [6, 10, 16]
    assert "epoch 2, step 8 of 17" in shown and "epoch 3, step 16 of 17" in shown
    with runs["within"].history.open() as file:
        steps = [int(row["step"]) for row in csv.DictReader(file) if not row["val_loss"]]
    assert steps == list(range(1, 18))
