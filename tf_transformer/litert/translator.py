"""Strings in, strings out, with LiteRT: vocabularies, model and search together."""

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tf_transformer.config import DecodingConfig
from tf_transformer.config.special_tokens import END, PAD, START, UNKNOWN
from tf_transformer.errors import InputError
from tf_transformer.litert.encoding import Directions, TokenIds, encode_sources, encoded, padded, tokenised
from tf_transformer.litert.model import CachedSteps, Check, LiteRTModel, go_on
from tf_transformer.litert.search import BeamSearch, Hypotheses
from tf_transformer.runs.descriptions import LITERT_MODEL, Described, is_litert
from tf_transformer.text.alignment import AlignedString
from tf_transformer.text.batching import BATCH_TOKENS, batches_of, warn_of_cut
from tf_transformer.text.translator import Terms
from tf_transformer.tokenizers.vocabulary import SPACE_MARK, Vocabulary


class NBest(NamedTuple):
    """The translations of a sentence, the best first."""

    source: TokenIds
    ids: list[list[int]]
    """the tokens of each, with the end token if there is one"""
    texts: list[str]
    """the texts; empty where the search found fewer"""
    scores: list[float]
    """the values that they are ranked by; -inf where there is none"""
    log_probabilities: list[float]
    """the sum over the tokens of each"""


