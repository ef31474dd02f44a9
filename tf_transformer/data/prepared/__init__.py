"""Prepared corpora: their files, and what they say of themselves."""

from tf_transformer.data.prepared.manifest import MANIFEST, Prepared, is_prepared

__all__ = ["MANIFEST", "Prepared", "is_prepared"]
