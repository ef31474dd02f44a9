"""Beam search with a length penalty. By default it stops only when no unfinished hypothesis can still win."""

from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tf_transformer.decoding.constraints import best_of_banks, next_tokens, no_progress, with_wanted
from tf_transformer.decoding.hypotheses import (
    Hypotheses,
    Rules,
    Sentences,
    Step,
    add_token,
    no_tokens,
    repeat_until_done,
    token_before,
)
from tf_transformer.decoding.leaving import without_done


def length_penalty(length: Any, alpha: float, offset: float = 5.0) -> tf.Tensor:
    """Return the length penalty ((k + length) / (k + 1))^alpha, where k is the offset.

    A summed log-probability is divided by it. k = 5 gives the penalty of Wu et al. 2016, equation 14; k = 0 gives
    length^alpha, which Marian and transformers use.
    """
    return ((offset + tf.cast(length, tf.float32)) / (offset + 1.0)) ** alpha


def coverage_reward(covered: tf.Tensor) -> tf.Tensor:
    """Return the sum over source positions of log(min(attention, 1)), at most 0 (Wu et al. 2016, equation 14).

    Args:
        covered: [..., S], the attention that each position has received, summed over the target tokens.
    """
    return tf.reduce_sum(tf.math.log(tf.clip_by_value(covered, 1e-9, 1.0)), axis=-1)


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


class State(NamedTuple):
    """The state of the loop: K unfinished hypotheses for each of the b sentences that are still being searched."""

    sentences: Sentences
    """the b sentences"""
    places: tf.Tensor
    """[b]: the row of `results` that belongs to each sentence"""
    ids: tf.Tensor
    """[b, K, T]"""
    log_probabilities: tf.Tensor
    """[b, K]; -inf where there is no hypothesis"""
    covered: Any
    """[b, K, S]: the attention that source positions have received; () without a coverage penalty"""
    cache: Any
    """the cache of the step function; tensors [b * K, ...]"""
    final: Hypotheses
    """the K best final hypotheses of each of the b sentences"""
    results: Any
    """final hypotheses of all sentences, outdated for the b sentences; () where no sentence leaves the batch"""
    considered: Any = ()
    """the candidates of all steps so far, if they are recorded; otherwise ()"""
    progress: Any = ()
    """how far the K hypotheses have written the phrases of their sentence; () without phrases"""

    def is_live(self) -> tf.Tensor:
        """Return [b], boolean: whether each sentence is still being searched."""
        return tf.reduce_any(self.log_probabilities > -np.inf, axis=1)


class Continuations(NamedTuple):
    """The C most probable ways to continue the K hypotheses of b sentences by one token, the best first."""

    ids: tf.Tensor
    """[b, C, T]"""
    log_probabilities: tf.Tensor
    """[b, C]"""
    parents: tf.Tensor
    """[b, C]: which of the K hypotheses each continues"""
    is_final: tf.Tensor
    """[b, C], boolean: whether it has its end token or has reached its limit"""
    progress: Any
    """how far each has written the phrases; () without phrases"""


