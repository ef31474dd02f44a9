"""Two processes on loopback train as one does."""

import json
import re
import shutil
import signal
import socket
import time

import numpy as np
import pytest

from tests.forks import Fork
from tf_transformer.config import Config, DataConfig, TokenizerConfig
from tf_transformer.data.preparing import plan_of, prepare
from tf_transformer.runs import checkpoints
from tf_transformer.runs.directory import RunDirectory
from tf_transformer.tokenizers import Tokenizer, train_tokenizer

CODE = """
import sys
import keras
import numpy as np
from tf_transformer.commands.main import main
from tf_transformer.training import optimizer

def update_step(self, gradient, variable, learning_rate):
    self.assign_sub(variable, gradient)  # the change of a weight is its gradient

if {plain!r}:
    optimizer.Adam.update_step = update_step
sys.exit(main({command!r}))
"""


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


@pytest.fixture
def launch(corpus, tmp_path):
    """Starts a run on so many workers, each a process; those that are left are killed at the end."""
    started = []

    def launch(run, workers, *options, plain=False, change=lambda index, command: command):
        command = ["train", "--data", str(corpus), "--source", "xx", "--target", "yy", "--run-dir", str(tmp_path / run)]
        for setting in (
            *("model.num_layers=1", "model.d_model=16", "model.num_heads=2", "model.dff=16", "model.dropout_rate=0"),
            *("tokenizer.vocab_size=300", "data.batch_tokens=64", "data.max_length=16", "training.ema_decay=0"),
            *("training.samples=1", *options),
        ):
            command += ["--set", setting]
        addresses = [f"127.0.0.1:{port}" for port in free_ports(workers)]
        processes = []
        for index in range(workers):
            cluster = {"cluster": {"worker": addresses}, "task": {"type": "worker", "index": index}}
            environment = {"TF_CONFIG": json.dumps(cluster)} if workers > 1 else {}
            code = CODE.format(plain=plain, command=change(index, command))
            processes.append(Fork(code, log=tmp_path / f"{run}-{index}.log", **environment))
        started.extend(processes)
        return processes

    yield launch
    for process in started:
        process.kill()


def finish(processes, tmp_path, run):
    for index, process in enumerate(processes):
        assert process.wait(timeout=240) == 0, (tmp_path / f"{run}-{index}.log").read_text()


@pytest.mark.long
def test_two_workers_give_the_losses_and_gradients_of_one(launch, tmp_path):
    settings = ("training.max_steps=3", "training.checkpoint_every=1", "training.label_smoothing=0")
    finish(launch("one", 1, *settings, plain=True), tmp_path, "one")
    finish(launch("two", 2, *settings, plain=True), tmp_path, "two")
    one, two = RunDirectory(tmp_path / "one"), RunDirectory(tmp_path / "two")
    known = checkpoints.all_of(two.checkpoints)
    assert [path.name for path in known] == [path.name for path in checkpoints.all_of(one.checkpoints)]
    assert len(known) == 3
    names = [name for name in np.load(known[0]).files if name.startswith("transformer/")]
    for step in (1, 2, 3):
        a, b = (checkpoints.read(checkpoints.path_of(run.checkpoints, step), names) for run in (one, two))
        for name in names:
            np.testing.assert_allclose(b[name], a[name], atol=1e-5, err_msg=f"{step} {name}")
    a, b = (checkpoints.state_of(checkpoints.path_of(run.checkpoints, 3)) for run in (one, two))
    for metric in ("loss", "accuracy", "val_loss", "val_accuracy"):
        assert b[metric] == pytest.approx(a[metric], rel=1e-5)
    # Only the chief writes, and shows.
    assert "epoch 1" in (tmp_path / "two-0.log").read_text()
    assert "epoch 1" not in (tmp_path / "two-1.log").read_text()


