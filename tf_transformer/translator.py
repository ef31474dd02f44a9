"""Strings in, strings out: tokenizers, model and search in one TensorFlow module."""

import contextlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import tensorflow as tf

from tf_transformer.config import DecodingConfig
from tf_transformer.decoding import Hypotheses, Rules, Sentences, beam_search, greedy, length_penalty, sample
from tf_transformer.errors import InputError
from tf_transformer.model import Transformer
from tf_transformer.run_directory import load
from tf_transformer.tokenizers import END, PAD, START, UNKNOWN, Tokenizer

TOO_LONG = "a sentence is too long"
MOST_CHARACTERS = 32_768
"""Most characters of a batch of lines, each counted as long as the longest: it bounds the memory of a batch."""

Line = TypeVar("Line")
Translated = TypeVar("Translated")


class Scored(NamedTuple):
    """How probable given translations are; logarithms to base e."""

    log_probabilities: tf.Tensor
    """[B]: of their tokens, the end token among them, summed"""
    token_log_probabilities: tf.Tensor
    """[B, T]: of each token; 0 beyond the end"""
    lengths: tf.Tensor
    """[B], int32: tokens"""


class Translator(tf.Module):
    """Translates strings: `Translator.load("runs/mine")("Hello .")`.

    Args:
        model: a built Transformer.
        source_tokenizer: of the source language.
        target_tokenizer: of the target language; the same object where both share one.
        decoding: how a translation is searched for; beam search as in the paper by default.
    """

    def __init__(
        self,
        model: Transformer,
        source_tokenizer: Tokenizer,
        target_tokenizer: Tokenizer,
        decoding: DecodingConfig | None = None,
    ):
        super().__init__()
        self.model = model
        self.source_tokenizer = source_tokenizer
        self.target_tokenizer = target_tokenizer
        self.decoding = decoding or DecodingConfig()
        self._searches: dict[int, Any] = {}

    @classmethod
    def load(cls, run_dir: str | Path, decoding: DecodingConfig | None = None) -> "Translator":
        """Return the translator of a run directory, with the weights of its best checkpoint.

        Args:
            run_dir: of the run.
            decoding: as of the class; that of the run by default.

        Raises:
            InputError: not a run directory, or one without a checkpoint.
        """
        loaded = load(run_dir)
        tokenizers = loaded.source_tokenizer, loaded.target_tokenizer
        return cls(loaded.model, *tokenizers, decoding or loaded.config.decoding)

    @tf.function(input_signature=[tf.TensorSpec(None, tf.string)])
    def __call__(self, text: Any) -> tf.Tensor:
        """Translate a string, or strings of any shape, to strings of that shape. The empty string stays empty."""
        translation, _ = self.translate(tf.reshape(text, [-1]))
        return tf.reshape(translation, tf.shape(text))

    def translate(self, text: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Translate strings [B].

        Returns:
            The translations [B], and their scores [B]: the summed log-probability of their tokens, the end token
            among them. An empty string, and one of white space only, gives an empty string of score 0.
        """
        found = self.search(text)
        return self.target_tokenizer.detokenize(found.ids[:, 0]), found.log_probabilities[:, 0]

    def translate_n_best(self, text: tf.Tensor, n: int) -> tuple[tf.Tensor, tf.Tensor]:
        """Translate strings [B] in n ways each, n at most the beam size.

        Returns:
            The translations [B, n], the best first, and what they are ranked by, [B, n]: the log-probability divided
            by the length penalty. Where a search found fewer than n, the rest is empty, with a score of -inf.
        """
        found = self.search(text, n)
        flat = self.target_tokenizer.detokenize(tf.reshape(found.ids, [-1, tf.shape(found.ids)[2]]))
        return tf.reshape(flat, [-1, n]), found.scores

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)] * 2)
    def score(self, sources: tf.Tensor, targets: tf.Tensor) -> Scored:
        """Return how probable the model finds the targets [B] as translations of the sources [B]."""
        labels = self._checked(_with_end(self.target_tokenizer.tokenize(targets)))
        written = tf.concat([tf.fill([tf.shape(labels)[0], 1], START), labels[:, :-1]], axis=1)
        logits = self.model((self._checked(self.encode_source(sources)), written), training=False)
        of_tokens = tf.gather(logits, labels, batch_dims=2) - tf.reduce_logsumexp(logits, axis=-1)
        of_tokens = tf.where(labels != PAD, of_tokens, 0.0)
        return Scored(tf.reduce_sum(of_tokens, axis=1), of_tokens, tf.math.count_nonzero(labels, 1, dtype=tf.int32))

    def encode_source(self, text: tf.Tensor) -> tf.Tensor:
        """Tokenise strings [B] to source ids [B, S]: the end token at the end, then padding."""
        return _with_end(self.source_tokenizer.tokenize(text))

    def search(self, text: tf.Tensor, n_best: int = 1) -> Hypotheses:
        """Search for the translations of strings [B].

        Raises:
            InputError: more wanted than there are hypotheses.
        """
        settings = self.decoding
        width = self._width(n_best)
        source_ids = self._checked(self.encode_source(text))
        limits = self._limits(source_ids)
        sentences = Sentences(limits, context=self.model.encode(source_ids))
        cache = self.model.empty_cache(tf.size(limits) * width)
        banned = (UNKNOWN,) if settings.ban_unknown else ()
        rules = Rules(START, END, PAD, banned, settings.min_length, settings.no_repeat_ngram)
        step = self.model.decode_step
        if settings.temperature:
            sentences = sentences._replace(uniform=_uniform(text, limits, settings.seed))
            cut = (settings.temperature, settings.top_k, settings.top_p)
            return self._penalised(sample(step, cache, sentences, rules, *cut))
        if width == 1:
            return self._penalised(greedy(step, cache, sentences, rules))
        return beam_search(
            step,
            cache,
            sentences,
            rules,
            beam_size=width,
            alpha=settings.length_penalty,
            n_best=n_best,
            early_stopping=settings.early_stopping,
        )

    def _penalised(self, found: Hypotheses) -> Hypotheses:
        """Return hypotheses with the scores that beam search would give them."""
        lengths = tf.math.count_nonzero(found.ids, axis=2, dtype=tf.int32)
        return found._replace(scores=found.log_probabilities / length_penalty(lengths, self.decoding.length_penalty))

    def _limits(self, source_ids: tf.Tensor) -> tf.Tensor:
        """Return the most target tokens [B] of source ids [B, S]."""
        lengths = tf.math.count_nonzero(source_ids != PAD, axis=1, dtype=tf.int32) - 1
        limits = tf.where(lengths > 0, lengths + self.decoding.max_extra_length, 0)
        if self.decoding.max_length is not None:
            limits = tf.minimum(limits, self.decoding.max_length)
        if self.model.config["positions"] == "learned":
            limits = tf.minimum(limits, self.model.config["max_positions"])
        return limits

    def _checked(self, ids: tf.Tensor) -> tf.Tensor:
        """Return ids [B, S], or fail where the model has not learned as many positions."""
        if self.model.config["positions"] != "learned":
            return ids
        table = self.model.config["max_positions"]
        message = f"{TOO_LONG}: the model has learned {table} positions"
        with tf.control_dependencies([tf.debugging.assert_less_equal(tf.shape(ids)[1], table, message)]):
            return tf.identity(ids)

    def _width(self, n_best: int) -> int:
        """Return how many hypotheses a search has."""
        width = 1 if self.decoding.temperature else self.decoding.beam_size
        if not 1 <= n_best <= width:
            raise InputError(f"n_best must be 1 to beam_size ({width}; drawing has 1). Received: {n_best}")
        return width

    def translate_strings(self, sentences: list[str]) -> list[str]:
        """Translate Python strings, as `translate_lines` wants it."""
        return [best for [(best, _)] in self.n_best_strings(sentences, 1)]

    def n_best_strings(self, sentences: list[str], n: int) -> list[list[tuple[str, float]]]:
        """Translate Python strings in n ways each: the translations with their scores, the best first.

        Raises:
            InputError: a sentence is longer than the positions that the model has learned.
        """
        self._width(n)  # an error within a tf.function would come out as another one
        if n not in self._searches:
            signature = [tf.TensorSpec([None], tf.string)]
            self._searches[n] = tf.function(lambda text: self.translate_n_best(text, n), input_signature=signature)
        with sentences_fit():
            translations, scores = self._searches[n](tf.constant(sentences, tf.string))
        rows = zip(decoded(translations), scores.numpy().tolist(), strict=True)
        return [list(zip(*row, strict=True)) for row in rows]


def _with_end(ids: tf.RaggedTensor) -> tf.Tensor:
    """Return ids with the end token after them, then padding: [B, T]."""
    return tf.concat([ids, tf.fill([ids.nrows(), 1], END)], axis=1).to_tensor(PAD)


def _uniform(text: tf.Tensor, limits: tf.Tensor, seed: int) -> tf.Tensor:
    """Return numbers [B, longest limit], at least 0 and below 1: for each string its own, whatever the batch."""
    keys = tf.strings.to_hash_bucket_fast(text, 2**31 - 1)
    longest = tf.reduce_max(tf.concat([limits, [1]], axis=0))
    return tf.map_fn(
        lambda key: tf.random.stateless_uniform([longest], seed=tf.stack([tf.constant(seed, tf.int64), key])),
        keys,
        fn_output_signature=tf.TensorSpec([None], tf.float32),
    )


@contextlib.contextmanager
def sentences_fit() -> Iterator[None]:
    """Raise InputError where a sentence is longer than the positions that the model has learned."""
    try:
        yield
    except tf.errors.InvalidArgumentError as error:
        if TOO_LONG in error.message:
            raise InputError(error.message[error.message.index(TOO_LONG) :].splitlines()[0]) from None
        raise


def decoded(translations: tf.Tensor) -> Any:
    """Return translations [B] or [B, n] as Python strings, nested alike. A line feed in one becomes a space."""
    found = translations.numpy()
    flat = [translation.decode().replace("\n", " ") for translation in found.ravel()]
    return np.array(flat, object).reshape(found.shape).tolist()


def translate_lines(
    translate: Callable[[list[Line]], list[Translated]],
    lines: Iterable[Line],
    *,
    batch_size: int = 64,
    window: int = 2048,
    length: Callable[[Line], int] = len,  # type: ignore[assignment]
) -> Iterator[Translated]:
    """Translate any number of lines in bounded memory, in their order.

    Within a window of lines those of like lengths go together.

    Args:
        translate: translates a batch.
        lines: sentences without line feeds.
        batch_size: most sentences a batch.
        window: lines that are read before the first of them is given back.
        length: of a line, in characters.
    """
    waiting: list[Line] = []
    for line in lines:
        waiting.append(line)
        if len(waiting) == window:
            yield from _translate_window(translate, waiting, batch_size, length)
            waiting = []
    yield from _translate_window(translate, waiting, batch_size, length)


def _translate_window(
    translate: Callable[[list[Line]], list[Translated]],
    lines: list[Line],
    batch_size: int,
    length: Callable[[Line], int],
) -> list[Translated]:
    translations: dict[int, Translated] = {}
    batch: list[int] = []

    def finish() -> None:
        if batch:
            translations.update(zip(batch, translate([lines[i] for i in batch]), strict=True))
            batch.clear()

    for i in sorted(range(len(lines)), key=lambda i: length(lines[i])):
        # A batch is as wide as its longest line, the last.
        if len(batch) == batch_size or (len(batch) + 1) * length(lines[i]) > MOST_CHARACTERS:
            finish()
        batch.append(i)
    finish()
    return [translations[i] for i in range(len(lines))]
