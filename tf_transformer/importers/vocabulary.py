"""Vocabularies of imported models in our order of ids, and their SentencePiece models, rewritten to give these ids."""

import logging
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
from google.protobuf.message import DecodeError
from sentencepiece import SentencePieceProcessor, sentencepiece_model_pb2

from tf_transformer.config.special_tokens import END, PAD, SPECIAL_TOKENS, START, UNKNOWN, UNLIKELY
from tf_transformer.errors import InputError
from tf_transformer.importers.added_tokens import AddedToken
from tf_transformer.importers.folder import LARGEST, read_object, shown

SPACE_MARK = "\u2581"
MOST_PIECES = 10_000_000

log = logging.getLogger(__name__)


class Vocabulary(NamedTuple):
    """The vocabulary of an imported model."""

    pieces: list[str]
    """in the order of their ids"""
    pad: int | None
    """None if there is no padding token"""
    unknown: int
    end: int
    start: int | None
    """what the decoder reads first, which may be one of the others. None stands for a vector of zeros"""
    control: frozenset[str] = frozenset()
    """pieces that cannot occur in text, such as the tokens of languages"""
    words: frozenset[str] = frozenset()
    """pieces that text is cut at before it is cut into the others"""

    def order(self) -> list[int]:
        """Return, for each of our ids, the id in this vocabulary, or the size of this vocabulary if it has none.

        Our order is padding, unknown, start and end, followed by the other pieces in their original order.
        """
        none = len(self.pieces)
        special = [none if i is None else i for i in (self.pad, self.unknown, self.start, self.end)]
        return special + [i for i in range(none) if i not in special]

    def ordinary(self) -> list[str]:
        """Return the pieces of our ids after the special ones."""
        return [self.pieces[i] for i in self.order()[SPECIAL_TOKENS:]]

    def table(self, theirs: np.ndarray) -> np.ndarray:
        """Return a table of embeddings [V, D] in our order."""
        order = np.array(self.order())
        ours = np.take(theirs, order, axis=0, mode="clip")  # it may be large, so no second copy is made
        ours[order == len(self.pieces)] = 0
        return ours

    def bias(self, theirs: np.ndarray, banned: Collection[int] = ()) -> np.ndarray:
        """Return the bias of the logits [V] in our order.

        It is `UNLIKELY` for missing tokens, for the start token, and for `banned` ones, ids in this vocabulary. The
        end is never banned, and the search itself can ban the unknown token (`decoding.ban_unknown`).
        """
        ours = np.append(theirs, np.float32(UNLIKELY))
        ours[[id for id in banned if id not in (self.end, self.unknown) and id < len(theirs)]] = UNLIKELY
        ours = ours[self.order()]
        ours[START] = UNLIKELY
        return ours


def read_pieces(file: Path) -> dict[int, str]:
    """Return the pieces of a vocab.json by their ids.

    Raises:
        InputError: the file is missing or damaged, or is not a vocabulary.
    """
    ids = read_object(file)
    if wrong := [
        id for id in ids.values() if isinstance(id, bool) or not isinstance(id, int) or not 0 <= id <= LARGEST
    ]:
        raise InputError(f"{file} must have an id for each piece. Received: {shown(wrong[0])}")
    pieces = {id: piece for piece, id in ids.items()}
    if len(pieces) < len(ids):
        raise InputError(f"{file} has {len(ids)} pieces, but some share an id")
    return pieces


def placed(pieces: dict[int, str], added: Mapping[str, AddedToken]) -> dict[int, str]:
    """Return pieces by their ids with added tokens among them.

    Raises:
        InputError: a token has the id of another piece, or a piece has another id.
    """
    ids = {piece: id for id, piece in pieces.items()}
    for text, token in added.items():
        if pieces.get(token.id, text) != text or ids.get(text, token.id) != token.id:
            raise InputError(
                f"{token.file} gives {text!r} the id {token.id}, which contradicts the vocabulary: there "
                f"{token.id} is {pieces.get(token.id)!r}, and {text!r} is {ids.get(text)}"
            )
    return pieces | {token.id: text for text, token in added.items()}


