"""Preparing a corpus: read, filtered, tokenised and written once, by several processes."""

from tf_transformer.data.preparing.plan import Plan, plan_of
from tf_transformer.data.preparing.prepare import prepare
from tf_transformer.data.preparing.result import fingerprints_of

__all__ = ["Plan", "fingerprints_of", "plan_of", "prepare"]
