"""Which words of a translation belong to which words of its source, read off attention."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from tf_transformer.tokenizers.vocabulary import SPACE_MARK

if TYPE_CHECKING:
    import numpy as np

UNITS = ("words", "tokens")


class AlignedString(NamedTuple):
    """A translation, and what its tokens attended to."""

    translation: str
    source_tokens: list[str]
    """S pieces, including the language if the model has several, and the end token"""
    target_tokens: list[str]
    """T pieces, including the end token if there is one"""
    attention: "np.ndarray"
    """[T, S]"""

    def links(self, unit: str = "words") -> list[tuple[int, int]]:
        """Return pairs of a source unit and the target unit that attends to it most, counted from 0.

        Every target unit has one link, to the source unit that its tokens attend to most in sum. End tokens and
        languages are no units.

        Args:
            unit: "words", which are separated by spaces in the text as the tokenizer normalises it; or "tokens".
        """
        import numpy as np  # which takes a while

        source, target = (units_of(tokens, unit) for tokens in (self.source_tokens, self.target_tokens))
        if not source or not target:
            return []
        weights = np.array([[self.attention[np.ix_(rows, columns)].sum() for columns in source] for rows in target])
        return sorted((int(best), i) for i, best in enumerate(weights.argmax(axis=1)))


def units_of(tokens: Sequence[str], unit: str) -> list[list[int]]:
    """Return for each word, or each token, of a text the places of its pieces."""
    starts = [i for i, token in enumerate(tokens) if token.startswith(SPACE_MARK)]
    # What stands before the first word is a language; the end token is the only other that is not text.
    text = [i for i in range(starts[0] if starts else 0, len(tokens)) if tokens[i] not in ("", "</s>")]
    if unit == "tokens" or not starts:
        return [[i] for i in text]
    words: list[list[int]] = []
    for i in text:
        if i in starts and not (words and all(tokens[j] == SPACE_MARK for j in words[-1])):
            words.append([])
        words[-1].append(i)
    return [word for word in words if any(tokens[i] != SPACE_MARK for i in word)]


def pharaoh(links: Iterable[tuple[int, int]]) -> str:
    """Return links as in the Pharaoh format: "0-0 1-2", the source first."""
    return " ".join(f"{source}-{target}" for source, target in links)


def alignment_error_rate(
    found: Iterable[tuple[int, int]], sure: Iterable[tuple[int, int]], possible: Iterable[tuple[int, int]] = ()
) -> float:
    """Return the alignment error rate (Och and Ney 2003): 0 if all is right, 1 if nothing is.

    Args:
        found: the links to judge.
        sure: links that must be found.
        possible: further links that may be found.
    """
    found, sure = set(found), set(sure)
    if not found and not sure:
        return 0.0
    return 1 - (len(found & sure) + len(found & (sure | set(possible)))) / (len(found) + len(sure))
