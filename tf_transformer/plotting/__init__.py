"""Pictures of what the paper describes and of what a model does: functions that take arrays and give figures.

They need the extra `plots`, and nothing of TensorFlow. `save` writes a figure as SVG or PNG.
"""

from tf_transformer.plotting.architecture import architecture
from tf_transformer.plotting.attention import attention
from tf_transformer.plotting.beam import beam
from tf_transformer.plotting.history import history
from tf_transformer.plotting.label_smoothing import label_smoothing
from tf_transformer.plotting.lengths import lengths
from tf_transformer.plotting.masks import masks
from tf_transformer.plotting.positions import positions
from tf_transformer.plotting.schedule import schedule
from tf_transformer.plotting.style import save

__all__ = [
    "architecture",
    "attention",
    "beam",
    "history",
    "label_smoothing",
    "lengths",
    "masks",
    "positions",
    "save",
    "schedule",
]
