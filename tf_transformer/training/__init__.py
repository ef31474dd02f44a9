"""Training with `model.fit`: schedule, loss, metrics and callbacks, and all the steps from a config to a run."""

from tf_transformer.runs.averaging import average_checkpoints
from tf_transformer.training.loss import Perplexity, SmoothedCrossEntropy, TokenAccuracy, TokenLoss
from tf_transformer.training.optimizer import Adam, Muon
from tf_transformer.training.resume import variables_of
from tf_transformer.training.schedule import NoamSchedule
from tf_transformer.training.strategy import distribute
from tf_transformer.training.trainer import Trainer, vary_dropout

__all__ = [
    "Adam",
    "Muon",
    "NoamSchedule",
    "Perplexity",
    "SmoothedCrossEntropy",
    "TokenAccuracy",
    "TokenLoss",
    "Trainer",
    "average_checkpoints",
    "distribute",
    "variables_of",
    "vary_dropout",
]
