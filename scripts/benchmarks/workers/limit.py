"""The limits of this machine: matrix products by TensorFlow, and reading memory."""

import time
from collections.abc import Callable

import tensorflow as tf
from protocol import serve, spec

spec()
SIZE = 2048
BYTES = 2**29
dtypes = (tf.float32, tf.bfloat16)
squares = {dtype: tf.cast(tf.random.normal([SIZE, SIZE]), dtype) for dtype in dtypes}
block = tf.ones([BYTES // 4])
product = tf.function(lambda matrix: tf.matmul(matrix, matrix))
total = tf.function(lambda block: tf.reduce_sum(block))


def seconds(work: Callable[[], tf.Tensor], times: int) -> float:
    """Return the seconds of the fastest of a few runs."""
    found = []
    for _ in range(times):
        start = time.perf_counter()
        work().numpy()
        found.append(time.perf_counter() - start)
    return min(found)


def work() -> dict[str, float]:
    """Measure each limit once."""
    flops = {dtype: 2 * SIZE**3 / seconds(lambda m=matrix: product(m), 3) for dtype, matrix in squares.items()}
    return {
        "float32 product, GFLOP/s": flops[tf.float32] / 1e9,
        "bfloat16 product, GFLOP/s": flops[tf.bfloat16] / 1e9,
        "memory read, GB/s": BYTES / seconds(lambda: total(block), 3) / 1e9,
    }


serve(work)
