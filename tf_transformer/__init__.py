"""The Transformer of "Attention Is All You Need" for machine translation, on TensorFlow and Keras 3."""

import importlib
from typing import TYPE_CHECKING, Any

from tf_transformer.registration import register
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

_HOME = {
    "config": ("PRESETS",),
    "model": (
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
    "runs.weights": ("load",),
    "training": ("NoamSchedule",),
    "translation.translator": ("Translator",),
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

__all__ = [*sorted(_MODULE_OF), "__version__"]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: TensorFlow takes seconds, and `tf-transformer --help` needs none."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULE_OF[name]}"), name)


def __dir__() -> list[str]:
    return __all__


register()
