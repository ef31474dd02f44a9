"""A training step of OpenNMT-tf's Transformer with its own loss and Adam, run as one graph like in its `Trainer`."""

import numpy as np
import opennmt
import tensorflow as tf
from opennmt_model import opennmt_model
from protocol import random_ids, serve, spec

given = spec()
if given["dtype"] != "float32":
    raise ValueError(f"OpenNMT-tf trains in float32 on a CPU. Received: {given['dtype']}")
model = opennmt_model(given, label_smoothing=0.1)
optimizer = opennmt.optimizers.make_optimizer("Adam", 1e-4, beta_2=0.98, epsilon=1e-9)
source, target = (tf.constant(ids) for ids in random_ids(given))


def lengths(ids: tf.Tensor) -> tf.Tensor:
    """Return the lengths of rows without padding."""
    return tf.fill([ids.shape[0]], ids.shape[1])


features = {"ids": source, "length": lengths(source)}
labels = {"ids": target[:, :-1], "ids_out": target[:, 1:], "length": lengths(target[:, 1:])}


@tf.function
def step() -> tf.Tensor:
    """Update the weights."""
    return model.train(features, labels, optimizer)


def steps(count: int) -> None:
    """Train for so many steps."""
    for _ in range(count):
        loss = step()
    loss.numpy()


serve(steps, parameters=int(sum(np.prod(weight.shape) for weight in model.trainable_weights)))
