"""Translation with an export for LiteRT, which needs only NumPy, SentencePiece and ai-edge-litert."""

try:
    import ai_edge_litert as _  # noqa: F401
except ImportError:
    raise ImportError("tf_transformer.litert needs the extra litert: pip install 'tf-transformer[litert]'") from None

from tf_transformer.litert.translator import Translator

__all__ = ["Translator"]