@pytest.mark.long
@pytest.mark.parametrize("what", ["text", "tokenizer"])
def test_machines_that_would_train_different_things_do_not_begin(launch, corpus, tmp_path, what):
    if what == "text":
        other = shutil.copytree(corpus, tmp_path / "other")
        lines = (other / "train.yy").read_text().splitlines(keepends=True)
        (other / "train.yy").write_text("".join([*lines[1:], lines[0]]))

        model = tmp_path / "shared.model"
        model.write_bytes(train_tokenizer(map(str, range(1000)), TokenizerConfig(vocab_size=300)))
        for i, text in enumerate((corpus, other)):
            data = DataConfig(corpus=str(text), source="xx", target="yy", max_length=16, batch_tokens=64)
            tokenizer = TokenizerConfig(vocab_size=300, file=str(model))
            prepare(plan_of(Config(data=data, tokenizer=tokenizer)), tmp_path / f"prepared-{i}")

        def change(index, command):
            return [str(tmp_path / f"prepared-{index}") if word == str(corpus) else word for word in command]

        told = "the machines do not read the same text (this one has 53 train pairs, "
    else:
        # Of the same size, as two machines with other versions of SentencePiece may train them.
        models = [
            train_tokenizer(map(str, range(1000)), TokenizerConfig(vocab_size=290, model_type=kind))
            for kind in ("bpe", "unigram")
        ]
        assert len({len(Tokenizer(model).pieces) for model in models}) == 1
        for i, model in enumerate(models):
            (tmp_path / f"{i}.model").write_bytes(model)

        def change(index, command):
            return [*command, "--tokenizer", str(tmp_path / f"{index}.model")]

        told = "1.model is another tokenizer than that of the text"
    for process in launch("run", 2, "training.max_steps=2", change=change):
        assert process.wait(timeout=120) == 2
    logs = [(tmp_path / f"run-{i}.log").read_text() for i in (0, 1)]
    assert any(told in log for log in logs), logs
    assert not any("Traceback" in log for log in logs)
    assert not (tmp_path / "run").exists()


@pytest.mark.long
def test_the_chief_alone_reads_the_text(launch, corpus, tmp_path):
    """The other machine trains on what the chief has prepared; where the chief fails, the other ends too."""

    def change(index, command):
        return [str(copied) if index and word == str(corpus) else word for word in command]

    copied = shutil.copytree(corpus, tmp_path / "copied")
    (copied / "train.xx").write_text("something else\n" * 53)
    finish(launch("two", 2, "training.max_steps=2", change=change), tmp_path, "two")
    finish(launch("one", 1, "training.max_steps=2"), tmp_path, "one")
    one, two = (RunDirectory(tmp_path / run) for run in ("one", "two"))
    assert one.description["data"]["train"] == two.description["data"]["train"]
    (copied / "train.xx").write_bytes(b"\xff\n" * 53)

    def turned(index, command):
        return change(1 - index, command)

    processes = launch("three", 2, change=turned)
    assert [process.wait(timeout=120) for process in processes] == [2, 2]
    logs = [(tmp_path / f"three-{i}.log").read_text() for i in (0, 1)]
    assert "train.xx, line 1: not UTF-8" in logs[0]
    assert "another machine" in logs[1]
    assert not any("Traceback" in log for log in logs)
    assert not (tmp_path / "three").exists()


@pytest.mark.long
@pytest.mark.parametrize("victim", [0, 1])
def test_a_killed_worker_ends_the_other_and_all_go_on_together(launch, tmp_path, victim):
    settings = ("training.checkpoint_every=20", "training.max_steps=5000")
    processes = launch("run", 2, *settings)
    folder = tmp_path / "run" / "checkpoints"
    end = time.monotonic() + 120
    while not checkpoints.all_of(folder):
        assert time.monotonic() < end
        time.sleep(0.05)
    processes[victim].send(signal.SIGKILL)
    other = 1 - victim
    assert processes[other].wait(timeout=60) == 2
    log = (tmp_path / f"run-{other}.log").read_text()
    assert "another machine" in log
    assert "Traceback" not in log
    reached = checkpoints.state_of(checkpoints.all_of(folder)[-1])["step"]
    finish(launch("run", 2, *settings[:1], f"training.max_steps={reached + 5}"), tmp_path, "run")
    assert f"going on from {checkpoints.path_of(folder, reached)}" in (tmp_path / "run-0.log").read_text()
    assert checkpoints.state_of(checkpoints.all_of(folder)[-1])["step"] == reached + 5


@pytest.mark.long
def test_a_signal_to_one_machine_ends_all_after_the_same_step(launch, tmp_path):
    settings = ("training.checkpoint_every=1000", "training.max_steps=5000")
    processes = launch("run", 2, *settings)
    folder = tmp_path / "run" / "checkpoints"
    end = time.monotonic() + 120
    while not checkpoints.all_of(folder):  # that of the first epoch
        assert time.monotonic() < end
        time.sleep(0.05)
    processes[1].send(signal.SIGTERM)
    codes = [process.wait(timeout=60) for process in processes]
    logs = [(tmp_path / f"run-{i}.log").read_text() for i in (0, 1)]
    assert codes == [143, 143], "\n".join(log[-2000:] for log in logs)
    stops = [re.search(r"stopped at step (\d+)", log)[1] for log in logs]
    assert stops[0] == stops[1]
    assert checkpoints.state_of(checkpoints.all_of(folder)[-1])["step"] == int(stops[0])
