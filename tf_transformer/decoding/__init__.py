"""Greedy search, beam search and sampling over a step function, independent of any model."""

from typing import TYPE_CHECKING

from tf_transformer._imports import lazily

if TYPE_CHECKING:
    from tf_transformer.decoding.beam import Considered, beam_search, coverage_reward, length_penalty
    from tf_transformer.decoding.greedy_search import greedy
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
__getattr__ = lazily(
    __name__,
    {
        "tf_transformer.decoding.beam": ("Considered", "beam_search", "coverage_reward", "length_penalty"),
        "tf_transformer.decoding.greedy_search": ("greedy",),
        "tf_transformer.decoding.hypotheses": ("Hypotheses", "Rules", "Sentences", "Step"),
        "tf_transformer.decoding.sampling": ("sample",),
    },
)
