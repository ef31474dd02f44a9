"""Strings in, strings out, by LiteRT: vocabularies, model and search together."""

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tf_transformer.config import DecodingConfig
from tf_transformer.config.special_tokens import END, PAD, START, UNKNOWN
from tf_transformer.errors import InputError
from tf_transformer.litert.model import Model
from tf_transformer.litert.search import Hypotheses, search
from tf_transformer.runs.descriptions import LITERT_MODEL, Described, is_litert
from tf_transformer.translation.cut import warn_of_cut
from tf_transformer.translation.in_batches import batches_of
from tf_transformer.vocabulary import SPACE_MARK, Vocabulary

BATCH_TOKENS = 2048
"""Most source tokens that are translated at once, padding included."""


class Encoded(NamedTuple):
    """A sentence as the encoder reads it."""

    ids: list[int]
    """the token of the language where the model has several, and the end token at the end"""
    is_cut: bool
    """whether it had more tokens than the search takes"""


class Found(NamedTuple):
    """The translations of a sentence."""

    texts: list[str]
    """the best first; fewer are there where the search found fewer: those are empty"""
    scores: list[float]
    """what they are ranked by; -inf where there is none"""
    log_probabilities: list[float]
    """of the tokens, summed"""


class Translator:
    """Translates strings: `Translator.load("exported")` has what `export --format litert` wrote.

    It may be used by several threads, which take turns.

    Args:
        model: of LiteRT.
        source: the vocabulary of the source language.
        target: that of the target language.
        decoding: how a translation is searched for, and between which languages where the model has several.
        max_positions: that the model has learned; None where any will do.

    Raises:
        InputError: a language that the model does not have; drawing, which this runtime has not.
    """

    def __init__(
        self,
        model: Model,
        source: Vocabulary,
        target: Vocabulary,
        decoding: DecodingConfig,
        max_positions: int | None = None,
    ):
        if decoding.temperature:
            raise InputError(
                f"LiteRT searches, greedily or by a beam, and draws no tokens. Received: {decoding.temperature=}"
            )
        decoding.check_languages(source.languages)
        self.model = model
        self.source = source
        self.target = target
        self.decoding = decoding
        self.max_positions = max_positions
        self._turn = threading.Lock()

    @classmethod
    def load(
        cls, path: str | Path | Described, decoding: DecodingConfig | None = None, *, threads: int | None = None
    ) -> "Translator":
        """Return the translator of a folder that `export --format litert` wrote.

        Args:
            path: the folder, or what has been read of it.
            decoding: how to search; by default as it was exported.
            threads: that LiteRT computes with; all cores by default.

        Raises:
            InputError: not such a folder, or a damaged one.
        """
        folder = Path(path) if not isinstance(path, Described) else path.path
        if not is_litert(folder):
            raise InputError(f"{folder} is not an export for LiteRT: it has no {LITERT_MODEL}")
        export = path if isinstance(path, Described) else Described(folder)
        facts, model = export.description["litert"], export.config.model
        source, target = facts["tokenizers"]
        sizes = model.input_vocab_size, model.target_vocab_size
        vocabulary = Vocabulary.load(folder / source, export.languages, sizes[0])
        return cls(
            Model(folder, facts["layers"], threads),
            vocabulary,
            vocabulary if source == target else Vocabulary.load(folder / target, export.languages, sizes[1]),
            decoding or export.config.decoding,
            facts["max_positions"],
        )

    def translate_strings(self, sentences: list[str], numbers: Sequence[int] | None = None) -> list[str]:
        """Translate any number of sentences; warnings name those that were cut, by their numbers where they have some.

        Raises:
            InputError: no languages, where the model has several.
        """
        return [best for [(best, _)] in self.n_best_strings(sentences, 1, numbers)]

    def n_best_strings(
        self, sentences: list[str], n: int, numbers: Sequence[int] | None = None
    ) -> list[list[tuple[str, float]]]:
        """Translate sentences in n ways each: the translations with their scores, the best first.

        Raises:
            InputError: more than the beam size; no languages, where the model has several.
        """
        self.check_n_best(n)
        encoded = self._encoded_sources(sentences)
        warn_of_cut(sentences, [i for i, each in enumerate(encoded) if each.is_cut], numbers)
        found = self._in_batches(encoded, n)
        return [
            [(text.replace("\n", " "), score) for text, score in zip(each.texts, each.scores, strict=True)]
            for each in found
        ]

    def check_n_best(self, n: int) -> None:
        """Raise InputError where a search has not as many hypotheses."""
        self.decoding.check_n_best(n)

    def score_strings(self, pairs: list[tuple[str, str]], numbers: Sequence[int] | None = None) -> list[list[float]]:
        """Return for every pair of source and target the log-probabilities of the target's tokens."""
        sources = self._encoded_sources([source for source, _ in pairs])
        targets = self._encoded_targets([target for _, target in pairs])
        cut = [i for i, both in enumerate(zip(sources, targets, strict=True)) if any(side.is_cut for side in both)]
        warn_of_cut(["\t".join(pair) for pair in pairs], cut, numbers)
        lengths = [max(len(source.ids), len(target.ids)) for source, target in zip(sources, targets, strict=True)]
        scores: list[list[float]] = [[] for _ in pairs]
        for batch in batches_of(lengths, BATCH_TOKENS):
            with self._turn:
                found = self._scores([sources[i] for i in batch], [targets[i] for i in batch])
            for i, each in zip(batch, found, strict=True):
                scores[i] = each
        return scores

    def count_tokens(self, sentences: list[str]) -> list[int]:
        """Return how many source tokens the search takes of each sentence, the end token among them."""
        return [len(each.ids) for each in self._encoded(self.source, sentences, self._most_source, front=[PAD])]

    def _in_batches(self, encoded: list[Encoded], n: int) -> Iterator[Found]:
        """Yield the translations of sentences, which are translated in batches of like lengths."""
        found: dict[int, Found] = {}
        for batch in batches_of([len(each.ids) for each in encoded], BATCH_TOKENS):
            with self._turn:
                hypotheses = self._search([encoded[i] for i in batch], n)
            found.update(zip(batch, self._texts(hypotheses), strict=True))
        return (found[i] for i in range(len(encoded)))

    def _search(self, encoded: list[Encoded], n: int) -> Hypotheses:
        ids = _padded(encoded)
        before = bool(self.source.languages)
        tokens = np.count_nonzero(ids, axis=1) - before
        limits = np.where(tokens > 1, self._limits(tokens, before), 0)
        first = np.full(len(ids), START, np.int32)
        memory = self.model.encode(ids)
        steps = self.model.steps(memory, self.decoding.beam_size)
        if before:
            # The start token is read now; the language follows, at what is position 0 of the search.
            steps.step(np.repeat(first, self.decoding.beam_size), self._nothing, 1)
            first[:] = self.target.languages[str(self.decoding.target_language)]
        return search(steps, first, limits, ids == PAD, self.decoding, n)

    def _scores(self, sources: list[Encoded], targets: list[Encoded]) -> list[list[float]]:
        """Return the log-probabilities of the tokens of targets."""
        steps = self.model.steps(self.model.encode(_padded(sources)), 1)
        labels = _padded(targets)
        first = np.full(len(labels), START, np.int32)
        if self.target.languages:
            steps.step(first, self._nothing, 1)
            first[:] = self.target.languages[str(self.decoding.target_language)]
        read = np.concatenate([first[:, None], labels[:, :-1]], axis=1)
        gained = np.empty(labels.shape, np.float32)
        for position, ids in enumerate(np.ascontiguousarray(read.T)):
            normalizers = steps.step(ids, self._nothing, 1).normalizers
            gained[:, position] = steps.logits()[np.arange(len(ids)), labels[:, position]] - normalizers
        return [row[: len(each.ids)].tolist() for row, each in zip(gained, targets, strict=True)]

    def _texts(self, found: Hypotheses) -> Iterator[Found]:
        for rows, scores, log_probabilities in zip(*found, strict=True):
            texts = [self._text(row) for row in rows]
            yield Found(texts, scores.tolist(), log_probabilities.tolist())

    def _text(self, ids: np.ndarray) -> str:
        """Join ids [T] to a string, as the tokenizer inside the graph does."""
        says_something = ((ids == UNKNOWN) | (ids > END)) & (ids < self.target.vocab_size)
        text = self.target.processor.decode(ids[says_something].tolist()).replace(SPACE_MARK, " ")
        return text.removeprefix(" ")

    def _encoded_sources(self, sentences: list[str]) -> list[Encoded]:
        self.decoding.check_directed(self.source.languages)
        front = [self.source.languages[str(self.decoding.source_language)]] if self.source.languages else []
        return self._encoded(self.source, sentences, self._most_source, front)

    def _encoded_targets(self, sentences: list[str]) -> list[Encoded]:
        most = self.decoding.max_source_length + self.decoding.max_extra_length
        if self.max_positions is not None:
            most = min(most, self.max_positions - bool(self.target.languages))
        return self._encoded(self.target, sentences, most, [])

    def _encoded(self, vocabulary: Vocabulary, sentences: list[str], most: int, front: list[int]) -> list[Encoded]:
        """Tokenise sentences, and cut what has more than `most` tokens, the front and the end token among them."""
        front = front if vocabulary.languages else []
        room = most - len(front) - 1
        clean = [sentence.encode("utf-8", "replace").decode("utf-8", "replace") for sentence in sentences]
        return [Encoded([*front, *ids[:room], END], len(ids) > room) for ids in vocabulary.encode(clean)]

    @property
    def _most_source(self) -> int:
        most = self.decoding.max_source_length
        return min(most, self.max_positions or most)

    @property
    def _nothing(self) -> np.ndarray:
        """[V]: no token is forbidden."""
        return np.zeros(self.model.vocabulary, np.float32)

    def _limits(self, tokens: np.ndarray, before: int) -> np.ndarray:
        """Return the most target tokens of sources of so many tokens, the end token among them; see `Search`."""
        positions = None if self.max_positions is None else self.max_positions - before
        most = [length for length in (self.decoding.max_length, positions) if length is not None]
        return np.minimum(tokens - 1 + self.decoding.max_extra_length, min(most, default=np.iinfo(np.int32).max))


def _padded(encoded: list[Encoded]) -> np.ndarray:
    """Return ids [B, S], int32."""
    ids = np.full((len(encoded), max(len(each.ids) for each in encoded)), PAD, np.int32)
    for row, each in zip(ids, encoded, strict=True):
        row[: len(each.ids)] = each.ids
    return ids
