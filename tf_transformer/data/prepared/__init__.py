"""Prepared corpora: their files, and what they say of themselves."""

from tf_transformer.data.prepared.manifest import Prepared

__all__ = ["Prepared"]
