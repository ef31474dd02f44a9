"""Loss, metrics, schedule and plain `model.fit` on the other backends of Keras."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from tf_transformer import NoamSchedule
from tf_transformer.training import Perplexity, SmoothedCrossEntropy, TokenAccuracy, TokenLoss

EXAMPLES = Path(__file__).parents[2] / "examples"
B, T, V = 3, 5, 13
rng = np.random.default_rng(1)
IDS, LOGITS = rng.integers(1, V, (B, T)), rng.normal(0, 2, (B, T, V)).astype("float32")
IDS[1, 3:] = IDS[2, 1:] = 0
WEIGHTS = rng.uniform(size=B).astype("float32")
STEPS = (0, 1, 7, 4000, 9000)


@pytest.fixture(params=["jax", "torch"])
def backend(request):
    if importlib.util.find_spec(request.param) is None:
        pytest.skip(f"{request.param} is not installed")
    return request.param


@pytest.mark.long_but_first
def test_loss_metrics_and_schedule_give_the_same(backend, tmp_path, in_fresh_process):
    expected = {"loss": float(SmoothedCrossEntropy(0.1)(IDS, LOGITS, sample_weight=WEIGHTS))}
    for metric in (TokenLoss(0.1), TokenLoss(name="plain"), Perplexity(), TokenAccuracy()):
        metric.update_state(IDS, LOGITS)
        expected[metric.name + "_metric"] = float(metric.result())
    expected |= {f"rate_{step}": float(NoamSchedule(512)(step)) for step in STEPS}
    np.savez(tmp_path / "given.npz", ids=IDS, logits=LOGITS, weights=WEIGHTS)
    in_fresh_process(
        f"""
        import keras, numpy as np
        assert keras.backend.backend() == {backend!r}
        from tf_transformer import NoamSchedule
        from tf_transformer.training import Perplexity, SmoothedCrossEntropy, TokenAccuracy, TokenLoss
        expected, given = {expected!r}, np.load({str(tmp_path / "given.npz")!r})
        ids, logits = given["ids"], given["logits"]
        found = {{"loss": float(SmoothedCrossEntropy(0.1)(ids, logits, sample_weight=given["weights"]))}}
        for metric in (TokenLoss(0.1), TokenLoss(name="plain"), Perplexity(), TokenAccuracy()):
            metric.update_state(ids, logits)
            found[metric.name + "_metric"] = float(metric.result())
        found |= {{f"rate_{{step}}": float(NoamSchedule(512)(step)) for step in {STEPS}}}
        assert found.keys() == expected.keys()
        for name, value in found.items():
            np.testing.assert_allclose(value, expected[name], rtol=1e-5, err_msg=name)
        """,
        KERAS_BACKEND=backend,
    )


@pytest.mark.long
@pytest.mark.parametrize(
    "code",
    [
        "import copy_task; assert 0 <= copy_task.main(epochs=1) <= 1",
        "import any_backend; first, *_, last = any_backend.main(epochs=8, pairs=256); assert last < 0.6 * first",
    ],
    ids=["copy", "translation"],
)
def test_a_model_is_trained_by_plain_fit(code, backend, in_fresh_process):
    in_fresh_process(code, KERAS_BACKEND=backend, PYTHONPATH=str(EXAMPLES))