class Translator:
    """Translates strings. `Translator.load("exported")` loads what `export --format litert` wrote.

    Several threads may use it; they take turns.

    Args:
        model: the LiteRT model.
        source: the vocabulary of the source language.
        target: that of the target language.
        decoding: how to search, and between which languages if the model has several.
        max_positions: the number of positions that the model has learned; None if it takes any.
        batch_tokens: the most tokens that are computed at once, as `batches_of` counts them.

    Raises:
        InputError: a language that the model does not have; sampling, which this class does not support.
    """

    def __init__(
        self,
        model: LiteRTModel,
        source: Vocabulary,
        target: Vocabulary,
        decoding: DecodingConfig,
        max_positions: int | None = None,
        batch_tokens: int = BATCH_TOKENS,
    ):
        if decoding.temperature:
            raise InputError(
                f"LiteRT cannot sample: use a sampling temperature of 0. Received: {decoding.temperature=}"
            )
        decoding.check_languages(source.languages)
        self.model = model
        self.source = source
        self.target = target
        self.decoding = decoding
        self.max_positions = max_positions
        self.batch_tokens = batch_tokens
        self._before = int(bool(source.languages))
        """the number of tokens before the text, on both sides"""
        decoding.most_source(max_positions, self._before)  # raises if there is no room
        self._turn = threading.Lock()

    @classmethod
    def load(
        cls,
        path: str | Path | Described,
        decoding: DecodingConfig | None = None,
        *,
        threads: int | None = None,
        batch_tokens: int = BATCH_TOKENS,
    ) -> "Translator":
        """Return the translator of a folder that `export --format litert` wrote.

        Args:
            path: the folder, or its `Described`.
            decoding: how to search; by default as chosen for the export.
            threads: the number of threads that LiteRT uses; one for each core that the process may use by default.
            batch_tokens: the most tokens that are computed at once.

        Raises:
            InputError: a folder that is no such export, or is damaged.
        """
        folder = Path(path) if not isinstance(path, Described) else path.path
        if not is_litert(folder):
            raise InputError(f"{folder} is not an export for LiteRT: it has no {LITERT_MODEL}")
        export = path if isinstance(path, Described) else Described(folder)
        facts, model = export.description["litert"], export.config.model
        source, target = facts["tokenizers"]
        sizes = model.input_vocab_size, model.target_vocab_size
        vocabulary = Vocabulary.load(folder / source, vocab_size=sizes[0], languages=export.languages)
        return cls(
            LiteRTModel(folder, facts["layers"], threads),
            vocabulary,
            vocabulary
            if source == target
            else Vocabulary.load(folder / target, vocab_size=sizes[1], languages=export.languages),
            decoding or export.config.decoding,
            facts["max_positions"],
            batch_tokens,
        )

    def translate_strings(
        self, sentences: list[str], numbers: Sequence[int] | None = None, *, terms: Terms = None
    ) -> list[str]:
        """Translate any number of sentences. Warnings name those that were cut, by `numbers` if these are given.

        Raises:
            InputError: no languages, although the model has several; there are terms, which this search does not take.
        """
        return [best for [(best, _)] in self.n_best_strings(sentences, 1, numbers, terms=terms)]

    def n_best_strings(
        self, sentences: list[str], n: int, numbers: Sequence[int] | None = None, *, terms: Terms = None
    ) -> list[list[tuple[str, float]]]:
        """Translate sentences in n ways each, and return them with their scores, the best first.

        Raises:
            InputError: n above the beam size; no languages, although the model has several; there are terms.
        """
        _refuse(terms)
        found = self.search(sentences, n)
        warn_of_cut(sentences, [i for i, each in enumerate(found) if each.source.is_cut], numbers)
        return [
            [(text.replace("\n", " "), score) for text, score in zip(each.texts, each.scores, strict=True)]
            for each in found
        ]

    def search(
        self, sentences: list[str], n: int = 1, directions: Directions = None, check: Check = go_on
    ) -> list[NBest]:
        """Search for n translations of each sentence, in batches of similar lengths. `check` may end it at any step.

        Raises:
            InputError: as `n_best_strings`; a language that the model does not have.
        """
        self.check_n_best(n)
        sources = self._sources(sentences, directions)
        found: dict[int, NBest] = {}
        for batch in batches_of([len(each.ids) for each in sources], self.batch_tokens):
            of_batch = [sources[i] for i in batch]
            with self._turn:
                hypotheses = self._search(of_batch, n, check)
            found.update(zip(batch, self._found(of_batch, hypotheses), strict=True))
        return [found[i] for i in range(len(sources))]

    def aligned_strings(
        self, sentences: list[str], numbers: Sequence[int] | None = None, *, terms: Terms = None
    ) -> list[AlignedString]:
        """Translate strings, and return what the tokens of the translations attended to.

        Raises:
            InputError: there are terms.
        """
        _refuse(terms)
        found = self.search(sentences)
        warn_of_cut(sentences, [i for i, each in enumerate(found) if each.source.is_cut], numbers)
        return self.aligned(found)

    def aligned(self, found: Sequence[NBest], check: Check = go_on) -> list[AlignedString]:
        """Return the best translations with what their tokens attended to."""
        return [
            AlignedString(
                each.texts[0].replace("\n", " "),
                [self.source.pieces[token] for token in each.source.ids],
                [self.target.pieces[token] for token in each.ids[0]],
                weights,
            )
            for each, weights in zip(found, self.attention(found, check), strict=True)
        ]

    @property
    def most_source(self) -> int:
        """The most source tokens that the search takes, including the end token."""
        return self.decoding.most_source(self.max_positions, self._before)

    def check_n_best(self, n: int) -> None:
        """Raise InputError if a search has fewer than n hypotheses."""
        self.decoding.check_n_best(n)

    def score_strings(self, pairs: list[tuple[str, str]], numbers: Sequence[int] | None = None) -> list[list[float]]:
        """Return for every pair of source and target the log-probabilities of the target's tokens."""
        scores, cut = self.score(pairs)
        warn_of_cut(["\t".join(pair) for pair in pairs], [i for i, is_cut in enumerate(cut) if is_cut], numbers)
        return scores

    def score(
        self, pairs: list[tuple[str, str]], directions: Directions = None, check: Check = go_on
    ) -> tuple[list[list[float]], list[bool]]:
        """Return for every pair the log-probabilities of the target's tokens, and whether a side was cut.

        A source without text has the empty translation for certain, as in `search`: its end token has 0.
        """
        sources = self._sources([source for source, _ in pairs], directions)
        targets = self._encoded_targets([target for _, target in pairs])
        both = list(zip(sources, targets, strict=True))
        scores: list[list[float]] = [[] for _ in pairs]
        for batch in batches_of(
            [max(map(len, (source.ids, target.ids))) for source, target in both], self.batch_tokens
        ):
            written = [targets[i].ids for i in batch]
            labels = padded(written)
            gained = np.empty(labels.shape, np.float32)
            with self._turn:
                for position, (steps, normalizers) in enumerate(self._read([sources[i] for i in batch], labels, check)):
                    logits = steps.logits()[np.arange(len(labels)), labels[:, position]]
                    gained[:, position] = logits - normalizers
            for i, row, ids in zip(batch, gained, written, strict=True):
                is_certain = len(ids) == 1 and not self._has_text(sources[i])
                scores[i] = [0.0] if is_certain else row[: len(ids)].tolist()
        return scores, [source.is_cut or target.is_cut for source, target in both]

    def attention(self, found: Sequence[NBest], check: Check = go_on) -> list[np.ndarray]:
        """Return how much each token of the best translations attended to the source: [T, S] for each sentence.

        It is the mean over the heads of the layer that was chosen when the model was exported.
        """
        weights: dict[int, np.ndarray] = {}
        lengths = [max(len(each.source.ids), len(each.ids[0])) for each in found]
        for batch in batches_of(lengths, self.batch_tokens):
            with self._turn:
                labels = padded([found[i].ids[0] for i in batch])
                sources = [found[i].source for i in batch]
                read = [steps.attention() for steps, _ in self._read(sources, labels, check)]
            for row, i in enumerate(batch):
                own = [attention[row, : len(found[i].source.ids)] for attention in read[: len(found[i].ids[0])]]
                weights[i] = np.array(own, np.float32).reshape(len(own), len(found[i].source.ids))
        return [weights[i] for i in range(len(found))]

    def count_tokens(self, sentences: list[str]) -> list[int]:
        """Return how many source tokens the search takes of each sentence, including the end token."""
        added, most = 1 + self._before, self.most_source
        return [min(len(ids) + added, most) for ids in tokenised(self.source, sentences)]

    def _sources(self, sentences: list[str], directions: Directions) -> list[TokenIds]:
        most = self.most_source
        return encode_sources((self.source, self.target), sentences, most, self.decoding, directions)

    def _search(self, sources: list[TokenIds], n: int, check: Check) -> Hypotheses:
        ids = padded([each.ids for each in sources])
        tokens = np.count_nonzero(ids, axis=1) - self._before
        limits = np.where([self._has_text(each) for each in sources], self._limits(tokens), 0)
        steps, first = self._begun(ids, sources, self.decoding.beam_size, check)
        return BeamSearch(steps, self.decoding, n)(first, limits, ids == PAD)

    def _has_text(self, source: TokenIds) -> bool:
        """Say whether a source has tokens besides its language and its end token; see `has_text` of the search."""
        return len(source.ids) > 1 + self._before

    def _begun(
        self, ids: np.ndarray, sources: list[TokenIds], width: int, check: Check
    ) -> tuple[CachedSteps, np.ndarray]:
        """Return steps that have read what comes before the text, and the tokens [B] to read next."""
        steps = self.model.steps(self.model.encode(ids), width, check)
        first = np.full(len(ids), START, np.int32)
        if self.target.languages:
            # The start token is read now. The language follows, at position 0 of the search.
            steps.step(np.repeat(first, width), self._nothing, 1)
            first = np.array([each.language_token for each in sources], np.int32)
        return steps, first

    def _read(
        self, sources: list[TokenIds], labels: np.ndarray, check: Check
    ) -> Iterator[tuple[CachedSteps, np.ndarray]]:
        """Read given targets [B, T]. For each position, yield the steps after it and the normalizers [B]."""
        steps, first = self._begun(padded([each.ids for each in sources]), sources, 1, check)
        for ids in np.concatenate([first[:, None], labels], axis=1)[:, :-1].T:
            yield steps, steps.step(np.ascontiguousarray(ids), self._nothing, 1).normalizers

    def _found(self, sources: list[TokenIds], hypotheses: Hypotheses) -> Iterator[NBest]:
        for source, rows, scores, log_probabilities in zip(sources, *hypotheses, strict=True):
            ids = [row[row != PAD].tolist() for row in rows]
            yield NBest(source, ids, [self._text(each) for each in ids], scores.tolist(), log_probabilities.tolist())

    def _text(self, ids: list[int]) -> str:
        """Join ids to a string, as the tokenizer inside the graph does."""
        saying = [id for id in ids if (id == UNKNOWN or id > END) and id < self.target.vocab_size]
        return self.target.processor.decode(saying).replace(SPACE_MARK, " ").removeprefix(" ")

    def _encoded_targets(self, sentences: list[str]) -> list[TokenIds]:
        return encoded(self.target, sentences, self.decoding.most_given(self.max_positions, self._before))

    @property
    def _nothing(self) -> np.ndarray:
        """Return [V], zeros, which forbid no token."""
        return np.zeros(self.model.vocabulary, np.float32)

    def _limits(self, tokens: np.ndarray) -> np.ndarray:
        """Return the most target tokens, including the end token, for sources of so many tokens; see `Search`."""
        limits = tokens - 1 + self.decoding.max_extra_length
        most = self.decoding.most_written(self.max_positions, self._before)
        return limits if most is None else np.minimum(limits, most)


def _refuse(terms: Terms) -> None:
    """Raise InputError if there are terms."""
    if terms is not None:
        raise InputError("an export for LiteRT takes no constraints: give a run directory or a SavedModel")
