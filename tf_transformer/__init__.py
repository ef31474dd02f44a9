"""The Transformer of "Attention Is All You Need" for machine translation, on TensorFlow and Keras 3."""

from typing import TYPE_CHECKING

from tf_transformer._imports import lazily, register
from tf_transformer.version import __version__

if TYPE_CHECKING:
    from tf_transformer.config import PRESETS as PRESETS
    from tf_transformer.model import Decoder as Decoder
    from tf_transformer.model import DecoderLayer as DecoderLayer
    from tf_transformer.model import Encoder as Encoder
    from tf_transformer.model import EncoderLayer as EncoderLayer
    from tf_transformer.model import Ensemble as Ensemble
    from tf_transformer.model import FeedForward as FeedForward
    from tf_transformer.model import MultiHeadAttention as MultiHeadAttention
    from tf_transformer.model import Transformer as Transformer
    from tf_transformer.model import causal_mask as causal_mask
    from tf_transformer.model import padding_mask as padding_mask
    from tf_transformer.model import positional_encoding as positional_encoding
    from tf_transformer.model import scaled_dot_product_attention as scaled_dot_product_attention
    from tf_transformer.runs.weights import load as load
    from tf_transformer.training import NoamSchedule as NoamSchedule
    from tf_transformer.translation.translator import Translator as Translator

_HOMES = {
    "tf_transformer.config": ("PRESETS",),
    "tf_transformer.model": (
        "Decoder",
        "DecoderLayer",
        "Encoder",
        "EncoderLayer",
        "Ensemble",
        "FeedForward",
        "MultiHeadAttention",
        "Transformer",
        "causal_mask",
        "padding_mask",
        "positional_encoding",
        "scaled_dot_product_attention",
    ),
    "tf_transformer.runs.weights": ("load",),
    "tf_transformer.training": ("NoamSchedule",),
    "tf_transformer.translation.translator": ("Translator",),
}
__getattr__ = lazily(__name__, _HOMES)
__all__ = [*sorted(name for names in _HOMES.values() for name in names), "__version__"]


def __dir__() -> list[str]:
    return __all__


register()
