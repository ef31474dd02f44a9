"""Strings in, strings out: tokenizers, model and search in one TensorFlow module."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import tensorflow as tf

from tf_transformer.decoding import Hypotheses, greedy
from tf_transformer.errors import InputError
from tf_transformer.model import Transformer
from tf_transformer.run_directory import load
from tf_transformer.tokenizers import END, PAD, START, Tokenizer

TOO_LONG = "a sentence is too long"
MOST_CHARACTERS = 32_768
"""Most characters of a batch of lines, each counted as long as the longest: it bounds the memory of a batch."""

TranslateBatch = Callable[[list[str]], list[str]]


class Translator(tf.Module):
    """Translates strings: `Translator.load("runs/mine")("Hello .")`.

    Args:
        model: a built Transformer.
        source_tokenizer: of the source language.
        target_tokenizer: of the target language; the same object where both share one.
        max_extra_length: most target tokens beyond the number of source tokens (paper 6.1).
    """

    def __init__(
        self,
        model: Transformer,
        source_tokenizer: Tokenizer,
        target_tokenizer: Tokenizer,
        max_extra_length: int = 50,
    ):
        super().__init__()
        self.model = model
        self.source_tokenizer = source_tokenizer
        self.target_tokenizer = target_tokenizer
        self.max_extra_length = max_extra_length

    @classmethod
    def load(cls, run_dir: str | Path) -> "Translator":
        """Return the translator of a run directory, with the weights of its best checkpoint.

        Raises:
            InputError: not a run directory, or one without a checkpoint.
        """
        loaded = load(run_dir)
        return cls(
            loaded.model,
            loaded.source_tokenizer,
            loaded.target_tokenizer,
            loaded.config.decoding.max_extra_length,
        )

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
        hypotheses = self.search(self.encode_source(text))
        return self.target_tokenizer.detokenize(hypotheses.ids), hypotheses.scores

    def encode_source(self, text: tf.Tensor) -> tf.Tensor:
        """Tokenise strings [B] to source ids [B, S]: the end token at the end, then padding."""
        ids = self.source_tokenizer.tokenize(text)
        return tf.concat([ids, tf.fill([ids.nrows(), 1], END)], axis=1).to_tensor(PAD)

    def search(self, source_ids: tf.Tensor) -> Hypotheses:
        """Search for the translations of source ids [B, S]."""
        lengths = tf.math.count_nonzero(source_ids != PAD, axis=1, dtype=tf.int32) - 1
        limits = tf.where(lengths > 0, lengths + self.max_extra_length, 0)
        if self.model.config["positions"] == "learned":
            table = self.model.config["max_positions"]
            tf.debugging.assert_less_equal(
                tf.shape(source_ids)[1],
                table,
                f"{TOO_LONG}: the model has learned {table} positions",
            )
            limits = tf.minimum(limits, table)
        memory = self.model.encode(source_ids)
        return greedy(
            lambda ids, position, cache: self.model.decode_step(ids, position, cache, memory),
            self.model.empty_cache(tf.shape(source_ids)[0]),
            limits,
            start=START,
            end=END,
        )

    def translate_strings(self, sentences: list[str]) -> list[str]:
        """Translate Python strings, as `translate_lines` wants it."""
        return decoded(lambda: self(tf.constant(sentences, tf.string)))


def decoded(translate: Callable[[], tf.Tensor]) -> list[str]:
    """Return translations as Python strings.

    Raises:
        InputError: a sentence is longer than the positions that the model has learned.
    """
    try:
        return [translation.decode() for translation in translate().numpy()]
    except tf.errors.InvalidArgumentError as error:
        if TOO_LONG in error.message:
            raise InputError(error.message[error.message.index(TOO_LONG) :].splitlines()[0]) from None
        raise


def translate_lines(
    translate: TranslateBatch, lines: Iterable[str], *, batch_size: int = 64, window: int = 2048
) -> Iterator[str]:
    """Translate any number of lines in bounded memory, each to one line, in their order.

    Within a window of lines those of like lengths go together. A line feed within a translation becomes a space.

    Args:
        translate: translates a batch.
        lines: sentences without line feeds.
        batch_size: most sentences a batch.
        window: lines that are read before the first of them is given back.
    """
    waiting: list[str] = []
    for line in lines:
        waiting.append(line)
        if len(waiting) == window:
            yield from _translate_window(translate, waiting, batch_size)
            waiting = []
    yield from _translate_window(translate, waiting, batch_size)


def _translate_window(translate: TranslateBatch, lines: list[str], batch_size: int) -> list[str]:
    translations = [""] * len(lines)
    batch: list[int] = []
    for i in sorted(range(len(lines)), key=lambda i: len(lines[i])):
        # A batch is as wide as its longest line, the last.
        if len(batch) == batch_size or (len(batch) + 1) * len(lines[i]) > MOST_CHARACTERS:
            _translate_batch(translate, lines, batch, translations)
            batch = []
        batch.append(i)
    _translate_batch(translate, lines, batch, translations)
    return translations


def _translate_batch(translate: TranslateBatch, lines: list[str], batch: list[int], translations: list[str]) -> None:
    if batch:
        for i, translation in zip(batch, translate([lines[i] for i in batch]), strict=True):
            translations[i] = translation.replace("\n", " ")
