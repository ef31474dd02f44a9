"""Encoding a chunk into a shard."""

import functools
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from tf_transformer.data.chunks import digest_of
from tf_transformer.data.encoding import LengthLimits, encode_packed
from tf_transformer.data.pairs import Pairs
from tf_transformer.data.prepared.manifest import language_tokens_of
from tf_transformer.data.prepared.shards import packed, shard_name, text_name
from tf_transformer.data.preparing.chosen import Choice, Numbered
from tf_transformer.data.preparing.normalized import changed_by
from tf_transformer.data.preparing.plan import Plan
from tf_transformer.storage.atomic import Folder
from tf_transformer.tokenizers.vocabulary import Vocabulary


@dataclass(frozen=True)
class Models:
    """The vocabularies, in the form in which they are sent to processes."""

    files: tuple[bytes, ...]
    """the SentencePiece models, only one if source and target share it"""
    sizes: tuple[int, ...]
    languages: tuple[str, ...]

    @property
    def digest(self) -> str:
        """A digest of the vocabularies."""
        return digest_of(*self.files, *(str(size).encode() for size in self.sizes), "\n".join(self.languages).encode())

    def open(self) -> tuple[Vocabulary, Vocabulary]:
        """Return the vocabularies of source and target."""
        return _opened(self)


def models_of(plan: Plan, vocabularies: Sequence[Vocabulary]) -> Models:
    """Return the vocabularies of source and target, or the one that both share, in the form sent to processes."""
    distinct = list({id(vocabulary): vocabulary for vocabulary in vocabularies}.values())
    sizes = tuple(vocabulary.vocab_size for vocabulary in distinct)
    return Models(tuple(vocabulary.model for vocabulary in distinct), sizes, plan.languages)


@functools.lru_cache(1)
def _opened(models: Models) -> tuple[Vocabulary, Vocabulary]:
    opened = [
        Vocabulary(model, vocab_size=size, languages=models.languages)
        for model, size in zip(models.files, models.sizes, strict=True)
    ]
    return opened[0], opened[-1]


@dataclass(frozen=True)
class Encoding:
    """Writes the shard of a chunk and the facts about it, unless both have been written for the same text."""

    work: Folder
    """the folder of the facts about shards"""
    folder: Folder
    """the folder of the shards"""
    models: Models
    limits: LengthLimits
    choice: Choice
    language_tokens: tuple[tuple[int, int], ...] = ()
    """the tokens of the languages of each corpus; () if there is one direction"""
    keeps_text: bool = False

    def __call__(self, task: tuple[Numbered, np.ndarray | None]) -> dict[str, Any]:
        """Write the shard of a chunk unless it exists, and return the facts about it.

        Args:
            task: the chunk, and which of its pairs equal earlier ones.
        """
        (number, corpus, chunk), duplicates = task
        key: dict[str, Any] = {
            "text": chunk.digest(),
            "models": self.models.digest,
            "equal": _digest(duplicates),
            "corpus": corpus,
        }
        key |= {"limits": list(self.limits), "keeps_text": self.keeps_text} | asdict(self.choice)
        if self.work.size(facts_name(number)) is not None:
            known: dict[str, Any] = json.loads(self.work.read(facts_name(number)))
            if known["key"] == key and self.folder.size(shard_name(number)) == known["bytes"]:
                return known
        pairs, given, dropped = self.choice.of(*task)
        language_tokens = (
            np.tile(self.language_tokens[corpus], (len(pairs.sources), 1)) if self.language_tokens else None
        )
        vocabularies = self.models.open()
        encoded = encode_packed(pairs, vocabularies, self.limits, language_tokens)
        text = None
        if self.keeps_text:
            text = Pairs.of(pair for pair, keep in zip(zip(*pairs, strict=True), encoded.keep, strict=True) if keep)
        shard, lines, blocks = packed(number, encoded, text)
        self.folder.write(shard_name(number), shard)
        if self.keeps_text:
            self.folder.write(text_name(number), lines)
        facts = {
            "key": key,
            "bytes": len(shard),
            "shard": {"corpus": corpus, "pairs": len(encoded.lengths), "text": key["text"]},
            "given": given,
            "dropped": dropped | encoded.dropped,
            "lengths": [np.bincount(side).tolist() for side in encoded.lengths.T],
            "blocks": blocks,
            "changed": changed_by(vocabularies[1], pairs.targets),
        }
        self.work.write(facts_name(number), json.dumps(facts).encode())
        return facts


def encoding_of(plan: Plan, models: Models, work: Folder, folder: Folder) -> Encoding:
    """Return the `Encoding` that writes the shards of a plan."""
    data, language_tokens = plan.data, language_tokens_of(plan.directions, models.open())
    return Encoding(
        work,
        folder,
        models,
        LengthLimits(data.max_length, data.max_length_ratio),
        Choice(data.drop_copies),
        () if language_tokens is None else tuple((int(source), int(target)) for source, target in language_tokens),
        keeps_text=data.bpe_dropout > 0,
    )


def facts_name(number: int) -> str:
    """Return the name of the file of the facts about a shard."""
    return f"{number:05d}.json"


def _digest(duplicates: np.ndarray | None) -> str | None:
    return None if duplicates is None else digest_of(duplicates.tobytes())
