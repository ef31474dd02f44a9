import keras
import numpy as np
import pytest

from tf_transformer import NoamSchedule


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
