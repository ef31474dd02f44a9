"""Search for a translation over a step function; knows no model."""

from tf_transformer.decoding.greedy import Hypotheses, Step, greedy

__all__ = ["Hypotheses", "Step", "greedy"]
