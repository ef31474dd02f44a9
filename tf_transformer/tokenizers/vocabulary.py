"""Text to ids without TensorFlow, by the SentencePiece library, and the training of SentencePiece models."""

import contextlib
import functools
import io
import logging
import re
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import sentencepiece

from tf_transformer.config import TokenizerConfig
from tf_transformer.config.special_tokens import END, LANGUAGE_CODE, PAD, START, UNKNOWN, language_pieces
from tf_transformer.config.tokenizer import DEFAULT_NORMALIZATION
from tf_transformer.errors import InputError
from tf_transformer.tokenizers.normalization import all_visible, is_blank, kept, name_of, rules_of

SPACE_MARK = "\u2581"
"""The character that SentencePiece writes for a space, and that it also reads as one."""
AT_FRONT = "(?s)^>>.*?<<"
"""What is read as the code of a language at the beginning of a text, known or not, as in transformers."""

log = logging.getLogger(__name__)


class Vocabulary:
    """The pieces of a SentencePiece model and their ids.

    Args:
        model: a serialised SentencePiece model with ids pad 0, unknown 1, start 2 and end 3.
        name: the name of the model in errors, such as its file.
        vocab_size: the number of ids in use, if the SentencePiece model has more pieces; the other pieces are then
            unknown. By default all pieces are in use.
        languages: languages that each have a token. The token is a control piece, which cannot occur in text.

    Raises:
        InputError: `model` is not a SentencePiece model, has other special ids or fewer pieces than `vocab_size`, or
            lacks the token of a language.
    """

    def __init__(
        self, model: bytes, name: str = "tokenizer", vocab_size: int | None = None, languages: Sequence[str] = ()
    ):
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
        self.processor = processor
        self.vocab_size: int = vocab_size or processor.vocab_size()
        if self.vocab_size > processor.vocab_size():
            raise InputError(
                f"{name} has {processor.vocab_size()} pieces, but the model needs {vocab_size}: give the tokenizer "
                "that belongs to the model"
            )
        self.pieces = [processor.id_to_piece(i) for i in range(self.vocab_size)]
        self.languages = {language: _id_of(language, processor, name) for language in languages}
        self.piece_to_id: dict[str, int] | None = None
        """The ids of the pieces, or None if the SentencePiece model itself gives the right ids. A piece of the
        vocabulary has its id here even if the SentencePiece model takes it for unknown text."""
        if self.vocab_size < processor.vocab_size() or any(map(processor.is_unused, range(self.vocab_size))):
            known = [i for i in range(END + 1, self.vocab_size) if not processor.is_control(i)]
            self.piece_to_id = {self.pieces[i]: i for i in known}
        self.has_codes = any(re.fullmatch(LANGUAGE_CODE, piece) for piece in self.piece_to_id or ())
        """Whether text may begin with a language such as `>>de<<`, which is one token, and no text in SentencePiece."""

    @classmethod
    def load(cls, path: str | Path, *, vocab_size: int | None = None, languages: Sequence[str] = ()) -> "Vocabulary":
        """Read a SentencePiece model file; the arguments are those of the constructor."""
        try:
            return cls(Path(path).read_bytes(), str(path), vocab_size, languages)
        except OSError as error:
            raise InputError(f"cannot read the tokenizer {path}: {error.strerror}") from None

    @property
    def model_type(self) -> str:
        """The type of the model: unigram, bpe, char or word."""
        from sentencepiece import sentencepiece_model_pb2  # needs protobuf, which translating does not

        spec = sentencepiece_model_pb2.ModelProto.FromString(self.model).trainer_spec
        return str(spec.ModelType.Name(spec.model_type)).lower()

    @functools.cached_property
    def keeps_text(self) -> bool:
        """Whether the normalisation keeps every visible character."""
        return not self.is_changed(all_visible())

    def is_changed(self, text: str) -> bool:
        """Say whether the normalisation changes more of a text than its white space, and more than its case."""
        return kept(text).lower() != kept(self.normalized(text)).lower()

    def normalized(self, text: str) -> str:
        """Return a text as the tokenizer normalises it before it cuts it."""
        return self.processor.normalize(text).replace(SPACE_MARK, " ").strip()

    def encode(self, sentences: list[str], dropout: float = 0.0, seed: int = 0) -> list[list[int]]:
        """Return the ids of sentences, without start and end.

        The tokenizer inside the graph gives the same ids, except at ties of a unigram model: of two ways to cut a text
        with the same score it may take the other one.

        Args:
            sentences: text without lone surrogates.
            dropout: the share of merges of a BPE that are left out at random (BPE-dropout, Provilkov et al. 2020).
            seed: the seed of the dropout, below 2**32.
        """
        sentences = ["" if is_blank(sentence) else sentence for sentence in sentences]
        # On one thread, because several threads would draw random numbers in no fixed order.
        settings: dict[str, Any] = {"num_threads": 1}
        if dropout:
            sentencepiece.set_random_generator_seed(seed)
            settings |= {"enable_sampling": True, "alpha": dropout, "nbest_size": -1}
        if self.piece_to_id is None:
            return self.processor.encode(sentences, **settings)
        table = self.piece_to_id
        codes = [re.match(AT_FRONT, sentence) if self.has_codes else None for sentence in sentences]
        texts = [text[code.end() :] if code else text for text, code in zip(sentences, codes, strict=True)]
        rows = self.processor.encode(texts, out_type=str, **settings)
        fronts = [[code[0]] if code else [] for code in codes]
        return [
            [table.get(piece, UNKNOWN) for piece in (*front, *row)] for front, row in zip(fronts, rows, strict=True)
        ]


