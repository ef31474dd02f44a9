"""Beam search for hypotheses that must contain phrases, with dynamic beam allocation (Post and Vilar 2018)."""

from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tf_transformer.decoding.beam import BeamSearch, State
from tf_transformer.decoding.hypotheses import Sentences, prefix_at


class PhraseProgress(NamedTuple):
    """How far each of K hypotheses has written the C phrases of its sentence, of at most L tokens each."""

    matched: tf.Tensor
    """[b, K, C, L], boolean: whether its last l + 1 tokens are the first l + 1 of the phrase"""
    met: tf.Tensor
    """[b, K, C], boolean: whether it contains the whole phrase; true for a phrase without tokens"""

    def are_all_met(self) -> tf.Tensor:
        """Return [b, K], boolean: whether each hypothesis contains all phrases."""
        return tf.reduce_all(self.met, axis=2)


class ConstrainedBeamSearch(BeamSearch):
    """Beam search for sentences that have `phrases`, which it writes in any order.

    A hypothesis cannot end before it contains all phrases of its sentence. The beam is shared out among hypotheses by
    how many of these tokens they have. So whatever the beam size is, the phrases are found if the limit has room for
    all of them and the end token. A prefix comes first. A sentence with limit 0 has its empty hypothesis only if it has
    no phrases.
    """

    takes_phrases = True

    def begin(self, cache: Any, sentences: Sentences) -> State:
        """As in `BeamSearch`; `extra` is the `PhraseProgress` of the hypotheses."""
        # One phrase and one token more, so that there is a largest of them.
        phrases = tf.pad(sentences.phrases, [[0, 0], [0, 1], [0, 1]])
        state = super().begin(cache, sentences._replace(phrases=phrases))
        return state._replace(extra=no_progress(phrases, self.beam_size))

    def allowed(self, position: tf.Tensor, state: State, logits: tf.Tensor) -> tf.Tensor:
        """As in `BeamSearch`, without the end token for a hypothesis that lacks a phrase."""
        may_end = tf.reshape(state.extra.are_all_met(), [-1, 1])
        is_end = tf.range(tf.shape(logits)[1]) == self.rules.end
        return tf.where(is_end & ~may_end, -np.inf, super().allowed(position, state, logits))

    def best_tokens(self, position: tf.Tensor, state: State, logits: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """As in `BeamSearch`, with the tokens that continue phrases after them."""
        values, tokens = super().best_tokens(position, state, logits)
        wanted = tf.reshape(next_tokens(state.extra, state.sentences.phrases), [tf.shape(logits)[0], -1])
        return with_wanted(values, tokens, wanted, logits, position, self.prefix(state))

    def choose(
        self, state: State, log_probabilities: tf.Tensor, tokens: tf.Tensor, is_final: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor, Any]:
        """As in `BeamSearch`, of each bank."""
        given = (state.extra, state.sentences.phrases, log_probabilities, tokens, is_final)
        return best_of_banks(*given, count=2 * self.beam_size)

    def may_be_empty(self, sentences: Sentences) -> tf.Tensor:
        """As in `BeamSearch`; a sentence with phrases has no empty hypothesis."""
        return super().may_be_empty(sentences) & tf.reduce_all(sentences.phrases == 0, axis=[1, 2])


def no_progress(phrases: tf.Tensor, width: int) -> PhraseProgress:
    """Return the progress of `width` hypotheses without tokens.

    Args:
        phrases: [b, C, L], padded with 0; none of them is L tokens long.
        width: K.
    """
    of_each = tf.repeat(phrases[:, None], width, axis=1)
    return PhraseProgress(tf.zeros_like(of_each, tf.bool), tf.reduce_all(of_each == 0, axis=3))


def advanced(progress: PhraseProgress, phrases: tf.Tensor, tokens: tf.Tensor) -> PhraseProgress:
    """Return the progress of hypotheses after one more token [b, K] each."""
    # A phrase of which l tokens stood at the end goes on if its next token follows. All l are followed at once, so
    # that a phrase is found wherever it begins ("shift-and", Baeza-Yates and Gonnet 1992).
    of_each = phrases[:, None]
    matched = _before(progress.matched) & (of_each == tokens[:, :, None, None]) & (of_each != 0)
    follows = tf.concat([of_each[..., 1:], tf.zeros_like(of_each[..., :1])], axis=3)
    return PhraseProgress(matched, progress.met | tf.reduce_any(matched & (follows == 0), axis=3))


def next_tokens(progress: PhraseProgress, phrases: tf.Tensor) -> tf.Tensor:
    """Return [b, K, C]: the token that continues each phrase, its first where none has begun; 0 if it is met."""
    width = tf.shape(progress.met)[1]
    following = tf.gather(tf.repeat(phrases[:, None], width, axis=1), _begun(progress), axis=3, batch_dims=3)
    return tf.where(progress.met, 0, following)


def count_after(progress: PhraseProgress, phrases: tf.Tensor, tokens: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Return what hypotheses would have of their phrases after one more token, for each of m tokens [b, K, m].

    What a token would add is summed up over the tokens of the phrases, not compared with each of them, so that the cost
    grows with their number and not with its product with the number of candidates.

    Returns:
        The tokens of the phrases that are met, and of the one that is begun, if any: [b, K, m], int32; and whether all
        are met: [b, K, m], boolean.
    """
    size, width, _, length = tf.unstack(tf.shape(progress.matched))
    unmet = ~progress.met
    follows = tf.concat([phrases[..., 1:], tf.zeros_like(phrases[..., :1])], axis=2)
    lengths = tf.math.count_nonzero(phrases, axis=2, dtype=tf.int32)
    last = tf.reduce_sum(tf.where(follows == 0, phrases, 0), axis=2, keepdims=True)
    # The tokens that would continue a phrase, wherever in it; and those of them that would complete it.
    continues = _before(progress.matched) & (phrases != 0)[:, None] & unmet[..., None]
    completes = continues & (follows == 0)[:, None]
    is_completed = tf.reduce_any(completes, axis=3, keepdims=True) & (phrases == last)[:, None]
    begun = tf.where(continues & ~is_completed, tf.range(1, length + 1), 0)
    gained = tf.where(completes, lengths[:, None, :, None], 0)
    # Equal tokens have one place in what is summed up; all others have none.
    known = tf.sort(tf.reshape(phrases, [size, -1]), axis=1)
    count = tf.shape(known)[1]
    rows = count * tf.reshape(tf.range(size * width), [size, width, 1])
    places = rows + tf.searchsorted(known, tf.reshape(phrases, [size, -1]))[:, None]

    def collected(combine: Any, values: tf.Tensor) -> tf.Tensor:
        return combine(tf.reshape(values, [-1]), tf.reshape(places, [-1]), size * width * count)

    place = tf.minimum(tf.searchsorted(known, tf.reshape(tokens, [size, -1])), count - 1)
    is_known = tf.reshape(tf.gather(known, place, batch_dims=1), tf.shape(tokens)) == tokens
    place = rows + tf.reshape(place, tf.shape(tokens))

    def at_tokens(combine: Any, values: tf.Tensor) -> tf.Tensor:
        return tf.where(is_known & (tokens != 0), tf.gather(collected(combine, values), place), 0)

    total = tf.math.unsorted_segment_sum
    met = tf.reduce_sum(tf.where(progress.met, lengths[:, None], 0), axis=2, keepdims=True)
    met += at_tokens(total, gained) + at_tokens(tf.math.unsorted_segment_max, begun)
    left = tf.math.count_nonzero(unmet, axis=2, keepdims=True, dtype=tf.int32)
    return met, at_tokens(total, tf.cast(completes, tf.int32)) == left


def with_wanted(
    values: tf.Tensor, tokens: tf.Tensor, wanted: tf.Tensor, logits: tf.Tensor, position: tf.Tensor, prefix: Any
) -> tuple[tf.Tensor, tf.Tensor]:
    """Return the best tokens [R, choices] of each row and their logits, with the wanted ones [R, C] after them.

    What is wanted is allowed even if rules refuse it, except by the prefix. It is left out (-inf) where it is there
    already, and where nothing is wanted (0).
    """
    wanted = tf.sort(wanted, axis=1)  # so that equal ones are neighbours
    is_there = tf.reduce_any((wanted[:, :, None] == tokens[:, None]) & (values > -np.inf)[:, None], axis=2)
    is_there |= tf.concat([tf.zeros_like(is_there[:, :1]), wanted[:, 1:] == wanted[:, :-1]], axis=1)
    refused = is_there | (wanted == 0)
    if tf.is_tensor(prefix):
        here = prefix_at(prefix, position)[:, None]
        refused |= (here != 0) & (here != wanted)
    added = tf.where(refused, -np.inf, tf.gather(logits, wanted, batch_dims=1))
    return tf.concat([values, added], axis=1), tf.concat([tokens, wanted], axis=1)


def best_of_banks(
    progress: PhraseProgress,
    phrases: tf.Tensor,
    log_probabilities: tf.Tensor,
    tokens: tf.Tensor,
    is_final: tf.Tensor,
    count: int,
) -> tuple[tf.Tensor, tf.Tensor, PhraseProgress]:
    """Choose `count` of M candidates [b, M]: the best of each bank, then the second best of each, and so on.

    A bank has the candidates with equally many tokens of phrases; of equal rank, those with the most come first. So the
    candidate that is ahead is always kept, which guarantees all phrases, and the others are left to the model.

    Args:
        progress: of the K hypotheses that are continued.
        phrases: [b, C, L], padded with 0.
        log_probabilities: of the candidates, M / K for each hypothesis; -inf where there is none.
        tokens: [b, M], what they add.
        is_final: [b, M], boolean: whether they end with it; those that lack a phrase are left out then.
        count: at most M.

    Returns:
        The log-probabilities and the indices of those chosen, [b, count] each, and their progress.
    """
    size, width = tf.shape(progress.met)[0], tf.shape(progress.met)[1]
    total = tf.shape(tokens)[1]
    banks, are_all_met = count_after(progress, phrases, tf.reshape(tokens, [size, width, -1]))
    left = tf.where(is_final & ~tf.reshape(are_all_met, [size, total]), -np.inf, log_probabilities)
    ranked, order = tf.math.top_k(left, total)
    banks = tf.gather(tf.reshape(banks, [size, total]), order, batch_dims=1)
    # Bank by bank, so that the rank within a bank is the distance from its first.
    by_bank = tf.argsort(banks, axis=1, stable=True)
    ranked, order, banks = (tf.gather(tensor, by_bank, batch_dims=1) for tensor in (ranked, order, banks))
    rank = tf.range(total) - tf.searchsorted(banks, banks)
    most = tf.shape(phrases)[1] * tf.shape(phrases)[2]
    last = tf.where(ranked > -np.inf, 0, total)
    _, chosen = tf.math.top_k(-((rank + last) * (most + 1) + most - banks), count)
    best, chosen = (tf.gather(tensor, chosen, batch_dims=1) for tensor in (ranked, order))
    parents = chosen // (total // width)
    of_chosen = tf.nest.map_structure(lambda tensor: tf.gather(tensor, parents, batch_dims=1), progress)
    return best, chosen, advanced(of_chosen, phrases, tf.gather(tokens, chosen, batch_dims=1))


def _before(matched: tf.Tensor) -> tf.Tensor:
    """[b, K, C, L], boolean: whether all tokens of the phrase before each one stand at the end of a hypothesis."""
    return tf.concat([tf.ones_like(matched[..., :1]), matched[..., :-1]], axis=3)


def _begun(progress: PhraseProgress) -> tf.Tensor:
    """Return [b, K, C], int32: how many tokens of each phrase stand at the end of a hypothesis."""
    counts = tf.range(1, tf.shape(progress.matched)[3] + 1)
    return tf.reduce_max(tf.where(progress.matched, counts, 0), axis=3)
