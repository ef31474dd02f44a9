"""Translation with an export for LiteRT, which needs only NumPy, SentencePiece and ai-edge-litert."""

from tf_transformer.errors import missing_extra

try:
    import ai_edge_litert as _  # noqa: F401
except ImportError as error:
    raise missing_extra("tf_transformer.litert", "litert", error) from None

from tf_transformer.litert.translator import Translator

__all__ = ["Translator"]
