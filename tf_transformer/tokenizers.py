"""Text to ids and back: SentencePiece, trained by its own library and run inside the TensorFlow graph."""

import hashlib
import io
import logging
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import sentencepiece
import tensorflow as tf
import tensorflow_text as tf_text
from sentencepiece import sentencepiece_model_pb2
from tensorflow_text.python.ops import sentencepiece_tokenizer

from tf_transformer.config import TokenizerConfig
from tf_transformer.config.special_tokens import END, LANGUAGE_CODE, PAD, START, UNKNOWN, language_pieces
from tf_transformer.errors import InputError, unknown

SPACE_MARK = "\u2581"
"""What SentencePiece writes for a space; it reads one as a space too."""

log = logging.getLogger(__name__)


class _SharedModel(sentencepiece_tokenizer._SentencepieceModelResource):
    """The model as a resource with a name of its own.

    That of tensorflow-text belongs to a cached kernel: `keras.utils.set_random_seed` empties the cache, and every
    tokenizer made before it is dead.
    """

    def _create_resource(self) -> Any:
        name = f"sentencepiece_{hashlib.sha256(self._model).hexdigest()}"
        return sentencepiece_tokenizer.gen_sentencepiece_tokenizer.sentencepiece_op(self._model, shared_name=name)


class Tokenizer(tf.Module):
    """A SentencePiece model inside the graph; saved with whatever module holds it.

    Args:
        model: a serialised SentencePiece model with ids pad 0, unknown 1, start 2 and end 3.
        name: what an error calls it, such as its file.
        vocab_size: of what reads the ids, where the SentencePiece model has more pieces: those are unknown then. By
            default all of them.
        languages: each of them has a token, a control piece, which no text can have in it.

    Raises:
        InputError: not a SentencePiece model, or one with other ids, or without the token of a language.
    """

    def __init__(
        self, model: bytes, name: str = "tokenizer", vocab_size: int | None = None, languages: Sequence[str] = ()
    ):
        super().__init__(name=None)
        try:
            processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        except (RuntimeError, ValueError):
            raise InputError(f"{name} is not a SentencePiece model") from None
        ids = (processor.pad_id(), processor.unk_id(), processor.bos_id(), processor.eos_id())
        if ids != (PAD, UNKNOWN, START, END):
            raise InputError(
                f"{name} must have ids pad 0, unknown 1, start 2, end 3: train it with --pad_id=0 --unk_id=1 "
                f"--bos_id=2 --eos_id=3. Received: pad {ids[0]}, unknown {ids[1]}, start {ids[2]}, end {ids[3]}"
            )
        self.model = model
        self.vocab_size: int = vocab_size or processor.vocab_size()
        if self.vocab_size > processor.vocab_size():
            raise InputError(f"{name} has {processor.vocab_size()} pieces, and the model reads {vocab_size}")
        self.pieces = [processor.id_to_piece(i) for i in range(self.vocab_size)]
        self.languages = {language: _id_of(language, processor, name) for language in languages}
        if languages:
            names = tf.lookup.KeyValueTensorInitializer(
                list(self.languages), list(self.languages.values()), value_dtype=tf.int32
            )
            self._language_table = tf.lookup.StaticHashTable(names, PAD)
        self._detokenizer = self._processor_of(model, tf.int32)
        self._processor, self._table = self._detokenizer, None
        if self.vocab_size < processor.vocab_size() or any(map(processor.is_unused, range(self.vocab_size))):
            # The vocabulary is not the model's own: its pieces are looked up, so that one that the model takes for
            # unknown text has its id where the vocabulary has it.
            self._processor = self._processor_of(model, tf.string)
            known = [i for i in range(END + 1, self.vocab_size) if not processor.is_control(i)]
            pieces = [self.pieces[i] for i in known]
            entries = tf.lookup.KeyValueTensorInitializer(pieces, known, value_dtype=tf.int32)
            self._table = tf.lookup.StaticHashTable(entries, UNKNOWN)

    def _processor_of(self, model: bytes, out_type: tf.DType) -> tf_text.SentencepieceTokenizer:
        processor = tf_text.SentencepieceTokenizer(model, out_type=out_type)
        processor._model_resource = _SharedModel(model, None)
        return processor

    @classmethod
    def load(cls, path: str | Path, vocab_size: int | None = None, languages: Sequence[str] = ()) -> "Tokenizer":
        """Read a SentencePiece model file."""
        try:
            return cls(Path(path).read_bytes(), str(path), vocab_size, languages)
        except OSError as error:
            raise InputError(f"cannot read the tokenizer {path}: {error.strerror}") from None

    @property
    def is_bpe(self) -> bool:
        """Whether it merges by byte pair encoding."""
        spec = sentencepiece_model_pb2.ModelProto.FromString(self.model).trainer_spec
        return spec.model_type == spec.BPE

    def tokenize(self, text: Any) -> tf.RaggedTensor:
        """Tokenise strings [B] to ids [B, any], without start and end. Invalid UTF-8 is read as U+FFFD."""
        return self._ids(self._processor, text)

    def _ids(self, processor: tf_text.SentencepieceTokenizer, text: Any) -> tf.RaggedTensor:
        """Return the ids that a processor gives; where it gives pieces, those of the vocabulary have one."""
        if self._table is None:
            return processor.tokenize(text)
        pieces = processor.tokenize(text)
        # SentencePiece writes a space before `>>de<<` at the beginning of a text, as before all else.
        front = pieces[:, :2].to_tensor("", shape=[None, 2])
        has_mark = (front[:, 0] == SPACE_MARK) & tf.strings.regex_full_match(front[:, 1], LANGUAGE_CODE)
        starts = pieces.row_starts() + tf.cast(has_mark, pieces.row_splits.dtype)
        places = tf.ragged.range(starts, pieces.row_limits(), row_splits_dtype=pieces.row_splits.dtype)
        ids = tf.gather(self._table.lookup(pieces.flat_values), places.flat_values)
        return places.with_flat_values(ids)

    def tokenize_by_chance(self, text: Any, alpha: float) -> tf.RaggedTensor:
        """Tokenise strings [B] as `tokenize` does, but cut them by chance: subword regularisation.

        SentencePiece draws, and takes no seed: each process draws differently.

        Args:
            text: the strings.
            alpha: of a BPE, the share of merges that are left out (BPE-dropout, Provilkov et al. 2020); of a unigram
                model, the exponent of the probabilities it draws by (Kudo 2018).

        Raises:
            InputError: a model that has one way to cut, such as of words.
        """
        drawing = tf_text.SentencepieceTokenizer(self.model, self._processor.out_type, nbest_size=-1, alpha=alpha)
        drawing._model_resource = self._processor._model_resource
        try:
            return self._ids(drawing, text)
        except tf.errors.OpError as error:
            raise InputError(f"this tokenizer cannot cut by chance, a BPE can: {error.message}") from None

    def language_ids(self, languages: Any) -> tf.Tensor:
        """Return the ids [B] of the tokens of languages, strings [B].

        Raises:
            tf.errors.InvalidArgumentError: one that this has not.
        """
        names = tf.convert_to_tensor(languages, tf.string)
        ids = self._language_table.lookup(names)
        valid = ", ".join(self.languages)
        with tf.control_dependencies(
            [tf.debugging.Assert(tf.reduce_all(ids != PAD), ["unknown language among", names, "valid are", valid])]
        ):
            return tf.identity(ids)

    def check_languages(self, languages: Iterable[str]) -> None:
        """Raise InputError for a language that this has not."""
        for language in languages:
            if language not in self.languages:
                raise unknown("language", language, self.languages)

    def detokenize(self, ids: Any) -> tf.Tensor:
        """Join ids [B, T] to strings [B]; padding, start and end say nothing, and neither does an impossible id."""
        says_something = ((ids == UNKNOWN) | (ids > END)) & (ids < self.vocab_size)
        text = self._detokenizer.detokenize(tf.ragged.boolean_mask(ids, says_something))
        # A word model writes the mark of a space before an unknown word as bytes, which come back as the mark.
        return tf.strings.regex_replace(tf.strings.regex_replace(text, SPACE_MARK, " "), "^ ", "")

    def pieces_of(self, ids: Any) -> tf.Tensor:
        """Return the pieces of ids [...] as strings [...]; padding is empty, and so is an impossible id."""
        return tf.gather(tf.constant(["", *self.pieces[1:], ""]), tf.minimum(ids, self.vocab_size))


