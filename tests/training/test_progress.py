"""What training shows as it goes."""

import pytest

from tf_transformer.training.callbacks.progress import time_left


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
