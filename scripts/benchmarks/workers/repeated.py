"""Steps of `model.fit` on one random batch over and over."""

from typing import Any

import keras
import numpy as np
import tensorflow as tf
from protocol import serve


def random_ids(given: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """Return source ids [B, S] and target ids [B, T + 1]."""
    rng = np.random.default_rng(0)
    shapes = (given["batch"], given["source"]), (given["batch"], given["target"] + 1)
    source, target = (rng.integers(4, given["vocabulary"], shape, np.int32) for shape in shapes)
    return source, target


def repeated(batch: Any) -> tf.data.Dataset:
    """Return a dataset that repeats a batch; it has no thread for tuning, for which `fit` would have to wait."""
    options = tf.data.Options()
    options.autotune.enabled = False
    return tf.data.Dataset.from_tensors(batch).cache().repeat().with_options(options)


def serve_fit(model: keras.Model, data: Any, parameters: int) -> None:
    """Train for as many steps as each task asks for."""

    def steps(count: int) -> None:
        model.fit(data, steps_per_epoch=count, shuffle=False, verbose=0)

    serve(steps, parameters=parameters)
