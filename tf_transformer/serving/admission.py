"""What a request asks of a model: counted in full, and refused if it is too much, before any of it is computed."""

from collections.abc import Mapping

import numpy as np

from tf_transformer.errors import unknown
from tf_transformer.runs.descriptions import LANGUAGES, Described
from tf_transformer.serving.limits import Limits, Refused
from tf_transformer.serving.signatures import Signatures
from tf_transformer.serving.tensors import Columns

PREFIX = "prefix_ids"
TERMS = "terms"
TARGET = "target"


class Admission:
    """Counts the tokens of requests, and refuses those that ask for too much or for what there is not.

    Args:
        signatures: what counts tokens.
        limits: the limits of requests.
        described: the model's description, if it has one.
    """

    def __init__(self, signatures: Signatures, limits: Limits, described: Described | None):
        self._signatures = signatures
        self._limits = limits
        self._described = described
        self.languages = described.languages if described else ()
        """All languages with a token; () if the model has one direction."""

    def check(self, columns: Columns) -> None:
        """Refuse what is wrong whatever the tokens are. A batch with it would fail for all its clients, or ignore it.

        Raises:
            Refused: a sentence has too many bytes; a language that the model does not have; too many terms, or one
                without text; a prefix that is no list of token ids.
        """
        for name, column in columns.items():
            if (received := max(map(len, column), default=0)) > (most := self._limits.max_sentence_bytes):
                raise Refused(400, f"{name}: a sentence may have at most {most} bytes. Received: {received}")
        for name in LANGUAGES:
            for language in dict.fromkeys(columns.get(name, ())) if self.languages else ():
                if (text := language.decode("utf-8", "replace")) not in self.languages:
                    raise Refused(400, f"{name}: {unknown('language', text[:100], self.languages)}")
        for terms in columns.get(TERMS, ()):
            self._check_terms(_terms(terms))
        for prefix in columns.get(PREFIX, ()):
            self._check_prefix(prefix.split())

    def tokens(self, columns: Columns) -> list[int]:
        """Return the number of tokens of each sentence, or of bytes if the model cannot count tokens.

        All inputs of a sentence count together, except those that name languages. Each term counts in full.

        Raises:
            Refused: a sentence has too many tokens in its terms or its prefix, or all sentences have too many.
        """
        counts = {name: self._counts(name, column) for name, column in columns.items() if name not in LANGUAGES}
        most = self._limits.max_term_tokens
        if (received := max(counts.get(TERMS, ()), default=0)) > most:
            raise Refused(400, f"the terms of a sentence may have at most {most} tokens. Received: {received}")
        self._check_room(counts)
        total = [sum(row) for row in zip(*counts.values(), strict=True)]
        if sum(total) > self._limits.max_tokens:
            raise Refused(400, f"a request may have at most {self._limits.max_tokens} tokens. Received: {sum(total)}")
        return total

    def _check_terms(self, terms: list[bytes]) -> None:
        if len(terms) > self._limits.max_terms:
            raise Refused(400, f"a sentence may have at most {self._limits.max_terms} terms. Received: {len(terms)}")
        if not all(term.decode("utf-8", "replace").strip() for term in terms):
            raise Refused(400, "each term must have text: leave out tabs with nothing between them")

    def _check_prefix(self, words: list[bytes]) -> None:
        size = self._described and self._described.config.model.target_vocab_size
        for word in words:
            if not word.isdigit() or int(word[:10]) >= (size or 10**9):
                shown = word[:50].decode("utf-8", "replace")
                most = f", below {size}" if size else ""
                raise Refused(400, f"{PREFIX} must be ids of tokens{most}, with spaces between them. Received: {shown}")

    def _check_room(self, counts: Mapping[str, list[int]]) -> None:
        """Raise Refused for a prefix that is longer than a translation of its text may be, and would be cut."""
        if self._described and PREFIX in counts:
            for source, prefix in zip(counts["text"], counts[PREFIX], strict=True):
                if prefix > (most := self._described.most_target(source)):
                    raise Refused(
                        400,
                        f"a translation of that text may have at most {most} tokens. Received: {prefix} in {PREFIX}",
                    )

    def _counts(self, name: str, column: list[bytes]) -> list[int]:
        if name == PREFIX:
            return [len(prefix.split()) for prefix in column]
        parts = [_terms(text) if name == TERMS else [text] for text in column]
        texts = [text for row in parts for text in row]
        counted = self._signatures.count(texts)
        if name in (TARGET, TERMS) and not self._knows_all:
            # The vocabulary of the source may take any number of letters that it lacks for one unknown token.
            letters = [len(text.decode("utf-8", "replace")) for text in texts]
            counted = list(map(max, counted, letters))
        ends = np.cumsum([len(row) for row in parts], dtype=int)
        sums = np.concatenate([[0], np.cumsum(counted, dtype=int)])
        return np.diff(sums[np.concatenate([[0], ends])]).tolist()

    @property
    def _knows_all(self) -> bool:
        """Whether the source vocabulary counts any text in full, because it is that of the target or has bytes."""
        tokenizer = self._described and self._described.config.tokenizer
        return not tokenizer or tokenizer.shared or tokenizer.byte_fallback


def _terms(given: bytes) -> list[bytes]:
    """Return the terms of a sentence, which have tabs between them; the empty string has none."""
    return given.split(b"\t") if given else []
