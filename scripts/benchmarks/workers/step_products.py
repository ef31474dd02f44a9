"""Only the matrix products of a decoding step, by TensorFlow's own kernels."""

import tensorflow as tf
from protocol import serve, spec

given = spec()
d, inner = given["d_model"], given["dff"]
shapes = [(d, 3 * d), (d, d), (d, d), (d, d), (d, inner), (inner, d)]
kernels = [tf.Variable(tf.random.normal(shape)) for _ in range(given["num_layers"]) for shape in shapes]
table = tf.Variable(tf.random.normal([given["vocabulary"], d]))
STEPS = 20


@tf.function(input_signature=[tf.TensorSpec([None, d]), tf.TensorSpec([None, inner])])
def steps(x: tf.Tensor, wide: tf.Tensor) -> tf.Tensor:
    """Multiply rows by every weight of the decoder and by the token table, once for each step."""
    total = tf.constant(0.0)
    for _ in tf.range(STEPS):
        for kernel in kernels:
            total += tf.matmul(x if kernel.shape[0] == d else wide, kernel)[0, 0]
        total += tf.matmul(table, x, transpose_b=True)[0, 0]
    return total


def work(rows: int) -> None:
    """Make the products of so many steps with so many rows. Each product reads other weights than the last one."""
    steps(tf.ones([rows, d]), tf.ones([rows, inner])).numpy()


serve(work, steps=STEPS)
