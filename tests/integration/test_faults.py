"""Whatever ends a command, nothing good is lost, and the next command works or says in one line what to do."""

import contextlib
import os
import random
import shutil
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

from tests.forks import Fork
from tf_transformer import load
from tf_transformer.commands.main import main
from tf_transformer.data.corpora import is_prepared, toy
from tf_transformer.errors import InputError
from tf_transformer.runs import checkpoints
from tf_transformer.runs.directory import RunDirectory, find_run
from tf_transformer.runs.history import read_history
from tf_transformer.storage.atomic import contents_of, settle
from tf_transformer.storage.lock import sole_writer

pytestmark = pytest.mark.long

KILLS = 8
SEED = random.randrange(2**32)
"""Of the moments at which processes are killed; a failure shows it."""

CODE = """
import sys
from tf_transformer.commands.main import main
from tf_transformer.data.corpora import folder

folder.LINES = 997  # a small corpus has several chunks
sys.exit(main({command!r}))
"""


def begun(*arguments, log: Path) -> Fork:
    """A command that runs."""
    return Fork(CODE.format(command=[str(argument) for argument in arguments]), log=log)


@pytest.fixture(scope="module")
def command(tmp_path_factory):
    """Runs a command for at most so many seconds, then kills it; gives its exit code, -9 if it was killed."""
    log = tmp_path_factory.mktemp("command") / "log"
    assert Fork("").wait() == 0  # the first one waits for the import of TensorFlow

    def run(*arguments, seconds=300.0):
        log.unlink(missing_ok=True)
        fork = begun(*arguments, log=log)
        with contextlib.suppress(TimeoutError):
            return fork.wait(seconds)
        fork.kill()
        return fork.wait()

    run.log = log
    return run


@pytest.fixture(scope="module")
def training():
    """The options of a run that takes a moment: 6 updates an epoch."""
    corpus = Path(__file__).parents[1] / "frozen" / "corpus"
    settings = (
        "model.num_layers=1 model.d_model=16 model.num_heads=2 model.dff=16 tokenizer.vocab_size=300 "
        "data.batch_tokens=64 data.max_length=16 training.samples=0 training.checkpoint_every=7 "
        "training.ema_decay=0.9 training.clip_norm=1.0"
    )
    given = [word for setting in settings.split() for word in ("--set", setting)]
    return ["train", "--data", str(corpus), "--source", "xx", "--target", "yy", "--deterministic", *given]


@pytest.fixture
def run(command, training, tmp_path):
    """A trained run."""
    assert command(*training, "--max-steps", 30, "--run-dir", tmp_path / "good") == 0, command.log.read_text()
    return RunDirectory(tmp_path / "good")


def moments(longest):
    chance = random.Random(SEED)
    return [chance.uniform(0, longest) for _ in range(KILLS)]


def assert_readable(run):
    """Every checkpoint is whole, and the history ends with the last one or later."""
    known = checkpoints.all_of(run.checkpoints)
    steps = [checkpoints.state_of(path)["step"] for path in known]
    for path in known:
        assert checkpoints.read(path, checkpoints.names_in(path)), path
    assert not steps or int(read_history(run.history)[-1]["step"]) >= steps[-1]
    return steps


