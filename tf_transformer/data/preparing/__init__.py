"""Preparing a corpus: several processes read, filter, tokenise and write it once."""

from tf_transformer.data.preparing.plan import Plan, plan_of
from tf_transformer.data.preparing.prepare import prepare
from tf_transformer.data.preparing.result import fingerprints_of

__all__ = ["Plan", "fingerprints_of", "plan_of", "prepare"]