def beam_search(
    step: Step,
    cache: Any,
    sentences: Sentences,
    rules: Rules,
    *,
    beam_size: int = 4,
    alpha: float = 0.6,
    offset: float = 5.0,
    beta: float = 0.0,
    n_best: int = 1,
    early_stopping: bool = False,
    likely_stopping: bool = False,
    capacity: Any = None,
    record: bool = False,
) -> Any:
    """Search for the hypotheses with the highest log-probability / ((k + length) / (k + 1))^alpha.

    A hypothesis is final once it has its end token or reaches its limit. The search for a sentence ends when no
    unfinished hypothesis can still beat its `n_best` best final ones. That is certain because a log-probability never
    rises, no length penalty is larger than that of the limit, and a coverage reward is at most 0. Finished sentences
    leave the batch.

    If sentences have `phrases`, a hypothesis cannot end before it contains all of them, in any order. The beam is
    shared out among hypotheses by how many of these tokens they have (dynamic beam allocation, Post and Vilar 2018). So
    whatever the beam size is, they are found if the limit has room for all of them and the end token. A prefix comes
    first. A sentence with limit 0 has its empty hypothesis only if it has no phrases.

    Args:
        step: gives the logits of the next token.
        cache: the cache for the first step, with `beam_size` rows for each sentence.
        sentences: the B sentences.
        rules: which tokens a hypothesis may contain.
        beam_size: hypotheses kept at every step, K (paper 6.1: 4). Unfinished ones are kept by probability; the
            penalties rank final ones only.
        alpha: exponent of the length penalty (paper 6.1: 0.6); 0 ranks by log-probability alone.
        offset: k in the length penalty.
        beta: weight of the coverage penalty, at least 0. Above 0, `beta * coverage_reward` is added to a score, and
            `sentences` must have `covered`.
        n_best: hypotheses to return, N; at most `beam_size`.
        early_stopping: stop searching a sentence once it has `beam_size` final hypotheses, as most toolkits do. This
            takes fewer steps, but may miss a better hypothesis.
        likely_stopping: stop searching a sentence once it has `beam_size` final hypotheses and no unfinished one would
            beat the worst of them if it ended now, as transformers and others do by default. With a large alpha, a
            longer hypothesis might still win. To rule that out takes about as many steps as the limit allows.
        capacity: as in `greedy`.
        record: whether to return the candidates of all steps as well. No sentence leaves the batch then.

    Returns:
        `Hypotheses`, N per sentence; their scores are the penalised log-probabilities. With `record`, a pair of them
        and of `Considered`.

    Raises:
        ValueError: an argument is out of its range.
    """
    if not (1 <= n_best <= beam_size and beta >= 0):
        raise ValueError(f"n_best must be 1 to beam_size, beta at least 0. Received: {n_best=}, {beam_size=}, {beta=}")
    size, width = tf.shape(sentences.limits)[0], beam_size
    none = Hypotheses(
        ids=no_tokens([size, width], capacity),
        scores=tf.fill([size, width], -np.inf),
        log_probabilities=tf.fill([size, width], -np.inf),
    )
    first = tf.where((tf.range(width) == 0) & (sentences.limits[:, None] > 0), 0.0, -np.inf)
    covered = tf.repeat(sentences.covered[:, None], width, axis=1) if beta else ()
    numbers, values = (tf.zeros([size, 0, 2 * width], dtype) for dtype in (tf.int32, tf.float32))
    considered = Considered(numbers, numbers, numbers, values, values) if record else ()
    is_constrained = tf.is_tensor(sentences.phrases)
    if is_constrained:  # one phrase and one token more, so that there is a largest of them
        sentences = sentences._replace(phrases=tf.pad(sentences.phrases, [[0, 0], [0, 1], [0, 1]]))
    progress = no_progress(sentences.phrases, width) if is_constrained else ()
    state = State(sentences, tf.range(size), none.ids, first, covered, cache, none, (), considered, progress)
    leaves = capacity is None and not record
    if leaves:
        state = without_done(state._replace(results=none), state.is_live(), none, width)

    def continued(position: tf.Tensor, state: State) -> tuple[Continuations, Any, Any]:
        """Return the continuations, the attention received by then [b, K, S] and the cache."""
        b = tf.shape(state.places)[0]
        rows = tf.reshape(state.ids, [b * width, tf.shape(state.ids)[2]])
        last = token_before(rows, position, state.sentences, rules)
        logits, attention, cache = step(last, position, state.cache, state.sentences.context)
        prefix = state.sentences.prefix
        prefix = tf.repeat(prefix, width, axis=0) if tf.is_tensor(prefix) else ()
        may_end = tf.reshape(state.progress.are_all_met(), [-1]) if is_constrained else ()
        allowed = rules.apply(logits, rows, position, prefix, may_end)
        # The best tokens of each hypothesis suffice to find the best of all, without log-probabilities [R, V].
        values, tokens = tf.math.top_k(allowed, tf.minimum(2 * width, tf.shape(logits)[1]))
        if is_constrained:
            wanted = tf.reshape(next_tokens(state.progress, state.sentences.phrases), [b * width, -1])
            values, tokens = with_wanted(values, tokens, wanted, logits, position, prefix)
        gained = values - tf.reduce_logsumexp(logits, axis=-1, keepdims=True)
        choices = tf.shape(values)[1]
        total = state.log_probabilities[:, :, None] + tf.reshape(gained, [b, width, choices])
        total, tokens = (tf.reshape(tensor, [b, width * choices]) for tensor in (total, tokens))
        is_final = (tokens == rules.end) | (position + 1 >= state.sentences.limits)[:, None]
        best, chosen, progress = chosen_of(state, total, tokens, is_final)
        parents = chosen // choices
        token, is_final = (tf.gather(tensor, chosen, batch_dims=1) for tensor in (tokens, is_final))
        ids = add_token(tf.gather(state.ids, parents, batch_dims=1), token, position, capacity)
        covered = state.covered + tf.reshape(attention, tf.shape(state.covered)) if beta else ()
        return Continuations(ids, best, parents, is_final, progress), covered, cache

    def chosen_of(
        state: State, total: tf.Tensor, tokens: tf.Tensor, is_final: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor, Any]:
        """Choose C of the candidates [b, M]: their log-probabilities and indices, [b, C] each, and their progress."""
        count = tf.minimum(2 * width, tf.shape(total)[1])
        if is_constrained:
            return best_of_banks(state.progress, state.sentences.phrases, total, tokens, is_final, count)
        return *tf.math.top_k(total, count), ()

    def final_scores(length: tf.Tensor, new: Continuations, covered: Any) -> tf.Tensor:
        """Return the scores [b, C] of those continuations, of a length, that are final; -inf for the others."""
        scores = new.log_probabilities / length_penalty(length, alpha, offset)
        if beta:
            scores += beta * tf.gather(coverage_reward(covered), new.parents, batch_dims=1)
        # A hypothesis that ends must be among the best K, just like one that continues.
        is_kept = new.is_final & (tf.range(tf.shape(scores)[1]) < width)
        return tf.where(is_kept, scores, -np.inf)

    def is_enough(length: tf.Tensor, limits: tf.Tensor, final: Hypotheses, going_on: tf.Tensor) -> tf.Tensor:
        """Return [b], boolean: whether to stop searching each sentence, by the stopping rule that was chosen."""
        if early_stopping:
            return final.scores[:, width - 1] > -np.inf
        best = tf.reduce_max(going_on, axis=1)
        if likely_stopping:
            return final.scores[:, width - 1] >= best / length_penalty(length, alpha, offset)
        longest = limits if alpha >= 0 else tf.fill(tf.shape(limits), length + 1)
        return final.scores[:, n_best - 1] >= best / length_penalty(longest, alpha, offset)

    def advance(position: tf.Tensor, state: State) -> State:
        new, covered, cache = continued(position, state)
        scores = final_scores(position + 1, new, covered)
        final = _best(state.final, Hypotheses(new.ids, scores, new.log_probabilities), width)
        # Continuations are in the order in which the search goes on with them.
        order = tf.range(tf.shape(new.is_final)[1], 0, -1)
        _, kept = tf.math.top_k(tf.where(new.is_final, 0, order), width)
        going_on = tf.gather(tf.where(new.is_final, -np.inf, new.log_probabilities), kept, batch_dims=1)
        enough = is_enough(position + 1, state.sentences.limits, final, going_on)
        parents = tf.gather(new.parents, kept, batch_dims=1)
        rows = tf.reshape(tf.range(tf.shape(state.places)[0])[:, None] * width + parents, [-1])
        state = state._replace(
            ids=tf.gather(new.ids, kept, batch_dims=1),
            log_probabilities=tf.where(enough[:, None], -np.inf, going_on),
            covered=tf.gather(covered, parents, batch_dims=1) if beta else (),
            cache=tf.nest.map_structure(lambda kept: tf.gather(kept, rows), cache),
            final=final,
            progress=tf.nest.map_structure(lambda tensor: tf.gather(tensor, kept, batch_dims=1), new.progress),
        )
        if record:
            places = tf.where(kept[:, None] == tf.range(2 * width)[:, None], tf.range(width), -1)
            places = tf.where(enough[:, None] | new.is_final, -1, tf.reduce_max(places, axis=2))
            step = Considered(new.ids[:, :, position], new.parents, places, new.log_probabilities, scores)
            both = zip(state.considered, step, strict=True)
            state = state._replace(considered=Considered(*(tf.concat([a, b[:, None]], axis=1) for a, b in both)))
        return without_done(state, state.is_live(), final, width) if leaves else state

    state = repeat_until_done(advance, lambda state: state.log_probabilities > -np.inf, state)
    found = state.results if leaves else state.final
    found = tf.nest.map_structure(lambda tensor: tensor[:, :n_best], found)
    there = found.scores > -np.inf
    is_empty = sentences.limits <= 0
    if is_constrained:
        is_empty &= tf.reduce_all(sentences.phrases == 0, axis=[1, 2])
    empty = is_empty[:, None] & (tf.range(n_best) == 0)
    hypotheses = Hypotheses(
        ids=tf.where(there[:, :, None], found.ids, rules.pad),
        scores=tf.where(empty, 0.0, found.scores),
        log_probabilities=tf.where(empty, 0.0, tf.where(there, found.log_probabilities, -np.inf)),
    )
    return (hypotheses, state.considered) if record else hypotheses


def _best(old: Hypotheses, new: Hypotheses, count: int) -> Hypotheses:
    """Return the `count` best hypotheses of both; the ids of `new` may be one token longer."""
    more = tf.shape(new.ids)[2] - tf.shape(old.ids)[2]
    old = old._replace(ids=tf.pad(old.ids, [[0, 0], [0, 0], [0, more]]))
    both = tf.nest.map_structure(lambda a, b: tf.concat([a, b], axis=1), old, new)
    _, chosen = tf.math.top_k(both.scores, count)
    return tf.nest.map_structure(lambda tensor: tf.gather(tensor, chosen, batch_dims=1), both)
