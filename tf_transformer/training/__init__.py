"""Training with `model.fit`: schedule, loss, metrics and callbacks, and all the steps from a config to a run.

Schedule, loss and metrics run on every backend of Keras; the rest needs TensorFlow.
"""

from typing import TYPE_CHECKING

from tf_transformer._imports import lazily

if TYPE_CHECKING:
    from tf_transformer.runs.averaging import average_checkpoints as average_checkpoints
    from tf_transformer.training.loss import Perplexity as Perplexity
    from tf_transformer.training.loss import SmoothedCrossEntropy as SmoothedCrossEntropy
    from tf_transformer.training.loss import TokenAccuracy as TokenAccuracy
    from tf_transformer.training.loss import TokenLoss as TokenLoss
    from tf_transformer.training.optimizer import Adam as Adam
    from tf_transformer.training.optimizer import Muon as Muon
    from tf_transformer.training.resume import variables_of as variables_of
    from tf_transformer.training.schedule import NoamSchedule as NoamSchedule
    from tf_transformer.training.strategy import distribute as distribute
    from tf_transformer.training.trainer import Trainer as Trainer
    from tf_transformer.training.trainer import vary_dropout as vary_dropout

_HOMES = {
    "tf_transformer.runs.averaging": ("average_checkpoints",),
    "tf_transformer.training.loss": ("Perplexity", "SmoothedCrossEntropy", "TokenAccuracy", "TokenLoss"),
    "tf_transformer.training.optimizer": ("Adam", "Muon"),
    "tf_transformer.training.resume": ("variables_of",),
    "tf_transformer.training.schedule": ("NoamSchedule",),
    "tf_transformer.training.strategy": ("distribute",),
    "tf_transformer.training.trainer": ("Trainer", "vary_dropout"),
}
__getattr__ = lazily(__name__, _HOMES)
__all__ = sorted(name for names in _HOMES.values() for name in names)
