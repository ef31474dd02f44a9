"""From text to batches: corpora, preparation, encoding and batches."""

import importlib
from typing import TYPE_CHECKING, Any

from tf_transformer.data.corpora import read
from tf_transformer.data.pairs import Pairs

if TYPE_CHECKING:
    from tf_transformer.data.batches import Batches as Batches
    from tf_transformer.data.encoding import encode as encode
    from tf_transformer.data.plan import NO_PAIR as NO_PAIR
    from tf_transformer.data.token_pairs import TokenPairs as TokenPairs
    from tf_transformer.data.windows import Dropout as Dropout

_MODULE_OF = {
    "NO_PAIR": "plan",
    "Batches": "batches",
    "Dropout": "windows",
    "TokenPairs": "token_pairs",
    "encode": "encoding",
}

__all__ = [
    "NO_PAIR",
    "Batches",
    "Dropout",
    "Pairs",
    "TokenPairs",
    "encode",
    "read",
]


def __getattr__(name: str) -> Any:
    """Import what needs TensorFlow or NumPy only when it is first used, because checking a split needs neither."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
