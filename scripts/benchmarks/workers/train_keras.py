"""A training step of ours by plain `model.fit`, on the backend that KERAS_BACKEND names, and a product there."""

import time

import keras
import numpy as np
from keras import ops
from protocol import random_ids, serve, spec

from tf_transformer import NoamSchedule, Transformer
from tf_transformer.training import SmoothedCrossEntropy

PRODUCT = 4096

given = spec()
keras.utils.set_random_seed(0)
vocabularies = {"input_vocab_size": given["vocabulary"], "target_vocab_size": given["vocabulary"]}
sizes = {name: given[name] for name in ("num_layers", "d_model", "num_heads", "dff")}
policy = "mixed_bfloat16" if given["dtype"] == "bfloat16" else "float32"
model = Transformer(**sizes, **vocabularies, share_embeddings="all", dtype=policy)
schedule = NoamSchedule(given["d_model"])
model.compile(keras.optimizers.Adam(schedule, beta_2=0.98, epsilon=1e-9), SmoothedCrossEntropy(0.1), jit_compile="auto")
x, y = random_ids(given)
weights = np.full(given["batch"], 1 / (given["batch"] * given["target"]), np.float32)


def steps(count: int) -> None:
    """Train for so many steps."""
    source, target, each = (np.concatenate([array] * count) for array in (x, y, weights))
    batch = {"batch_size": given["batch"], "shuffle": False, "verbose": 0}
    model.fit((source, target[:, :-1]), target[:, 1:], sample_weight=each, **batch)


def product() -> float:
    """Return the GFLOP/s of the fastest of a few products of matrices."""
    matrix, found = ops.cast(keras.random.normal((PRODUCT, PRODUCT)), given["dtype"]), []
    for _ in range(5):
        start = time.perf_counter()
        ops.convert_to_numpy(ops.matmul(matrix, matrix)[0, 0])
        found.append(2e-9 * PRODUCT**3 / (time.perf_counter() - start))
    return max(found)


model.build((x.shape, x.shape))
serve(steps, parameters=model.count_params(), product=product())
