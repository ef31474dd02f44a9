"""Training by `model.fit`: schedule, loss and metrics, callbacks, and the whole road from a config to a run."""

from tf_transformer.training.loss import Perplexity, SmoothedCrossEntropy, TokenAccuracy, TokenLoss
from tf_transformer.training.schedule import NoamSchedule

__all__ = ["NoamSchedule", "Perplexity", "SmoothedCrossEntropy", "TokenAccuracy", "TokenLoss"]
