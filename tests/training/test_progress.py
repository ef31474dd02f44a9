"""What training shows as it goes."""

from types import SimpleNamespace

import pytest
import tensorflow as tf

from tf_transformer.training.callbacks import progress


@pytest.mark.parametrize(
    ("steps", "seconds", "told"),
    [
        (1, 1.0, ""),
        (2, 3.0, ", about 50 min left"),
        (7, 1.0, ", about 17 min left"),
        (7, 6.0, ", about 1 h 40 min left"),
    ],
)
def test_the_time_left_is_that_of_the_steps_alone(monkeypatch, capsys, steps, seconds, told):
    iterations = tf.Variable(0)
    shown = progress.Progress(SimpleNamespace(rows=[None] * steps), max_steps=steps + 1_000)
    shown.set_model(SimpleNamespace(optimizer=SimpleNamespace(iterations=iterations)))
    shown.set_params({})
    shown.on_train_begin()
    shown.on_epoch_begin(0)
    for batch in range(steps):
        with monkeypatch.context() as patch:
            now = 500.0 + seconds * batch  # the first step is traced
            patch.setattr(progress.time, "perf_counter", lambda now=now: now)
            iterations.assign_add(1)
            shown.on_train_batch_end(batch, {})
    shown.on_epoch_end(0, {})
    shown.on_epoch_begin(1)
    assert f"epoch 2, step {steps} of {steps + 1000:,}{told}\n" in capsys.readouterr().out
