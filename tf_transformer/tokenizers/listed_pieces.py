"""Pieces that a vocabulary gets because somebody lists them: words that are to be one piece each."""

from collections import Counter
from collections.abc import Sequence

from tf_transformer.config.special_tokens import UNKNOWN
from tf_transformer.errors import InputError
from tf_transformer.tokenizers.new_tokens import (
    BONUS,
    BPE,
    LEAST,
    NewToken,
    check_type,
    ids_of,
    least_score,
    new_characters,
    pieces_of,
    with_pieces,
)
from tf_transformer.tokenizers.vocabulary import Vocabulary

SHOWN = 5
"""How many words an error names."""


def listed_pieces(vocabulary: Vocabulary, words: Sequence[str]) -> list[NewToken]:
    """Return the pieces by which a vocabulary cuts each of some words into one piece.

    A unigram model needs one for each word, and the characters that it does not have. A BPE joins two pieces at a time,
    so it also needs what the word begins with: for a word of the pieces a, b, c and d these are ab, abc and abcd, which
    it joins after all others. Words that are one piece already need none.

    Args:
        vocabulary: that of the run.
        words: the words, or terms of several words.

    Raises:
        InputError: words that cannot be one piece; a vocabulary of characters or words, which would not use new pieces.
    """
    check_type(vocabulary)
    # Each character counts as often as it must, to be taken.
    characters = new_characters(vocabulary, Counter({vocabulary.processor.normalize(word): LEAST for word in words}))
    larger = with_pieces(vocabulary, characters)
    there, is_bpe, least = pieces_of(larger), larger.model_type == BPE, least_score(larger)
    starts = {token.piece: token.parts for token in characters}
    learned: dict[str, NewToken] = {}
    for word in words:
        cut = larger.processor.encode(word, out_type=str)
        ids = ids_of(larger, cut)
        parts: list[int] = []
        score = 0.0
        for number, (piece, id) in enumerate(zip(cut, ids, strict=True)):
            parts += starts.get(piece, (id,) if id != UNKNOWN else ())
            score += larger.processor.get_score(larger.processor.piece_to_id(piece))
            whole = "".join(cut[: number + 1])
            if number and whole not in there and "\0" not in whole and (is_bpe or whole == "".join(cut)):
                worst = least - 1 - len(learned)
                learned.setdefault(whole, NewToken(whole, tuple(parts), worst if is_bpe else score + BONUS))
    found = [*characters, *learned.values()]
    extended = with_pieces(vocabulary, found)
    rows = [ids_of(extended, extended.processor.encode(word, out_type=str)) for word in words]
    if wrong := [word for word, row in zip(words, rows, strict=True) if len(row) != 1 or UNKNOWN in row]:
        names = ", ".join(map(repr, wrong[:SHOWN])) + (", ..." if len(wrong) > SHOWN else "")
        raise InputError(
            f"{len(wrong)} of the {len(words)} words cannot become one piece, because the tokenizer changes them or "
            f"does not use such a piece that it has: leave them out. Received: {names}"
        )
    return found
