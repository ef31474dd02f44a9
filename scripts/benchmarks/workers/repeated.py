"""Steps of `model.fit` on one random batch over and over."""

from typing import Any

import keras
import tensorflow as tf
from protocol import serve


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
