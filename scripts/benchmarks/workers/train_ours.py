"""A training step of ours, through `model.fit`, as `tf-transformer train` runs it."""

from types import SimpleNamespace

import numpy as np
import tensorflow as tf
from protocol import random_ids, spec
from repeated import repeated, serve_fit

from tf_transformer.config import PRESETS, override
from tf_transformer.training.fit import make_trainer
from tf_transformer.training.strategy import distribute, make_strategy

given = spec()
sizes = {"input_vocab_size": given["vocabulary"], "target_vocab_size": given["vocabulary"], "dropout_rate": 0.1}
config = override(PRESETS[given["preset"]], {"model": sizes, "training": {"mixed_precision": given["dtype"]}})
x, y = random_ids(given)
weights = np.full(given["batch"], 1 / (given["batch"] * given["target"]), np.float32)
if given.get("deterministic"):
    tf.config.experimental.enable_op_determinism()
    tf.random.set_seed(0)
name = given.get("strategy", "auto")
strategy = make_strategy(name) if name else tf.distribute.get_strategy()
with strategy.scope():
    trainer = make_trainer(config)
batch = repeated(((x, y[:, :-1]), y[:, 1:], weights))
data = distribute(SimpleNamespace(dataset=lambda *part, **options: batch), strategy)
serve_fit(trainer, data, trainer.model.count_params())
