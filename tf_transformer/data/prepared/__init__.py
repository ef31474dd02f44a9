"""Prepared corpora: their files and their manifest."""

from tf_transformer.data.prepared.manifest import Prepared

__all__ = ["Prepared"]