def filled(pieces: dict[int, str], size: int, folder: Path) -> list[str]:
    """Return as many pieces as a model has. Ids without a piece, with which vocabularies are padded, get one.

    Raises:
        InputError: there are more pieces than that.
    """
    most = max(pieces, default=0)
    if most >= size:
        raise InputError(
            f"{folder} has a vocabulary of {most + 1} pieces, but its model has {size}: they do not belong together"
        )
    if size > MOST_PIECES:
        raise InputError(f"{folder}: a model of {size} pieces is too large")
    taken = set(pieces.values())
    return [pieces.get(i) or other_than(taken, f"<unused_{i}>") for i in range(size)]


def other_than(taken: Collection[str], text: str) -> str:
    """Return a text that is not taken: the given one, or it in as many brackets as it needs."""
    while text in taken:
        text = f"<{text}>"
    return text


def as_words(pieces: dict[int, str], added: Mapping[str, AddedToken], folder: Path) -> tuple[dict[int, str], set[str]]:
    """Return pieces in which added words are written as SentencePiece sees them in text, and these words.

    transformers cuts text at such words wherever they are; SentencePiece does so where they begin a word.
    """
    words, taken = {}, set(pieces.values())
    for text, token in added.items():
        marked = SPACE_MARK + text.strip().replace(" ", SPACE_MARK)
        words[token.id] = text if marked in taken else marked
        taken.add(marked)
    if words:
        shown = ", ".join(sorted(added)[:5])
        log.warning("%s: the added words %s are tokens only where they begin a word of the text", folder, shown)
    return pieces | words, set(words.values())


def parsed(model: bytes, name: str) -> sentencepiece_model_pb2.ModelProto:
    """Return a SentencePiece model as a protocol buffer.

    Raises:
        InputError: `model` is not a SentencePiece model.
    """
    try:
        proto = sentencepiece_model_pb2.ModelProto.FromString(model)
    except DecodeError:
        proto = None
    if proto is None or len(proto.pieces) < SPECIAL_TOKENS:
        raise InputError(f"{name} is not a SentencePiece model")
    return proto


def rewritten(model: bytes, vocabulary: Vocabulary, name: str) -> bytes:
    """Return a SentencePiece model that cuts text into the same pieces as `model`, but gives our ids.

    Pieces of the vocabulary that `model` lacks, such as those of the other language, become unused pieces. Pieces of
    `model` that the vocabulary lacks still take part in cutting the text. Their ids lie beyond the vocabulary, and
    `Tokenizer` treats them as unknown. The control pieces of the vocabulary cannot occur in text, nor can those such as
    `>>de<<`: `Tokenizer` reads them at its beginning.

    Raises:
        InputError: `model` is not a SentencePiece model, or pieces are empty or equal.
    """
    proto = parsed(model, name)
    kind = sentencepiece_model_pb2.ModelProto.SentencePiece
    own = {piece.piece: piece for piece in proto.pieces if piece.type not in (kind.CONTROL, kind.UNKNOWN)}
    ordinary = vocabulary.ordinary()
    special = {PAD: "<pad>", UNKNOWN: "<unk>", START: "<s>", END: "</s>"}
    taken = {*ordinary, *own}
    pieces = []
    for i in range(SPECIAL_TOKENS):
        text = other_than(taken, special[i])  # a vocabulary may have such a word as an ordinary one
        pieces.append(kind(piece=text, score=0.0, type=kind.UNKNOWN if i == UNKNOWN else kind.CONTROL))
    for text in ordinary:
        piece = own.pop(text, None)
        if piece is None or text in vocabulary.control or text in vocabulary.words:
            foreign = kind.USER_DEFINED if text in vocabulary.words else kind.UNUSED
            type = kind.CONTROL if text in vocabulary.control else foreign
            piece = kind(piece=text, score=0.0, type=type)
        pieces.append(piece)
    pieces += own.values()
    ours = sentencepiece_model_pb2.ModelProto()
    ours.CopyFrom(proto)
    del ours.pieces[:]
    ours.pieces.extend(pieces)
    spec = ours.trainer_spec
    spec.pad_id, spec.unk_id, spec.bos_id, spec.eos_id = PAD, UNKNOWN, START, END
    spec.pad_piece, spec.unk_piece, spec.bos_piece, spec.eos_piece = (piece.piece for piece in pieces[:SPECIAL_TOKENS])
    spec.vocab_size = len(pieces)
    written = ours.SerializeToString()
    try:
        SentencePieceProcessor(model_proto=written)
    except (RuntimeError, ValueError) as error:
        raise InputError(f"{name} and the vocabulary make no SentencePiece model: {error}") from None
    return written
