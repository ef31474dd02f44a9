"""Text to ids and back inside the TensorFlow graph, with SentencePiece."""

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import tensorflow as tf
import tensorflow_text as tf_text
from tensorflow_text.python.ops import sentencepiece_tokenizer

from tf_transformer.config.special_tokens import END, PAD, UNKNOWN
from tf_transformer.errors import InputError, unknown
from tf_transformer.tokenizers.normalization import BLANK, INVISIBLE_CLASS
from tf_transformer.tokenizers.vocabulary import AT_FRONT, SPACE_MARK, Vocabulary


class _SharedModel(sentencepiece_tokenizer._SentencepieceModelResource):
    """The model as a resource with a name of its own.

    The resource of tensorflow-text belongs to a cached kernel. `keras.utils.set_random_seed` empties that cache, and
    every tokenizer made before then fails.
    """

    def _create_resource(self) -> Any:
        name = f"sentencepiece_{hashlib.sha256(self._model).hexdigest()}"
        return sentencepiece_tokenizer.gen_sentencepiece_tokenizer.sentencepiece_op(self._model, shared_name=name)


class Tokenizer(tf.Module):
    """A SentencePiece model inside the graph, saved with the module that holds it.

    Args:
        model: a serialised SentencePiece model, as for `Vocabulary`.
        name: the name of the model in errors, such as its file.
        vocab_size: as for `Vocabulary`.
        languages: as for `Vocabulary`.

    Raises:
        InputError: as `Vocabulary`.
    """

    def __init__(
        self, model: bytes, name: str = "tokenizer", vocab_size: int | None = None, languages: Sequence[str] = ()
    ):
        super().__init__(name=None)
        vocabulary = Vocabulary(model, name, vocab_size, languages)
        self.vocabulary = vocabulary
        self.model = model
        self.vocab_size = vocabulary.vocab_size
        self.pieces = vocabulary.pieces
        self.languages = vocabulary.languages
        if languages:
            names = tf.lookup.KeyValueTensorInitializer(
                list(self.languages), list(self.languages.values()), value_dtype=tf.int32
            )
            self._language_table = tf.lookup.StaticHashTable(names, PAD)
        self._detokenizer = self._processor_of(model, tf.int32)
        self._processor, self._table = self._detokenizer, None
        if vocabulary.piece_to_id is not None:
            self._processor = self._processor_of(model, tf.string)
            pieces, ids = (list(column) for column in zip(*vocabulary.piece_to_id.items(), strict=True))
            entries = tf.lookup.KeyValueTensorInitializer(pieces, ids, value_dtype=tf.int32)
            self._table = tf.lookup.StaticHashTable(entries, UNKNOWN)

    def _processor_of(self, model: bytes, out_type: tf.DType) -> tf_text.SentencepieceTokenizer:
        processor = tf_text.SentencepieceTokenizer(model, out_type=out_type)
        processor._model_resource = _SharedModel(model, None)
        return processor

    @classmethod
    def load(cls, path: str | Path, *, vocab_size: int | None = None, languages: Sequence[str] = ()) -> "Tokenizer":
        """Read a SentencePiece model file; the arguments are those of the constructor."""
        try:
            return cls(Path(path).read_bytes(), str(path), vocab_size, languages)
        except OSError as error:
            raise InputError(f"cannot read the tokenizer {path}: {error.strerror}") from None

    def tokenize(self, text: Any) -> tf.RaggedTensor:
        """Tokenise strings [B] to ids [B, any], without start and end. Invalid UTF-8 is read as U+FFFD."""
        text = tf.where(tf.strings.regex_full_match(text, BLANK), "", text)
        if (table := self._table) is None:
            return self._processor.tokenize(text)
        has_codes = self.vocabulary.has_codes
        rest = tf.strings.regex_replace(text, AT_FRONT, "", replace_global=False) if has_codes else text
        pieces = self._processor.tokenize(rest)
        ids = pieces.with_flat_values(table.lookup(pieces.flat_values))
        if not has_codes:
            return ids
        length = tf.strings.length(text) - tf.strings.length(rest)
        codes = tf.boolean_mask(tf.strings.substr(text, tf.zeros_like(length), length), length > 0)
        front = tf.RaggedTensor.from_row_lengths(table.lookup(codes), tf.cast(length > 0, tf.int64))
        return tf.concat([front, ids], axis=1)

    def encode(self, sentences: list[str], dropout: float = 0.0, seed: int = 0) -> list[list[int]]:
        """Return the ids of sentences as `Vocabulary.encode` does, outside the graph."""
        return self.vocabulary.encode(sentences, dropout, seed)

    def language_ids(self, languages: Any) -> tf.Tensor:
        """Return the ids [B] of the tokens of languages, strings [B].

        Raises:
            tf.errors.InvalidArgumentError: the tokenizer does not have one of them.
        """
        names = tf.convert_to_tensor(languages, tf.string)
        ids = self._language_table.lookup(names)
        valid = ", ".join(self.languages)
        with tf.control_dependencies(
            [tf.debugging.Assert(tf.reduce_all(ids != PAD), ["unknown language among", names, "valid are", valid])]
        ):
            return tf.identity(ids)

    def check_languages(self, languages: Iterable[str]) -> None:
        """Raise InputError for a language that the tokenizer does not have."""
        for language in languages:
            if language not in self.languages:
                raise unknown("language", language, self.languages)

    def detokenize(self, ids: Any) -> tf.Tensor:
        """Join ids [B, T] to strings [B]; padding, start, end and ids outside the vocabulary are ignored."""
        says_something = ((ids == UNKNOWN) | (ids > END)) & (ids < self.vocab_size)
        text = self._detokenizer.detokenize(tf.ragged.boolean_mask(ids, says_something))
        # A word model writes the mark of a space before an unknown word as bytes, which come back as the mark.
        return tf.strings.regex_replace(tf.strings.regex_replace(text, SPACE_MARK, " "), "^ ", "")

    def tokens_that_write(self, text: tf.Tensor) -> tuple[tf.RaggedTensor, tf.Tensor]:
        """Tokenise strings [B], and say of each [B] whether a translation with these tokens contains it.

        It does not if the vocabulary cannot write a character, if normalisation leaves nothing of the string, as of a
        space of no width, or if it makes another one of it, as `m2` of `m²`.
        """
        tokens = self.tokenize(text)
        is_written = (text == "") | (tokens.row_lengths() > 0) & ~tf.reduce_any(tokens == UNKNOWN, axis=1)
        if not self.vocabulary.keeps_text:
            is_written &= _visible(self.detokenize(tokens.to_tensor(PAD))) == _visible(text)
        return tokens, is_written

    def pieces_of(self, ids: Any) -> tf.Tensor:
        """Return the pieces of ids [...] as strings [...], empty for padding and for ids outside the vocabulary."""
        return tf.gather(tf.constant(["", *self.pieces[1:], ""]), tf.minimum(ids, self.vocab_size))


def _visible(text: tf.Tensor) -> tf.Tensor:
    """Return strings without what nobody sees, in lower case."""
    return tf.strings.lower(tf.strings.regex_replace(text, f"[{INVISIBLE_CLASS}\\x{{2581}}]+", ""), "utf-8")


def text_of(sentences: list[str]) -> tf.Tensor:
    """Return Python strings as a tensor; a lone surrogate, which is no character, becomes a question mark."""
    return tf.constant([sentence.encode("utf-8", "replace") for sentence in sentences], tf.string)
