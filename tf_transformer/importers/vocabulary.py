"""Vocabularies of imported models in our order of ids, and their SentencePiece models, rewritten to give these ids."""

import re
from pathlib import Path
from typing import NamedTuple

import numpy as np
from google.protobuf.message import DecodeError
from sentencepiece import sentencepiece_model_pb2

from tf_transformer.config.special_tokens import END, LANGUAGE_CODE, PAD, SPECIAL_TOKENS, START, UNKNOWN
from tf_transformer.errors import InputError
from tf_transformer.importers.folder import read_json

UNLIKELY = -100.0
"""The bias of a token that the imported model lacks: its probability is 0 in float32, and a smoothed loss is finite."""


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

    def bias(self, theirs: np.ndarray) -> np.ndarray:
        """Return the bias of the logits [V] in our order, `UNLIKELY` for missing tokens and for the start token."""
        ours = np.append(theirs, np.float32(UNLIKELY))[self.order()]
        ours[START] = UNLIKELY
        return ours


def read_pieces(file: Path) -> list[str]:
    """Return the pieces of a vocab.json in the order of their ids.

    Raises:
        InputError: the file is missing or damaged, or is not a vocabulary.
    """
    ids = read_json(file)
    if not (isinstance(ids, dict) and sorted(ids.values()) == list(range(len(ids)))):
        raise InputError(f"{file} must have an id for each piece, and the ids must run from 0 without a gap")
    return sorted(ids, key=ids.__getitem__)


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
    `Tokenizer` treats them as unknown. Pieces such as `>>de<<` are one token each. The control pieces of the
    vocabulary cannot occur in text.

    Raises:
        InputError: `model` is not a SentencePiece model.
    """
    proto = parsed(model, name)
    kind = sentencepiece_model_pb2.ModelProto.SentencePiece
    own = {piece.piece: piece for piece in proto.pieces if piece.type not in (kind.CONTROL, kind.UNKNOWN)}
    ordinary = vocabulary.ordinary()
    special = {PAD: "<pad>", UNKNOWN: "<unk>", START: "<s>", END: "</s>"}
    taken = {*ordinary, *own}
    pieces = []
    for i in range(SPECIAL_TOKENS):
        text = special[i]
        while text in taken:  # a vocabulary may have such a word as an ordinary one
            text = f"<{text}>"
        pieces.append(kind(piece=text, score=0.0, type=kind.UNKNOWN if i == UNKNOWN else kind.CONTROL))
    for text in ordinary:
        if text in own and text not in vocabulary.control:
            pieces.append(own.pop(text))
        else:
            foreign = kind.USER_DEFINED if re.fullmatch(LANGUAGE_CODE, text) else kind.UNUSED
            type = kind.CONTROL if text in vocabulary.control else foreign
            pieces.append(kind(piece=text, score=0.0, type=type))
    pieces += own.values()
    ours = sentencepiece_model_pb2.ModelProto()
    ours.CopyFrom(proto)
    del ours.pieces[:]
    ours.pieces.extend(pieces)
    spec = ours.trainer_spec
    spec.pad_id, spec.unk_id, spec.bos_id, spec.eos_id = PAD, UNKNOWN, START, END
    spec.pad_piece, spec.unk_piece, spec.bos_piece, spec.eos_piece = (piece.piece for piece in pieces[:SPECIAL_TOKENS])
    spec.vocab_size = len(pieces)
    return ours.SerializeToString()
