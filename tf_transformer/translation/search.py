"""Search with a Transformer: from source ids to hypotheses, as a `DecodingConfig` says."""

import functools
from typing import Any

import keras
import tensorflow as tf

from tf_transformer.config import DecodingConfig
from tf_transformer.decoding import (
    BeamSearch,
    Considered,
    ConstrainedBeamSearch,
    Hypotheses,
    RecordedBeamSearch,
    Rules,
    Sentences,
    greedy,
    length_penalty,
    sample,
)
from tf_transformer.decoding.loops import shape_throughout
from tf_transformer.errors import InputError
from tf_transformer.model import Ensemble, Transformer
from tf_transformer.tokenizers import END, PAD, START, UNKNOWN

MIN_WIDTH = 16
"""The fewest source tokens that XLA compiles for."""


class Search:
    """Finds translations of source ids.

    Args:
        model: a built Transformer, or an Ensemble.
        decoding: how to search.

    Raises:
        InputError: an attention layer that the model does not have.
    """

    def __init__(self, model: Transformer | Ensemble, decoding: DecodingConfig):
        self.model = model
        self.decoding = decoding
        layers, layer = model.num_decoder_layers, decoding.attention_layer
        if layer is not None and layer > layers:
            raise InputError(f"attention_layer must be at most {layers}, the number of layers. Received: {layer}")
        self._traced: dict[int, Any] = {}

    def __call__(
        self,
        ids: tf.Tensor,
        keys: tf.Tensor,
        n_best: int = 1,
        prefix: Any = (),
        languages: Any = (),
        phrases: Any = (),
    ) -> Hypotheses:
        """Search for translations of ids.

        Args:
            ids: [B, S], int32: the language if the model has several, the tokens of the text, the end token, then
                padding.
            keys: [B], int64: together with the seed, they decide which tokens are sampled.
            n_best: the number of hypotheses for each sentence; with sampling, of draws.
            prefix: [B, P], int32: tokens to begin with, then padding; () for none.
            languages: [B], int32: the tokens of the languages to translate to. The decoder reads them after its start
                token; they are not part of the hypotheses. () if the model has only one language.
            phrases: [B, C, L], int32: tokens that hypotheses must contain, as in `ConstrainedBeamSearch`, for which the
                limit of a sentence is raised by their number; () for none.

        Raises:
            InputError: n_best above the number of hypotheses; phrases for a search that does not take them.
        """
        self.decoding.check_n_best(n_best)
        if tf.is_tensor(phrases):
            self.decoding.check_constraints()
        if self.decoding.temperature and n_best > 1:
            return self._drawn(ids, keys, n_best, prefix, languages)
        limits = self._limits(ids, languages, phrases)
        if self.decoding.jit_compile:
            return self._find_compiled(ids, keys, limits, n_best, prefix, languages)
        uniform = self._uniform(keys, tf.reduce_max(tf.concat([limits, [1]], axis=0)))
        if tf.executing_eagerly():
            return self._find(ids, limits, uniform, prefix, languages, phrases, n_best=n_best)
        return self._traced_once(n_best)(ids, limits, uniform, prefix, languages, phrases)

    def _drawn(self, ids: tf.Tensor, keys: tf.Tensor, count: int, prefix: Any, languages: Any) -> Hypotheses:
        """Draw several hypotheses for each sentence, the best first; one of them is what a single draw would be."""

        def repeated(rows: Any) -> Any:
            return tf.repeat(rows, count, axis=0) if tf.is_tensor(rows) else rows

        of_draws = tf.reshape(keys[:, None] + tf.range(count, dtype=tf.int64) * 2**31, [-1])  # keys are below that
        found = self(repeated(ids), of_draws, 1, repeated(prefix), repeated(languages))
        size, length = tf.shape(ids)[0], tf.shape(found.ids)[2]
        found = Hypotheses(
            tf.reshape(found.ids, [size, count, length]),
            tf.reshape(found.scores, [size, count]),
            tf.reshape(found.log_probabilities, [size, count]),
        )
        order = tf.argsort(found.scores, direction="DESCENDING", stable=True)
        return tf.nest.map_structure(lambda tensor: tf.gather(tensor, order, batch_dims=1), found)

    def considered(self, ids: tf.Tensor, prefix: Any = (), languages: Any = ()) -> tuple[Hypotheses, Considered]:
        """Search as `__call__` does for one hypothesis, and record what is considered at each step.

        Raises:
            InputError: a search that is no beam search.
        """
        self.check_beam()
        limits = self._limits(ids, languages, ())
        return self._find(ids, limits, (), prefix, languages, (), n_best=1, record=True)

    def check_beam(self) -> None:
        """Raise InputError if this is not a beam search, which alone has a tree."""
        self.decoding.check_beam("has a tree")

    def alignment(self, ids: tf.Tensor, written: tf.Tensor) -> tf.Tensor:
        """Return how the token after each of `written` [B, T] attends to the source: [B, T, S], the mean over heads."""
        return self._mean_of_heads(self.model.attention((ids, written)).cross)

    def _find_compiled(
        self, ids: tf.Tensor, keys: tf.Tensor, limits: tf.Tensor, n_best: int, prefix: Any, languages: Any
    ) -> Hypotheses:
        """Search with XLA, which compiles for each size of a batch. Sizes are powers of two, so that there are few."""
        size, width = tf.shape(ids)[0], tf.shape(ids)[1]
        rows = [0, _power_of_two(size) - size]
        columns = tf.maximum(_power_of_two(width), MIN_WIDTH)
        if self.model.max_positions is not None:
            columns = tf.minimum(columns, self.model.max_positions)
        uniform = self._uniform(keys, self._limit(columns, 0))
        if tf.is_tensor(uniform):
            uniform = tf.pad(uniform, [rows, [0, 0]])
        if tf.is_tensor(prefix):
            length = tf.shape(prefix)[1]
            prefix = tf.pad(prefix, [rows, [0, _power_of_two(length) - length]])
        if tf.is_tensor(languages):
            languages = tf.pad(languages, [rows])
        ids = tf.pad(ids, [rows, [0, columns - width]])
        found = self._traced_once(n_best)(ids, tf.pad(limits, [rows]), uniform, prefix, languages, ())
        return tf.nest.map_structure(lambda tensor: tensor[:size], found)

    def _traced_once(self, n_best: int) -> Any:
        """Return `_find` as a function that all graphs with this search have in common, compiled if that is asked for.

        The signatures of an export would have a copy each, and a server would load all of them.
        """
        if n_best not in self._traced:
            compiled = self.decoding.jit_compile
            find = functools.partial(self._find, n_best=n_best, is_fixed=compiled)
            self._traced[n_best] = tf.function(find, jit_compile=compiled or None, autograph=False)
        return self._traced[n_best]

    def _find(
        self,
        ids: tf.Tensor,
        limits: tf.Tensor,
        uniform: Any,
        prefix: Any,
        languages: Any,
        phrases: Any,
        n_best: int,
        is_fixed: bool = False,
        record: bool = False,
    ) -> Any:
        """Search; with `is_fixed`, by tensors whose shapes do not change. `record` also returns what is considered."""
        memory = self.model.encode(ids)
        # The loop would read every weight again at every step.
        with keras.StatelessScope([(weight, tf.convert_to_tensor(weight)) for weight in self.model.weights]):
            settings = self.decoding
            capacity = self._limit(tf.shape(ids)[1], 0) if is_fixed else None
            coverage = tf.cast(ids == PAD, tf.float32) if settings.coverage_penalty else ()
            sentences = Sentences(limits, memory, prefix, uniform, coverage, phrases, languages)
            width = settings.hypotheses
            rows = tf.size(limits) * width
            step, cache = self._step, self.model.empty_cache(rows, capacity)
            if tf.is_tensor(languages):
                # The start token is read now. The language follows, at position 0 of the search.
                room = None if capacity is None else capacity + 1
                step = functools.partial(self._step, before=1)
                cache = self._started(self.model.empty_cache(rows, room), rows, sentences.context)
            banned = (UNKNOWN,) if settings.ban_unknown else ()
            rules = Rules(START, END, PAD, banned, settings.min_length, settings.no_repeat_ngram)
            if settings.temperature:
                cut = (settings.temperature, settings.top_k, settings.top_p)
                return self._penalised(sample(step, cache, sentences, rules, *cut, capacity=capacity))
            if width == 1:
                return self._penalised(greedy(step, cache, sentences, rules, capacity=capacity))
            beam: dict[str, Any] = dict(
                beam_size=width,
                alpha=settings.length_penalty,
                offset=settings.length_penalty_offset,
                beta=settings.coverage_penalty,
                n_best=n_best,
                stopping=settings.stopping,
                capacity=capacity,
            )
            if record:
                return RecordedBeamSearch(step, rules, **beam).considered(cache, sentences)
            kind = ConstrainedBeamSearch if tf.is_tensor(phrases) else BeamSearch
            return kind(step, rules, **beam)(cache, sentences)

    def _started(self, cache: Any, rows: tf.Tensor, memory: Any) -> Any:
        """Return an empty cache with the start token in it."""
        shapes = tf.nest.map_structure(shape_throughout, cache)
        _, _, started = self._step(tf.fill([rows], START), tf.constant(0), cache, memory)
        # In a graph, the loop would take the present size of the axis, one position, for its final size.
        return tf.nest.map_structure(tf.compat.v1.placeholder_with_default, started, shapes)

    def _step(
        self, ids: tf.Tensor, position: tf.Tensor, cache: Any, memory: Any, before: int = 0
    ) -> tuple[tf.Tensor, Any, Any]:
        logits, weights, cache = self.model.decode_step(ids, position + before, cache, memory, self.decoding.hypotheses)
        if not self.decoding.coverage_penalty:
            return logits, (), cache
        attention = self._mean_of_heads(weights)
        return logits, tf.reshape(attention, [tf.size(ids), tf.shape(attention)[2]]), cache

    def _mean_of_heads(self, weights: tuple[Any, ...]) -> tf.Tensor:
        """[B, H, T, S] for every layer -> [B, T, S], of the attention layer."""
        layer = weights[(self.decoding.attention_layer or len(weights)) - 1]
        return tf.reduce_mean(tf.cast(layer, tf.float32), axis=1)

    def _penalised(self, found: Hypotheses) -> Hypotheses:
        """Return hypotheses with the scores that beam search would give them."""
        lengths = tf.maximum(tf.math.count_nonzero(found.ids, axis=2, dtype=tf.int32), 1)  # length 0 may have penalty 0
        penalty = length_penalty(lengths, self.decoding.length_penalty, self.decoding.length_penalty_offset)
        return found._replace(scores=found.log_probabilities / penalty)

    def _limits(self, ids: tf.Tensor, languages: Any, phrases: Any) -> tf.Tensor:
        """Return the most target tokens [B] of each source; 0 for one without text."""
        before = int(tf.is_tensor(languages))  # tokens before the text
        tokens = tf.math.count_nonzero(ids != PAD, axis=1, dtype=tf.int32) - before
        more = tf.math.count_nonzero(phrases, axis=[1, 2], dtype=tf.int32) if tf.is_tensor(phrases) else 0
        return tf.where(has_text(ids, before), self._limit(tokens, before, more), 0)

    def _limit(self, tokens: tf.Tensor, before: int, more: Any = 0) -> tf.Tensor:
        """Return the most target tokens, including the end token, for sources of so many tokens.

        `before` tokens are read before the first of them, besides the start token; `more` are added.
        """
        limit = tokens - 1 + self.decoding.max_extra_length + more
        most = self.decoding.most_written(self.model.max_positions, before)
        return limit if most is None else tf.minimum(limit, most)

    def _uniform(self, keys: tf.Tensor, length: tf.Tensor) -> Any:
        """Return random numbers [B, length], at least 0 and below 1, made from each key; without sampling, ()."""
        if not self.decoding.temperature:
            return ()
        seed = tf.constant(self.decoding.seed, tf.int64)
        rows = tf.map_fn(
            lambda key: tf.random.stateless_uniform([length], seed=tf.stack([seed, key])),
            tf.concat([keys, [0]], axis=0),  # one more, because map_fn cannot tell the shape of none
            fn_output_signature=tf.TensorSpec([None], tf.float32),
        )
        return rows[:-1]


def has_text(ids: tf.Tensor, before: int) -> tf.Tensor:
    """Return [B], boolean: whether source ids [B, S] have tokens besides the end token and `before` ones before it.

    A sentence without text is translated to nothing, for certain, and the model is not asked.
    """
    return tf.math.count_nonzero(ids != PAD, axis=1) > 1 + before


def _power_of_two(number: tf.Tensor) -> tf.Tensor:
    """Return the least power of two that is at least a number; 1 for 0."""
    powers = tf.constant([2**i for i in range(31)])
    return powers[tf.searchsorted(powers, [number])[0]]
