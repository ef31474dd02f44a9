"""The text of a run: read from its corpora, filtered, tokenised, with all that was left out counted."""

import dataclasses
import itertools
import logging
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from tf_transformer.config import Config, DataConfig
from tf_transformer.data.corpora import (
    Direction,
    absolute,
    directions,
    read,
    training_data,
    validation_data,
    validation_split,
)
from tf_transformer.data.encoding import LanguageIds, TokenPairs, encode
from tf_transformer.data.pairs import Pairs
from tf_transformer.errors import InputError
from tf_transformer.tokenizers import Tokenizer, train_tokenizer

log = logging.getLogger(__name__)


class Texts(NamedTuple):
    """The pairs of a run."""

    training: Pairs
    corpora: np.ndarray
    """[N]: the number of the corpus that each training pair is of"""
    validation: Pairs
    validation_corpora: np.ndarray
    """[M]: the number of a corpus with the direction of each validation pair"""
    directions: list[Direction | None]
    """of each corpus; none where it is not named"""

    @property
    def languages(self) -> tuple[str, ...]:
        """Those of all corpora where they are of several directions; () where there is one."""
        if len(set(self.directions)) == 1:
            return ()
        return tuple(sorted({language for direction in self.directions for language in direction or ()}))

    def description(self) -> dict[str, Any]:
        """Return what identifies the text: JSON."""
        sides = {"train": self.training, "validation": self.validation}
        return {name: {"pairs": len(pairs.sources), "fingerprint": pairs.fingerprint} for name, pairs in sides.items()}


def with_absolute_paths(data: DataConfig) -> DataConfig:
    """Return the same data, named so that it is found from every folder."""
    return dataclasses.replace(
        data,
        corpus=absolute(data.corpus),
        extra_corpora=tuple(absolute(corpus) for corpus in data.extra_corpora),
        validation_corpus=absolute(data.validation_corpus),
    )


def read_texts(data: DataConfig) -> Texts:
    """Read all corpora; equal pairs are dropped if `data` wants it, and counted.

    Raises:
        InputError: as `read`.
    """
    towards = directions(data)
    corpora = [read(corpus, data.train_split) for corpus in training_data(data)]
    pairs = Pairs(*(list(itertools.chain.from_iterable(sides)) for sides in zip(*corpora, strict=True)))
    numbers = np.repeat(np.arange(len(corpora)), [len(corpus.sources) for corpus in corpora])
    if data.drop_duplicates:
        first: dict[Any, int] = {}
        for i, pair in enumerate(zip(*pairs, (towards[number] for number in numbers), strict=True)):
            first.setdefault(pair, i)
        kept = list(first.values())
        log.info("train: dropped %d pairs that are there before, of %d", len(numbers) - len(kept), len(numbers))
        pairs, numbers = Pairs(*([side[i] for i in kept] for side in pairs)), numbers[kept]
    return Texts(pairs, numbers, *_validation(data), towards)


def _validation(data: DataConfig) -> tuple[Pairs, np.ndarray]:
    """Return the validation pairs, those of several directions in turn, with the numbers of their corpora."""
    corpora = {i: read(held_out, validation_split(held_out)) for i, held_out in validation_data(data).items()}
    rows = [[(i, *pair) for pair in zip(*pairs, strict=True)] for i, pairs in corpora.items()]
    in_turn = [row for turn in itertools.zip_longest(*rows) for row in turn if row is not None]
    return Pairs.of((source, target) for _, source, target in in_turn), np.array([i for i, _, _ in in_turn])


def make_tokenizers(config: Config, pairs: Pairs, languages: tuple[str, ...] = ()) -> tuple[Tokenizer, Tokenizer]:
    """Return the tokenizers of source and target that `config` names, or else trained on `pairs`.

    They have a token for each of the languages.
    """
    settings = config.tokenizer

    def trained(text: Iterable[str]) -> Tokenizer:
        return Tokenizer(train_tokenizer(text, settings, languages), languages=languages)

    if settings.file is not None:
        shared = Tokenizer.load(settings.file, languages=languages)
        return shared, shared
    if not any(source.strip() and target.strip() for source, target in zip(*pairs, strict=True)):
        raise InputError(f"no pair to train on in {config.data.corpus}, split {config.data.train_split}")
    if settings.shared:
        shared = trained(itertools.chain(*pairs))
        return shared, shared
    return trained(pairs.sources), trained(pairs.targets)


def encode_texts(
    name: str,
    pairs: Pairs,
    tokenizers: tuple[Tokenizer, Tokenizer],
    max_length: int,
    max_length_ratio: float | None,
    languages: LanguageIds | None = None,
) -> TokenPairs:
    """Tokenise pairs, and report those that are left out.

    Raises:
        InputError: no pair is left.
    """
    encoded = encode(pairs, *tokenizers, max_length, max_length_ratio, languages)
    counts = {
        "with an empty side": encoded.dropped_empty,
        f"longer than data.max_length={max_length} tokens": encoded.dropped_long,
        f"with sides more unlike than data.max_length_ratio={max_length_ratio}": encoded.dropped_ratio,
    }
    dropped = " and ".join(f"{count} {why}" for why, count in counts.items() if count)
    if dropped:
        log.info("%s: dropped pairs: %s, of %d", name, dropped, len(pairs.sources))
    if not len(encoded):
        raise InputError(f"no pair is left for {name}. Received: {len(pairs.sources)} pairs, {dropped or 'no more'}")
    return encoded
