"""From text to batches: corpora, encoding, batches."""

import importlib
from typing import TYPE_CHECKING, Any

from tf_transformer.data.corpora import read
from tf_transformer.data.pairs import Pairs

if TYPE_CHECKING:
    from tf_transformer.data.batches import NO_PAIR as NO_PAIR
    from tf_transformer.data.batches import Batches as Batches
    from tf_transformer.data.encoding import TokenPairs as TokenPairs
    from tf_transformer.data.encoding import cut_by_chance as cut_by_chance
    from tf_transformer.data.encoding import encode as encode

_MODULE_OF = {
    "NO_PAIR": "batches",
    "Batches": "batches",
    "TokenPairs": "encoding",
    "cut_by_chance": "encoding",
    "encode": "encoding",
}

__all__ = [
    "NO_PAIR",
    "Batches",
    "Pairs",
    "TokenPairs",
    "cut_by_chance",
    "encode",
    "read",
]


def __getattr__(name: str) -> Any:
    """Import what needs TensorFlow when it is first used: whether a corpus has a split is known without it."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
