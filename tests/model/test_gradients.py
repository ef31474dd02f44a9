"""What TensorFlow runs in place of a plain form gives the same values and gradients."""

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

import tf_transformer
from tf_transformer.model.embeddings import take_rows
from tf_transformer.model.layer_norm import normalize
from tf_transformer.training.loss import take_labels, token_losses

B, T, D, V = 2, 3, 7, 13
rng = np.random.default_rng(0)
X, LOGITS, TABLE = (rng.normal(1, 2, size=shape).astype("float32") for shape in ((B, T, D), (B, T, V), (V, D)))
IDS = np.array([[5, 5, 0], [12, 1, 5]])
CASES = {
    "layer norm": (normalize, X, lambda normalize, x: normalize(x, 1e-6)),
    "layer norm, large epsilon": (normalize, X, lambda normalize, x: normalize(x, 0.5)),
    "layer norm, no training": (normalize, X, lambda normalize, x: normalize(x, 1e-6, training=False)),
    "embedding": (take_rows, TABLE, lambda take_rows, table: take_rows(table, IDS)),
    "embedding, no training": (take_rows, TABLE, lambda take_rows, table: take_rows(table, IDS, training=False)),
    "labels": (take_labels, LOGITS, lambda take_labels, logits: take_labels(IDS, logits)),
    **{
        f"loss {e}": (token_losses, LOGITS, lambda token_losses, logits, e=e: token_losses(IDS, logits, e))
        for e in (0.0, 0.1, 0.7)
    },
}


@pytest.mark.parametrize("case", CASES)
def test_the_plain_form_gives_the_same(case):
    function, array, call = CASES[case]
    x = tf.constant(array)
    found = []
    for form in (function, function.__wrapped__):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = call(form, x)
            total = tf.reduce_sum(y * np.cos(np.arange(tf.size(y))).reshape(y.shape).astype("float32"))
        found.append((y, tf.convert_to_tensor(tape.gradient(total, x))))
    assert form is not function
    for fast, plain in zip(*found, strict=True):
        np.testing.assert_allclose(fast, plain, rtol=1e-5, atol=1e-5)


def test_every_replaced_function_is_tried():
    package = Path(tf_transformer.__file__).parent
    replaced = [file.read_text("utf-8").count("\n@on_tensorflow(") for file in package.rglob("*.py")]
    assert sum(replaced) == len({function for function, *_ in CASES.values()})
