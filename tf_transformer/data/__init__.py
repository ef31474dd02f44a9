"""From text to batches: corpora, preparation, encoding and batches."""

from typing import TYPE_CHECKING

from tf_transformer._imports import lazily
from tf_transformer.data.corpora import read
from tf_transformer.data.pairs import Pairs

if TYPE_CHECKING:
    from tf_transformer.data.batches import Batches as Batches
    from tf_transformer.data.encoding import encode as encode
    from tf_transformer.data.plan import NO_PAIR as NO_PAIR
    from tf_transformer.data.token_pairs import TokenPairs as TokenPairs
    from tf_transformer.data.windows import Dropout as Dropout

__all__ = ["NO_PAIR", "Batches", "Dropout", "Pairs", "TokenPairs", "encode", "read"]
__getattr__ = lazily(
    __name__,
    {
        "tf_transformer.data.batches": ("Batches",),
        "tf_transformer.data.encoding": ("encode",),
        "tf_transformer.data.plan": ("NO_PAIR",),
        "tf_transformer.data.token_pairs": ("TokenPairs",),
        "tf_transformer.data.windows": ("Dropout",),
    },
)
