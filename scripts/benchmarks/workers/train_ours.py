"""A training step of ours, through `model.fit`, as `tf-transformer train` runs it."""

import numpy as np
from protocol import serve, spec
from repeated import repeated

from tf_transformer.config import PRESETS
from tf_transformer.settings import override
from tf_transformer.training.fit import make_trainer
from tf_transformer.training.strategy import distribute, make_strategy

given = spec()
sizes = {"input_vocab_size": given["vocabulary"], "target_vocab_size": given["vocabulary"], "dropout_rate": 0.1}
config = override(PRESETS[given["preset"]], {"model": sizes, "training": {"mixed_precision": given["dtype"]}})
rng = np.random.default_rng(0)
batch, source, target = given["batch"], given["source"], given["target"]
x = rng.integers(4, given["vocabulary"], (batch, source), np.int32)
y = rng.integers(4, given["vocabulary"], (batch, target + 1), np.int32)
weights = np.full(batch, 1 / (batch * target), np.float32)
with make_strategy().scope():
    trainer = make_trainer(config)
data = distribute(repeated(((x, y[:, :-1]), y[:, 1:], weights)), trainer.distribute_strategy)


def steps(count: int) -> None:
    """Train so many steps."""
    trainer.fit(data, steps_per_epoch=count, shuffle=False, verbose=0)


serve(steps, parameters=trainer.trained.count_params())
