import keras
import numpy as np
import pytest

from tf_transformer import PRESETS, NoamSchedule
from tf_transformer.config import override
from tf_transformer.training.callbacks import LowerOnPlateau
from tf_transformer.training.schedule import LinearWarmup, ScaledSchedule, schedule_of


def test_the_papers_base_schedule_peaks_at_step_4000():
    schedule = NoamSchedule(512)
    rates = {step: float(schedule(step)) for step in (1, 2, 3999, 4000, 4001, 16_000)}
    assert rates[4000] == pytest.approx(6.99e-4, rel=1e-3)  # 512^-0.5 * 4000^-0.5
    assert max(rates, key=rates.get) == 4000
    assert rates[2] == pytest.approx(2 * rates[1])  # linear
    assert rates[16_000] == pytest.approx(rates[4000] / 2)  # inverse square root


def test_the_first_update_does_something():
    schedule = NoamSchedule(512)
    assert float(schedule(0)) == float(schedule(1)) == pytest.approx(512**-0.5 * 4000**-1.5)


def test_factor_and_warmup():
    assert float(NoamSchedule(64, warmup_steps=100, factor=3)(100)) == pytest.approx(3 / np.sqrt(64 * 100))


def test_a_schedule_of_a_peak():
    schedule = NoamSchedule.of_peak(0.005, warmup_steps=2000)
    assert float(schedule(2000)) == pytest.approx(0.005)
    assert float(schedule(500)) == pytest.approx(0.00125)  # a quarter of the way up
    assert float(schedule(8000)) == pytest.approx(0.0025)  # half, at four times the steps
    # The paper's base schedule by its peak.
    base, peak = NoamSchedule(512), NoamSchedule.of_peak((512 * 4000) ** -0.5)
    assert [float(base(step)) for step in (0, 7, 4001)] == pytest.approx([float(peak(step)) for step in (0, 7, 4001)])


def test_it_saves_with_an_optimizer():
    optimizer = keras.optimizers.Adam(NoamSchedule(64, warmup_steps=100, factor=3))
    copy = keras.optimizers.Adam.from_config(optimizer.get_config())
    assert float(copy.learning_rate) == float(optimizer.learning_rate) > 0


@pytest.mark.parametrize(("wrong", "name"), [((0,), "d_model"), ((8, 0), "warmup_steps"), ((8, 1, -1), "factor")])
def test_nonsense_is_refused(wrong, name):
    with pytest.raises(ValueError, match=f"{name} must be above 0"):
        NoamSchedule(*wrong)


def of(d_model=64, **settings):
    return schedule_of(override(PRESETS["base"], {"training": settings}).training, d_model)


def test_a_cosine_is_that_of_keras_after_the_warm_up():
    ours = of(schedule="cosine", learning_rate=0.01, warmup_steps=100, max_steps=1100)
    theirs = keras.optimizers.schedules.CosineDecay(0.0, 1000, warmup_target=0.01, warmup_steps=100)
    steps = [1, 7, 99, 100, 101, 350, 600, 1099, 1100, 2000]
    assert [float(ours(step)) for step in steps] == pytest.approx([float(theirs(step)) for step in steps], abs=1e-8)
    assert float(ours(600)) == pytest.approx(0.005)
    assert float(ours(0)) == float(ours(1)) > 0  # Keras's first update has no effect


def test_a_constant_rate_stays_at_the_papers_peak():
    schedule, paper = of(schedule="constant", warmup_steps=100), of(warmup_steps=100)
    assert [float(schedule(step)) for step in (1, 50, 100)] == pytest.approx([float(paper(s)) for s in (1, 50, 100)])
    assert float(schedule(10_000)) == pytest.approx(float(paper(100)))
    assert float(of(schedule="constant", warmup_steps=7, learning_rate=0.1)(7)) == pytest.approx(0.1)


def test_other_schedules_save_with_an_optimizer():
    for schedule in (LinearWarmup(0.1, 7, 13), LinearWarmup(0.1, 7), ScaledSchedule(LinearWarmup(0.1, 7))):
        copy = keras.optimizers.Adam.from_config(keras.optimizers.Adam(schedule).get_config())
        assert float(copy._learning_rate(20)) == pytest.approx(float(schedule(20)))
    with pytest.raises(ValueError, match="decay_steps must be above 0"):
        LinearWarmup(0.1, 7, 0)


def test_a_plateau_lowers_the_rate_as_keras_does():
    """Against keras.callbacks.ReduceLROnPlateau, and after a resume in the middle."""
    values = [5.0, 4.0, 4.1, 4.2, 3.9, 3.9, 4.0, 4.1, 4.2, 3.0, 3.1, 3.2]
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(0.1))
    theirs = keras.callbacks.ReduceLROnPlateau("val_loss", factor=0.5, patience=2, min_delta=0)
    theirs.set_model(model)
    theirs.on_train_begin()
    schedule = of(schedule="plateau", learning_rate=0.1, warmup_steps=1)
    ours = LowerOnPlateau(schedule, "loss", 2, 0.5, [])
    ours.on_train_begin()
    for epoch, value in enumerate(values):
        theirs.on_epoch_end(epoch, {"val_loss": value})
        ours.on_epoch_end(epoch, {"val_loss": value})
        assert float(schedule(5)) == pytest.approx(float(model.optimizer.learning_rate))
        resumed = of(schedule="plateau", learning_rate=0.1, warmup_steps=1)
        LowerOnPlateau(resumed, "loss", 2, 0.5, values[: epoch + 1]).on_train_begin()
        assert float(resumed(5)) == float(schedule(5))
    assert float(schedule(5)) == pytest.approx(0.1 / 16)
    ours.on_epoch_end(99, {})  # no validation
    assert len(ours.values) == len(values)
