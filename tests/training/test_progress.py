"""What training shows as it goes."""

import re
from types import SimpleNamespace

import pytest

from tf_transformer.training.callbacks.progress import ProgressLogger, time_left


@pytest.mark.parametrize(
    ("times", "told"),
    [
        ([], ""),
        ([500.0], ""),  # the first step may have been traced: how long it took says nothing
        ([500.0, 503.0], ", about 50 min left"),
        ([500.0 + i for i in range(7)], ", about 17 min left"),
        ([500.0 + 6 * i for i in range(7)], ", about 1 h 40 min left"),
        ([0.0, 0.001], ", about 1 min left"),
    ],
)
def test_the_time_left_is_that_of_the_steps_alone(times, told):
    assert time_left(times, 1_000) == told


class Bar(ProgressLogger):
    """A bar that notes what it is told to show."""

    def __init__(self, length, max_steps):
        super().__init__(SimpleNamespace(length=length, place=SimpleNamespace(epoch=0)), max_steps)
        self.set_model(SimpleNamespace(optimizer=SimpleNamespace(iterations=0)))


def test_a_bar_never_shows_more_steps_than_there_are(monkeypatch, capsys):
    """The length of an epoch of several windows is an estimate: here 3, and there are 5 steps."""
    monkeypatch.setattr("tf_transformer.training.callbacks.progress.updates", lambda model: 0)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    bar = Bar(3, 100)
    bar.set_params({})
    bar.on_epoch_begin(0)
    for batch in range(5):
        bar.on_train_batch_end(batch, {"loss": 1.0})
    bar.on_epoch_end(0, {"loss": 1.0})
    shown = re.findall(r"(\d+)/(\d+)", capsys.readouterr().out)
    assert ("5", "5") in shown
    assert all(int(step) <= int(total) for step, total in shown)


def test_a_log_gets_a_line_a_minute(monkeypatch, capsys):
    clock = iter(range(0, 10_000, 25))
    monkeypatch.setattr("tf_transformer.training.callbacks.progress.time.perf_counter", lambda: next(clock))
    monkeypatch.setattr("tf_transformer.training.callbacks.progress.updates", lambda model: 7)
    bar = Bar(100, 1_000)
    bar.set_params({})
    bar.on_epoch_begin(0)
    for batch in range(10):
        bar.on_train_batch_end(batch, {"loss": 2.5, "perplexity": 12.25, "tokens_per_second": 1234})
    lines = capsys.readouterr().out.splitlines()[1:]
    assert lines == ["step 7 of 1,000, loss 2.5, perplexity 12.25, 1,234 tokens/s, about 6 h 54 min left"] * 3
