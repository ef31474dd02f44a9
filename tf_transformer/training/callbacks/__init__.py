"""The callbacks of `model.fit`."""

from tf_transformer.training.callbacks.order import EpochOrder, StopOnNaN
from tf_transformer.training.callbacks.progress import History, ProgressLogger, TensorBoard, Throughput
from tf_transformer.training.callbacks.saving import GoOnMeasuring, SaveCheckpoints, SaveOnSignal
from tf_transformer.training.callbacks.validation import (
    EarlyStopping,
    LowerOnPlateau,
    TranslateValidation,
    ValidateAverage,
)

__all__ = [
    "EarlyStopping",
    "EpochOrder",
    "GoOnMeasuring",
    "History",
    "LowerOnPlateau",
    "ProgressLogger",
    "SaveCheckpoints",
    "SaveOnSignal",
    "StopOnNaN",
    "TensorBoard",
    "Throughput",
    "TranslateValidation",
    "ValidateAverage",
]