def contents(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_training_that_is_killed_often_ends_as_if_it_had_not_been(command, training, tmp_path):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    begun = time.monotonic()
    assert command(*training, "--max-steps", 150, "--run-dir", whole) == 0
    longest, codes, reached = time.monotonic() - begun, [], [0]
    for seconds in moments(0.8 * longest):
        codes.append(command(*training, "--max-steps", 150, "--run-dir", killed, seconds=seconds))
        if find_run(killed):
            steps = assert_readable(RunDirectory(killed))
            assert not steps or steps[-1] >= reached[-1]
            reached += steps[-1:]
    print(f"{SEED=}, {codes=}, {reached=}")
    assert set(codes) <= {-9, 0}
    assert -9 in codes
    assert command(*training, "--max-steps", 150, "--run-dir", killed) == 0, command.log.read_text()
    one, other = (np.load(checkpoints.path_of(folder / "checkpoints", 150)) for folder in (whole, killed))
    assert set(one.files) == set(other.files)
    assert any(name.startswith("seed/") for name in one.files)
    for name in set(one.files) - {checkpoints.STATE}:
        np.testing.assert_array_equal(one[name], other[name], err_msg=name)
    assert sorted(path.name for path in killed.iterdir()) == sorted(path.name for path in whole.iterdir())
    assert not list((killed / "checkpoints").glob(".*"))


@pytest.fixture(scope="module")
def preparing(tmp_path_factory):
    """The options that prepare a corpus of 30 chunks, which takes some seconds."""
    folder = tmp_path_factory.mktemp("text")
    pairs = toy.pairs("train")
    for i, language in enumerate(("en", "de")):
        (folder / f"train.{language}").write_text("".join(f"{pair[i]}\n" for pair in [*pairs, *pairs[:3000]]))
        (folder / f"val.{language}").write_text("".join(f"{pair[i]}\n" for pair in toy.pairs("val")))
    filters = ["--set", "data.drop_duplicates=true", "--set", "data.bpe_dropout=0.1"]
    return ["prepare", "--data", folder, "--source", "en", "--target", "de", "--vocab-size", 900, *filters]


def test_preparing_that_is_killed_often_ends_as_if_it_had_not_been(command, preparing, tmp_path):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    begun = time.monotonic()
    assert command(*preparing, "--output", whole, "--workers", 1) == 0, command.log.read_text()
    longest, codes = time.monotonic() - begun, []
    for i, seconds in enumerate(moments(longest / 3)):
        codes.append(command(*preparing, "--output", killed, "--workers", 1 + i % 3, seconds=seconds))
        assert not killed.exists() or codes[-1] == 0 or is_prepared(killed)
    print(f"{SEED=}, {codes=}")
    assert -9 in codes
    assert command(*preparing, "--output", killed, "--workers", 2) == 0, command.log.read_text()
    assert contents(killed) == contents(whole)
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")
def test_preparing_on_a_disk_that_fills_up(command, preparing, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "none", disk], capture_output=True).returncode:
        pytest.skip("nothing can be mounted here")
    try:
        assert command(*preparing, "--output", disk / "made", "--workers", 2) == 2
        said = command.log.read_text().splitlines()
        assert said[-1].startswith("tf-transformer: error: ")
        assert "No space" in said[-1]
        assert not (disk / "made").exists()
        subprocess.run(["mount", "-o", "remount,size=100m", disk], check=True)
        assert command(*preparing, "--output", disk / "made", "--workers", 2) == 0, command.log.read_text()
        assert "continuing the preparation" in command.log.read_text()
        assert command(*preparing, "--output", tmp_path / "other") == 0
        assert contents(disk / "made") == contents(tmp_path / "other")
    finally:
        subprocess.run(["umount", disk], check=True)


def test_a_run_that_is_overwritten_is_the_old_one_or_the_new_one(command, training, run):
    old = contents(run.path / "checkpoints")
    state = {"old": 0, "new": 0}
    for i, seconds in enumerate(moments(longest=2.5)):
        command(*training, "--max-steps", 2000, "--run-dir", run.path, "--overwrite", "--seed", i + 1, seconds=seconds)
        with sole_writer(run.path):  # that of a killed process is none
            settle(run.path, "config.json")
        found = RunDirectory(run.path)
        assert found.tokenizer_paths()[0].stat().st_size > 0
        assert_readable(found)
        if found.id == run.id:
            assert contents(found.checkpoints) == old
            state["old"] += 1
        else:
            assert found.config.training.seed == i + 1 or state["new"]
            run, old, state["new"] = found, contents(found.checkpoints), state["new"] + 1
    print(f"{SEED=}, {state=}")
    seed, done = run.config.training.seed, (checkpoints.all_of(run.checkpoints) or [None])[-1]
    more = 1 + (checkpoints.state_of(done)["step"] if done else 0)
    assert command(*training, "--max-steps", more, "--run-dir", run.path, "--seed", seed) == 0, command.log.read_text()


