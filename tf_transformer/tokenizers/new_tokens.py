"""Tokens that a vocabulary gets behind those that it has: languages, and pieces learned from new text."""

import heapq
import itertools
import logging
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from tf_transformer.config.special_tokens import END, UNKNOWN, language_pieces
from tf_transformer.errors import InputError
from tf_transformer.tokenizers.vocabulary import SPACE_MARK, Vocabulary

LEAST = 5
"""How often a character or a piece occurs in the text at least: what is rarer is not learned by the model either."""
LONGEST = 16
"""The most characters of a piece, as in SentencePiece."""
BONUS = 0.01
"""How much better the score of a piece is than that of its two parts, so that a unigram model prefers it."""

BPE = "bpe"

log = logging.getLogger(__name__)

Pair = tuple[str, str]


class NewToken(NamedTuple):
    """A token that a vocabulary gets."""

    piece: str
    parts: tuple[int, ...]
    """the tokens whose mean its weights start as; none for the mean of all pieces"""
    score: float = 0.0
    is_language: bool = False
    is_used: bool = True
    """whether text is cut into it; if not, it is a piece of the other side, with which this one shares its ids"""


def language_tokens(vocabulary: Vocabulary, languages: Mapping[str, str]) -> list[NewToken]:
    """Return a token for each new language, which starts as that of a language of the vocabulary.

    Raises:
        InputError: the vocabulary has the name of a new language as a piece.
    """
    tokens = []
    for new, old in languages.items():
        id = vocabulary.languages[old]
        is_bare = vocabulary.pieces[id] == old
        tokens.append(NewToken(language_pieces(new)[is_bare], (id,), is_language=True))
    there = pieces_of(vocabulary)
    if found := {token.piece for token in tokens} & there:
        raise InputError(f"the tokenizer has the piece {min(found)!r}: give the language another name")
    return tokens


def with_tokens(vocabulary: Vocabulary, tokens: Sequence[NewToken]) -> bytes:
    """Return the SentencePiece model of a vocabulary with more tokens, behind the ids in use."""
    from sentencepiece import sentencepiece_model_pb2  # needs protobuf, which translating does not

    kind = sentencepiece_model_pb2.ModelProto.SentencePiece
    proto = sentencepiece_model_pb2.ModelProto.FromString(vocabulary.model)
    pieces = [*proto.pieces]
    ordinary = {True: kind.NORMAL, False: kind.UNUSED}
    pieces[vocabulary.vocab_size : vocabulary.vocab_size] = [
        kind(piece=token.piece, score=token.score, type=kind.CONTROL if token.is_language else ordinary[token.is_used])
        for token in tokens
    ]
    extended = sentencepiece_model_pb2.ModelProto()
    extended.CopyFrom(proto)
    del extended.pieces[:]
    extended.pieces.extend(pieces)
    extended.trainer_spec.vocab_size = len(pieces)
    return extended.SerializeToString()


def with_pieces(vocabulary: Vocabulary, pieces: Sequence[NewToken]) -> Vocabulary:
    """Return a vocabulary with more pieces, behind the ids in use."""
    return Vocabulary(
        with_tokens(vocabulary, pieces),
        vocab_size=vocabulary.vocab_size + len(pieces),
        languages=tuple(vocabulary.languages),
    )


def with_those_of_the_other(
    source: Sequence[NewToken], target: Sequence[NewToken]
) -> tuple[list[NewToken], list[NewToken]]:
    """Return the new pieces of two sides whose tokenizers share their ids: each side has those of the other too.

    A piece of both starts as what wrote it in the target, where its logit must be the mean of theirs.
    """
    all_pieces = {token.piece: token for token in (*source, *target)}
    sides = ({token.piece: token for token in side} for side in (source, target))
    of_source, of_target = (
        [
            side[piece]._replace(parts=token.parts) if piece in side else token._replace(is_used=False)
            for piece, token in all_pieces.items()
        ]
        for side in sides
    )
    return of_source, of_target


def learned_pieces(vocabulary: Vocabulary, sentences: Iterable[str], number: int) -> list[NewToken]:
    """Return the pieces that a vocabulary lacks most for a text.

    These are the characters that it does not have, the most frequent first, and then what BPE would learn next
    (Sennrich et al. 2016, algorithm 1) from the text as the vocabulary cuts it: the most frequent pair of adjacent
    pieces becomes one, again and again. Only letters within a word are joined. The scores of the new pieces are such
    that a unigram model, as well as a BPE, cuts text into them where it cut text into their parts.

    Args:
        vocabulary: that of the run.
        sentences: the text.
        number: how many pieces to learn at most. If the text yields fewer, a warning says so.

    Raises:
        InputError: the text yields none; a vocabulary of characters or words, which would not use them.
    """
    check_type(vocabulary)
    words: Counter[str] = Counter()
    for sentence in sentences:
        words.update(re.findall(f"{SPACE_MARK}?[^{SPACE_MARK}]+", vocabulary.processor.normalize(sentence)))
    characters = new_characters(vocabulary, words, number)
    larger = with_pieces(vocabulary, characters)
    learned = characters + _joined(larger, words, number - len(characters), characters)
    if not learned:
        raise InputError(
            f"the text yields no new piece: nothing that the tokenizer cuts occurs {LEAST} times in it. Give more text"
        )
    if len(learned) < number:
        log.warning(
            "the text yields only %d new pieces that occur %d times or more, of the %d asked for",
            len(learned),
            LEAST,
            number,
        )
    return learned


