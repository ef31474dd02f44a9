"""Training steps of `small` with any sizes."""

import functools

import numpy as np
import tensorflow as tf
from protocol import random_ids, serve

from tf_transformer.config import PRESETS, override
from tf_transformer.training.fit import make_trainer


@functools.cache
def step(batch: int, length: int, vocabulary: int, num_layers: int) -> tf.types.experimental.GenericFunction:
    """Return a function that makes one training step."""
    sizes = dict.fromkeys(("input_vocab_size", "target_vocab_size"), vocabulary)
    trainer = make_trainer(override(PRESETS["small"], {"model": sizes | {"num_layers": num_layers}}))
    source, target = random_ids({"batch": batch, "source": length, "target": length, "vocabulary": vocabulary})
    weights = np.full(batch, 1 / (batch * length), np.float32)
    data = tf.nest.map_structure(tf.constant, ((source, target[:, :-1]), target[:, 1:], weights))

    @tf.function
    def function() -> dict[str, tf.Tensor]:
        return trainer.train_step(data)

    return function


def work(**shape: int) -> None:
    """Make one training step."""
    step(**shape)()["loss"].numpy()


serve(work)