def _id_of(language: str, processor: sentencepiece.SentencePieceProcessor, name: str) -> int:
    """Return the id of the token of a language."""
    for piece in language_pieces(language):
        id = processor.piece_to_id(piece)
        if processor.is_control(id) and processor.id_to_piece(id) == piece:
            return id
    piece = language_pieces(language)[0]
    raise InputError(f"{name} has no token for the language {language}: train it with --control_symbols={piece}")


def train_tokenizer(sentences: Iterable[str], config: TokenizerConfig, languages: Sequence[str] = ()) -> bytes:
    """Train a SentencePiece model on sentences, with a token for each of the languages, and return it serialised.

    If the text is too small for `config.vocab_size`, the vocabulary is smaller, and a warning says so.

    Raises:
        InputError: `config.vocab_size` is too small for the special tokens, the bytes and the characters.
    """
    model = io.BytesIO()
    normalization = config.normalization or DEFAULT_NORMALIZATION
    rules = rules_of(normalization)
    try:
        with _settings_of(normalization, rules) as settings:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=iter(sentences),
                model_writer=model,
                model_type=config.model_type,
                vocab_size=config.vocab_size,
                hard_vocab_limit=False,
                byte_fallback=config.byte_fallback,
                **settings,
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
                "tokenizer.vocab_size is too small for the special tokens, the bytes and the characters of this text: "
                f"set it to {least}. Received: {config.vocab_size}"
            ) from None
        raise InputError(f"SentencePiece cannot learn from this text: {error}") from None
    size = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue()).vocab_size()
    if size < config.vocab_size:
        log.warning("the text yields only %d pieces: the vocabulary is smaller than %d", size, config.vocab_size)
    return model.getvalue() if rules is None else _named(model.getvalue(), normalization)


@contextlib.contextmanager
def _settings_of(normalization: str, rules: str | None) -> Iterator[dict[str, Any]]:
    """Give the settings of SentencePiece for a normalisation, and its rules if SentencePiece does not have them."""
    if rules is None:
        yield {"normalization_rule_name": normalization}
        return
    with tempfile.NamedTemporaryFile("w", suffix=".tsv", encoding="ascii") as file:
        file.write(rules)
        file.flush()
        yield {"normalization_rule_tsv": file.name}


def _named(model: bytes, normalization: str) -> bytes:
    """Return a SentencePiece model that names its normalisation, not the file that its rules came from."""
    from sentencepiece import sentencepiece_model_pb2

    proto = sentencepiece_model_pb2.ModelProto.FromString(model)
    proto.normalizer_spec.name = name_of(normalization)
    proto.normalizer_spec.ClearField("normalization_rule_tsv")
    return proto.SerializeToString()