def check_type(vocabulary: Vocabulary) -> None:
    """Raise InputError for a vocabulary of characters or words, which would not use new pieces."""
    if vocabulary.model_type not in ("unigram", BPE):
        raise InputError(f"only a tokenizer of type unigram or bpe gets pieces. Received: {vocabulary.model_type}")


def pieces_of(vocabulary: Vocabulary) -> set[str]:
    """Return all pieces of the SentencePiece model, also those that are not in use."""
    processor = vocabulary.processor
    return {processor.id_to_piece(i) for i in range(processor.vocab_size())}


def least_score(vocabulary: Vocabulary) -> float:
    """Return the score of the worst piece."""
    processor = vocabulary.processor
    return min((processor.get_score(i) for i in range(END + 1, vocabulary.vocab_size)), default=0.0)


def ids_of(vocabulary: Vocabulary, pieces: Iterable[str]) -> list[int]:
    """Return the ids of pieces that the SentencePiece model has cut text into."""
    table, processor = vocabulary.piece_to_id, vocabulary.processor
    return [processor.piece_to_id(piece) if table is None else table.get(piece, UNKNOWN) for piece in pieces]


def new_characters(vocabulary: Vocabulary, words: Counter[str], number: int | None = None) -> list[NewToken]:
    """Return the characters of words that a vocabulary does not have, so many at most, the most frequent first."""
    counts: Counter[str] = Counter()
    for word, count in words.items():
        for character in word:
            counts[character] += count
    there = pieces_of(vocabulary)
    missing = [
        character
        for character, count in counts.most_common()
        if count >= LEAST and character not in there and unicodedata.category(character) != "Cc"
    ]
    tokens = []
    for character in missing[:number]:
        # Bytes may have written it before. One that could not be written starts as an average piece.
        known = ids_of(vocabulary, vocabulary.processor.encode(character, out_type=str))
        parts = tuple(id for id in known if id != UNKNOWN and vocabulary.pieces[id] != SPACE_MARK)
        tokens.append(NewToken(character, parts, least_score(vocabulary) - 1))
    return tokens


def _joined(vocabulary: Vocabulary, words: Counter[str], number: int, characters: Sequence[NewToken]) -> list[NewToken]:
    """Return the pieces that BPE learns from words as a vocabulary cuts them, which has new characters already."""
    cut = [vocabulary.processor.encode(word, out_type=str) for word in words]
    ids = {piece: id for piece in {piece for word in cut for piece in word} for id in ids_of(vocabulary, [piece])}
    is_bpe, least = vocabulary.model_type == BPE, least_score(vocabulary)
    scores = {piece: vocabulary.processor.get_score(id) for piece, id in ids.items()}
    parts = {piece: (id,) for piece, id in ids.items()} | {token.piece: token.parts for token in characters}
    there = pieces_of(vocabulary)
    joins = Joins(cut, list(words.values()), {piece for piece, id in ids.items() if id == UNKNOWN})
    learned: list[NewToken] = []
    for (left, right), piece in joins.best(there, number):
        parts[piece] = parts[left] + parts[right]
        scores[piece] = least - 1 - len(learned) if is_bpe else scores[left] + scores[right] + BONUS
        learned.append(NewToken(piece, parts[piece], scores[piece]))
    return learned


class Joins:
    """Words cut into pieces, of which adjacent ones are joined.

    Args:
        words: the pieces of each word.
        counts: how often each word occurs.
        unknown: pieces that are never joined.
    """

    def __init__(self, words: list[list[str]], counts: list[int], unknown: set[str]):
        self._words, self._counts, self._unknown = words, counts, unknown
        self._pairs: Counter[Pair] = Counter()
        self._places: defaultdict[Pair, set[int]] = defaultdict(set)
        for number in range(len(words)):
            self._add(number, 1)
        self._heap = [(-count, pair) for pair, count in self._pairs.items()]
        heapq.heapify(self._heap)

    def best(self, there: set[str], number: int) -> Iterator[tuple[Pair, str]]:
        """Join the most frequent pair and yield it with its piece, again and again; no piece is one of `there`."""
        there = set(there)
        while number > 0 and self._heap:
            negative, pair = heapq.heappop(self._heap)
            piece = "".join(pair)
            if -negative < LEAST:
                return
            # A count that has changed is in the heap once more.
            if -negative == self._pairs[pair] and piece not in there and _is_joinable(piece):
                there.add(piece)
                self._join(pair, piece)
                number -= 1
                yield pair, piece

    def _pairs_of(self, number: int) -> list[Pair]:
        return [pair for pair in itertools.pairwise(self._words[number]) if not self._unknown.intersection(pair)]

    def _add(self, number: int, times: int) -> None:
        """Add the pairs of a word to the counts so many times."""
        for pair in self._pairs_of(number):
            self._pairs[pair] += times * self._counts[number]
            self._places[pair].add(number)

    def _join(self, pair: Pair, piece: str) -> None:
        """Join a pair wherever it is."""
        changed: set[Pair] = set()
        for number in self._places.pop(pair):
            changed.update(self._pairs_of(number))
            self._add(number, -1)
            joined: list[str] = []
            for each in self._words[number]:
                if joined and (joined[-1], each) == pair:
                    joined[-1] = piece
                else:
                    joined.append(each)
            self._words[number] = joined
            self._add(number, 1)
            changed.update(self._pairs_of(number))
        for one in changed:
            heapq.heappush(self._heap, (-self._pairs[one], one))


def _is_joinable(piece: str) -> bool:
    """Say whether a piece is a part of a word: letters, after a space at most."""
    letters = piece.removeprefix(SPACE_MARK)
    return 0 < len(letters) <= LONGEST and all(unicodedata.category(letter)[0] in "LM" for letter in letters)