@pytest.mark.parametrize("what", ["average", "export"])
def test_what_is_written_is_there_whole_or_not_at_all(command, run, tmp_path, what):
    arguments = {"average": ["average", "--last", 2], "export": ["export", "--beam-size", 1]}[what]
    before = contents(run.path)
    expected = tmp_path / "expected"
    assert command(*arguments, "--run-dir", run.path, "--output", expected) == 0, command.log.read_text()
    codes = []
    for i, seconds in enumerate(moments(longest={"average": 0.3, "export": 6.0}[what])):
        place = tmp_path / "made" / str(i)
        codes.append(command(*arguments, "--run-dir", run.path, "--output", place, seconds=seconds))
        assert place.exists() or codes[-1] == -9
        if place.exists():
            assert {path.relative_to(place) for path in place.rglob("*")} == {
                path.relative_to(expected) for path in expected.rglob("*")
            }
            if what == "average":
                assert assert_readable_average(place) == assert_readable_average(expected)
        # The same command again, where the killed one was.
        elif i % 3 == 0:
            assert command(*arguments, "--run-dir", run.path, "--output", place) == 0, command.log.read_text()
    print(f"{SEED=}, {codes=}")
    assert -9 in codes
    assert contents(run.path) == before


def assert_readable_average(path):
    return [checkpoints.state_of(checkpoint)["averaged"] for checkpoint in RunDirectory(path).known()]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")
def test_a_disk_that_fills_up(command, training, run, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1500k", "none", str(disk)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("nothing can be mounted here")
    try:
        arguments = [*training, "--max-steps", 600, "--set", "training.keep_last=99", "--run-dir", disk / "run"]
        assert command(*arguments) == 2
        said = command.log.read_text().splitlines()
        assert said[-1].startswith("tf-transformer: error: ") and ("no room" in said[-1] or "No space" in said[-1])
        stopped = RunDirectory(disk / "run")
        steps = [checkpoints.state_of(path)["step"] for path in stopped.known()]
        assert steps
        assert load(stopped.path).model
        for what in (["average", "--last", 1], ["export", "--beam-size", 1]):
            assert command(*what, "--run-dir", run.path, "--output", disk / "made") == 2
            assert command.log.read_text().splitlines()[-1].startswith("tf-transformer: error: ")
            assert [path.name for path in contents_of(disk)] == ["run"]
        subprocess.run(["mount", "-o", "remount,size=100m", str(disk)], check=True)
        arguments[arguments.index("--max-steps") + 1] = steps[-1] + 5
        assert command(*arguments) == 0, command.log.read_text()
        assert f"going on from {checkpoints.path_of(stopped.checkpoints, steps[-1])}" in command.log.read_text()
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_run_is_copied_and_read_by_others_while_it_is_trained(command, training, tmp_path):
    run = tmp_path / "run"
    arguments = [*training, "--max-steps", "3000", "--set", "training.keep_last=1", "--run-dir", str(run)]
    process = begun(*arguments, log=tmp_path / "log")
    copies = []
    try:
        while len(copies) < KILLS:
            assert not process.has_ended()
            if not find_run(run) or not RunDirectory(run).known():
                continue
            reader = RunDirectory(run)
            assert reader.read_best(checkpoints.state_of)["step"] > 0
            assert reader.read_best(lambda path: checkpoints.read(path, checkpoints.names_in(path)))
            copy = tmp_path / f"copy-{len(copies)}"
            subprocess.run(["cp", "-r", str(run), str(copy)], capture_output=True)  # it may name files that have gone
            copies.append(copy)
    finally:
        process.kill()
    usable, refused = 0, []
    for copy in copies:
        try:
            load(copy)
            usable += 1
        except InputError as error:
            refused.append(str(error))
    assert usable >= KILLS // 2, refused
    assert not any("\n" in message for message in refused)
    last = copies[-1]
    moved = last.rename(tmp_path / "elsewhere")
    (moved / ".lock").unlink(missing_ok=True)
    known = [path for path in checkpoints.all_of(moved / "checkpoints") if is_whole(path)]
    more = 3 + (checkpoints.state_of(known[-1])["step"] if known else 0)
    options = [*training, "--max-steps", more, "--set", "training.keep_last=1", "--run-dir", moved]
    assert command(*options) == 0, command.log.read_text()
    shutil.rmtree(run)
    assert main(["info", str(moved)]) == 0  # the copy needs nothing of the original


def is_whole(checkpoint: Path) -> bool:
    try:
        return bool(checkpoints.read(checkpoint, checkpoints.names_in(checkpoint)))
    except InputError:
        return False
