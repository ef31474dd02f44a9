"""Beam search that records what it considers, for pictures of it."""

from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tf_transformer.decoding.beam import BeamSearch, Continuations, State
from tf_transformer.decoding.hypotheses import Hypotheses, Sentences
from tf_transformer.decoding.loops import until_done


class Considered(NamedTuple):
    """The candidates of every step of a search, C of them for each of B sentences, the most probable first."""

    tokens: tf.Tensor
    """[B, T, C], int32: the token that continues a hypothesis"""
    parents: tf.Tensor
    """[B, T, C], int32: which of the K hypotheses it continues"""
    places: tf.Tensor
    """[B, T, C], int32: which of the K hypotheses of the next step it is; -1 if the search does not go on with it"""
    log_probabilities: tf.Tensor
    """[B, T, C], float32, of the hypothesis with this token; -inf where there is none"""
    scores: tf.Tensor
    """[B, T, C], float32: the score of a hypothesis that this token finishes; -inf for all others"""


class RecordedBeamSearch(BeamSearch):
    """Beam search that returns its `Considered` candidates as well. No sentence leaves the batch."""

    def considered(self, cache: Any, sentences: Sentences) -> tuple[Hypotheses, Considered]:
        """Search as `__call__` does, and return what was considered as well."""
        sentences = self.checked(sentences)
        state = until_done(self.advance, self.is_live, self.begin(cache, sentences))
        return self.result(state.final, sentences), state.extra

    def begin(self, cache: Any, sentences: Sentences) -> State:
        """As in `BeamSearch`, with nothing considered yet."""
        size = tf.shape(sentences.limits)[0]
        ids, values = (tf.zeros([size, 0, 2 * self.beam_size], dtype) for dtype in (tf.int32, tf.float32))
        return super().begin(cache, sentences)._replace(extra=Considered(ids, ids, ids, values, values))

    def keep(self, length: tf.Tensor, state: State, new: Continuations) -> State:
        """As in `BeamSearch`, and record the continuations."""
        kept = super().keep(length, state, new)
        is_alive = kept.log_probabilities > -np.inf
        is_it = self.best_unfinished(new)[:, None] == tf.range(tf.shape(new.tokens)[1])[:, None]
        indices = tf.where(is_it & is_alive[:, None], tf.range(self.beam_size), -1)
        step = Considered(new.tokens, new.parents, tf.reduce_max(indices, axis=2), new.log_probabilities, new.scores)
        both = zip(state.extra, step, strict=True)
        return kept._replace(extra=Considered(*(tf.concat([old, one[:, None]], axis=1) for old, one in both)))