def _id_of(language: str, processor: sentencepiece.SentencePieceProcessor, name: str) -> int:
    """Return the id of the token of a language."""
    for piece in language_pieces(language):
        id = processor.piece_to_id(piece)
        if processor.is_control(id) and processor.id_to_piece(id) == piece:
            return id
    piece = language_pieces(language)[0]
    raise InputError(f"{name} has no token of the language {language}: train it with --control_symbols={piece}")


def train_tokenizer(sentences: Iterable[str], config: TokenizerConfig, languages: Sequence[str] = ()) -> bytes:
    """Train a SentencePiece model on sentences, with a token for each of the languages, and return it serialised.

    Where the text is too small for `config.vocab_size`, the vocabulary is smaller, and a warning says so.

    Raises:
        InputError: the vocabulary has no room for the special tokens, the bytes and the characters.
    """
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(sentences),
            model_writer=model,
            model_type=config.model_type,
            vocab_size=config.vocab_size,
            hard_vocab_limit=False,
            byte_fallback=config.byte_fallback,
            normalization_rule_name=config.normalization,
            character_coverage=config.character_coverage,
            max_sentence_length=65_536,
            # More sentences than these give the same pieces, at the cost of memory.
            input_sentence_size=10_000_000,
            shuffle_input_sentence=True,
            control_symbols=[language_pieces(language)[0] for language in languages],
            pad_id=PAD,
            unk_id=UNKNOWN,
            bos_id=START,
            eos_id=END,
            minloglevel=2,
        )
    except RuntimeError as error:
        needed = re.search(r"smaller than required_chars\. \d+ vs (\d+)", str(error))
        if needed or "vocab_size" in str(error):
            least = f"at least {needed[1]}" if needed else "more"
            raise InputError(
                "tokenizer.vocab_size has no room for the special tokens, the bytes and the characters of this text: "
                f"set it to {least}. Received: {config.vocab_size}"
            ) from None
        raise InputError(f"SentencePiece cannot learn from this text: {error}") from None
    size = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue()).vocab_size()
    if size < config.vocab_size:
        log.warning("the text has %d pieces at most: the vocabulary is that, not %d", size, config.vocab_size)
    return model.getvalue()


def text_of(sentences: list[str]) -> tf.Tensor:
    """Return Python strings as a tensor; what is no character (a lone surrogate) becomes a question mark."""
    return tf.constant([sentence.encode("utf-8", "replace") for sentence in sentences], tf.string)
