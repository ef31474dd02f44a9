"""Greedy search, beam search and sampling over a step function, independent of any model."""

from tf_transformer.decoding.beam import Considered, beam_search, coverage_reward, length_penalty
from tf_transformer.decoding.greedy import greedy
from tf_transformer.decoding.hypotheses import Hypotheses, Rules, Sentences, Step
from tf_transformer.decoding.sampling import sample

__all__ = [
    "Considered",
    "Hypotheses",
    "Rules",
    "Sentences",
    "Step",
    "beam_search",
    "coverage_reward",
    "greedy",
    "length_penalty",
    "sample",
]
