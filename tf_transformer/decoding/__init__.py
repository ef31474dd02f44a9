"""Greedy search, beam search and sampling over a step function, independent of any model."""

from typing import TYPE_CHECKING

from tf_transformer._imports import lazily

if TYPE_CHECKING:
    from tf_transformer.decoding.beam import BeamSearch as BeamSearch
    from tf_transformer.decoding.beam import coverage_reward as coverage_reward
    from tf_transformer.decoding.beam import length_penalty as length_penalty
    from tf_transformer.decoding.constraints import ConstrainedBeamSearch as ConstrainedBeamSearch
    from tf_transformer.decoding.greedy_search import greedy as greedy
    from tf_transformer.decoding.hypotheses import Hypotheses as Hypotheses
    from tf_transformer.decoding.hypotheses import Rules as Rules
    from tf_transformer.decoding.hypotheses import Sentences as Sentences
    from tf_transformer.decoding.hypotheses import Step as Step
    from tf_transformer.decoding.recording import Considered as Considered
    from tf_transformer.decoding.recording import RecordedBeamSearch as RecordedBeamSearch
    from tf_transformer.decoding.sampling import sample as sample

_HOMES = {
    "tf_transformer.decoding.beam": ("BeamSearch", "coverage_reward", "length_penalty"),
    "tf_transformer.decoding.constraints": ("ConstrainedBeamSearch",),
    "tf_transformer.decoding.greedy_search": ("greedy",),
    "tf_transformer.decoding.hypotheses": ("Hypotheses", "Rules", "Sentences", "Step"),
    "tf_transformer.decoding.recording": ("Considered", "RecordedBeamSearch"),
    "tf_transformer.decoding.sampling": ("sample",),
}
__getattr__ = lazily(__name__, _HOMES)
__all__ = sorted(name for names in _HOMES.values() for name in names)
