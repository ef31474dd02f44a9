"""SentencePiece: without TensorFlow (`Vocabulary`), and inside the graph (`Tokenizer`)."""

from typing import TYPE_CHECKING

from tf_transformer._imports import lazily

if TYPE_CHECKING:
    from tf_transformer.config.special_tokens import END, PAD, START, UNKNOWN
    from tf_transformer.tokenizers.in_graph import Tokenizer, text_of
    from tf_transformer.tokenizers.vocabulary import SPACE_MARK, Vocabulary, train_tokenizer

__all__ = ["END", "PAD", "SPACE_MARK", "START", "UNKNOWN", "Tokenizer", "Vocabulary", "text_of", "train_tokenizer"]
__getattr__ = lazily(
    __name__,
    {
        "tf_transformer.config.special_tokens": ("END", "PAD", "START", "UNKNOWN"),
        "tf_transformer.tokenizers.in_graph": ("Tokenizer", "text_of"),
        "tf_transformer.tokenizers.vocabulary": ("SPACE_MARK", "Vocabulary", "train_tokenizer"),
    },
)
