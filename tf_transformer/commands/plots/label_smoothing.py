"""`tf-transformer plot label-smoothing`."""

import argparse
from typing import TYPE_CHECKING

from tf_transformer.commands.common.quiet_tensorflow import import_tensorflow
from tf_transformer.errors import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SUMMARY = "Label smoothing: the targets, and the loss of a growing confidence (paper 5.4)."
EXAMPLE = "tf-transformer plot label-smoothing --smoothing 0.1 0.4 --output label_smoothing.svg"
LABELS, VOCABULARY = (4, 3, 5, 0), 6
"""The tokens of the picture of targets: three, and padding."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what this kind of picture takes."""
    parser.add_argument(
        "--smoothing",
        type=float,
        nargs="+",
        default=[0.1, 0.4],
        metavar="E",
        help="share of the smoothing, at least 0 and below 1 (default: 0.1 0.4)",
    )


def figure(options: argparse.Namespace) -> "Figure":
    """Return the picture."""
    if not all(0 <= smoothing < 1 for smoothing in options.smoothing):
        raise InputError(f"--smoothing must be at least 0 and below 1. Received: {options.smoothing}")
    import_tensorflow()
    import numpy as np
    import tensorflow as tf

    from tf_transformer import plotting
    from tf_transformer.training.loss import token_losses

    labels = np.array([LABELS])
    logits = tf.Variable(tf.zeros([*labels.shape, VOCABULARY]))
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(token_losses(labels, logits, options.smoothing[0]))
    # Where the gradient is 0 the model gives the target: softmax(logits) - gradient, for labels that are not padding.
    targets = (tf.nn.softmax(logits) - tape.gradient(loss, logits))[0].numpy() * (labels[0] != 0)[:, None]

    confidence = np.linspace(0.01, 0.999, 200)
    probabilities = np.repeat((1 - confidence)[:, None] / (VOCABULARY - 2), VOCABULARY, axis=1)
    probabilities[:, 1], probabilities[:, 0] = confidence, 1e-9  # the right token; padding, which gets no share
    right = np.ones([1, len(confidence)], np.int32)
    losses = {
        f"smoothing {smoothing:g}": token_losses(right, np.log(probabilities)[None], smoothing)[0].numpy()
        for smoothing in (0.0, *options.smoothing)
    }
    return plotting.label_smoothing(targets, confidence, losses)
