"""A prepared corpus as a whole: its manifest, its tokenizers and its text."""

import dataclasses
import functools
import io
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tf_transformer.config import DataConfig, TokenizerConfig
from tf_transformer.config.sections import WITHOUT_KEY, is_left_out
from tf_transformer.data.chunks import digest_of
from tf_transformer.data.corpora import MANIFEST, Direction
from tf_transformer.data.encoding import dtype_of
from tf_transformer.data.pairs import Pairs
from tf_transformer.data.prepared.shards import BLOCKS, Shards
from tf_transformer.errors import InputError
from tf_transformer.tokenizers.normalization import name_of
from tf_transformer.tokenizers.vocabulary import Vocabulary

FORMAT_VERSION = 1
BLOCK_TABLE, VALIDATION = "blocks.npy", "validation.jsonl"
NAMES = ("corpus", "extra_corpora", "validation_corpus")
"""The settings of data that say where the text was."""
FREE = (*NAMES, "prepared", "weights", "batch_tokens", "bpe_dropout")
"""The settings of data that training may change: where the text is, and how batches are formed."""


class Prepared:
    """A prepared corpus.

    Args:
        path: its folder.

    Raises:
        InputError: `path` is not a prepared corpus, or has another format; or a file is missing or damaged.
    """

    def __init__(self, path: str | Path):
        self.path = Path(path)
        place = self.path / MANIFEST
        try:
            self.manifest: dict[str, Any] = json.loads(place.read_text("utf-8"))
            version = self.manifest["format_version"]
        except (OSError, ValueError, KeyError, TypeError):
            raise InputError(f"{self.path} is not a prepared corpus: {MANIFEST} is missing or damaged") from None
        if version != FORMAT_VERSION:
            raise InputError(
                f"{self.path} was prepared in format version {version}, but this version of tf-transformer reads "
                f"{FORMAT_VERSION}: prepare the corpus again"
            )
        if digest_of(_rest(self.manifest)) != self.manifest.get("digest"):
            raise InputError(f"{place} is damaged: copy it again, or prepare the corpus again")

    def settings(self) -> dict[str, dict[str, Any]]:
        """Return the settings of the preparation, which are the defaults of training, as `override` takes them."""
        own = ("weights", "batch_tokens")
        return {
            "data": {key: value for key, value in self._of("data").items() if key not in own},
            "tokenizer": self._of("tokenizer"),
        }

    @property
    def config(self) -> dict[str, dict[str, Any]]:
        """All settings of the preparation, as JSON."""
        return {section: self._of(section) for section in ("data", "tokenizer")}

    def names(self) -> dict[str, Any]:
        """Return the settings of `data` that say where the corpus is and where its text was."""
        return {key: self._of("data")[key] for key in NAMES} | {"prepared": os.path.abspath(self.path)}

    @property
    def corpora(self) -> list[dict[str, Any]]:
        """For each corpus, its name and the numbers of pairs given, kept, and left out by the reason."""
        return list(self.manifest["corpora"])

    @property
    def directions(self) -> list[Direction]:
        """The direction of each corpus as the tokenizers name languages; empty if the tokenizers have no languages."""
        return [(source, target) for source, target in self.manifest["directions"]]

    @property
    def fingerprints(self) -> dict[str, dict[str, Any]]:
        """The fingerprints of the training and the validation text, as JSON."""
        given = sum(corpus["given"] - corpus["dropped"]["equal"] for corpus in self.corpora)
        return {
            "train": {"pairs": given, "fingerprint": fingerprint_of(s["text"] for s in self.manifest["shards"])},
            "validation": dict(self.manifest["validation"]),
        }

    @functools.cached_property
    def vocabularies(self) -> tuple[Vocabulary, Vocabulary]:
        """The vocabularies of source and target, which are the same object if they share it."""
        languages = self.manifest["languages"]
        loaded = [
            Vocabulary(
                self._checked(described["file"]), str(self.path / described["file"]), described["size"], languages
            )
            for described in self.manifest["tokenizers"]
        ]
        return loaded[0], loaded[-1]

    @property
    def tokenizer_paths(self) -> tuple[Path, Path]:
        """The files of the SentencePiece models of source and target."""
        paths = [self.path / described["file"] for described in self.manifest["tokenizers"]]
        return paths[0], paths[-1]

    def pairs(self) -> Shards:
        """Return the training pairs."""
        blocks = np.load(io.BytesIO(self._checked(BLOCK_TABLE)))
        if blocks.dtype != BLOCKS:
            raise InputError(f"{self.path / BLOCK_TABLE} is damaged: prepare the corpus again")
        corpora = [shard["corpus"] for shard in self.manifest["shards"]]
        return Shards(self.path, blocks, corpora, dtype_of(*self.vocabularies), bool(self.directions))

    def validation(self) -> tuple[Pairs, np.ndarray]:
        """Return the validation text and, for each pair, the number of a corpus with its direction."""
        rows = [json.loads(line) for line in self._checked(VALIDATION).splitlines()]
        return Pairs.of((source, target) for _, source, target in rows), np.array([row[0] for row in rows], np.int64)

    def refuse_differences(self, data: DataConfig, tokenizer: TokenizerConfig) -> None:
        """Raise InputError if training needs other settings than the corpus was prepared with."""
        wanted = {"data": dataclasses.asdict(data), "tokenizer": dataclasses.asdict(tokenizer)}
        if tokenizer.normalization not in (None, self._of("tokenizer")["normalization"]):  # not as the corpus calls it
            wanted["tokenizer"]["normalization"] = name_of(tokenizer.normalization)
        differences = [
            f"{section}.{key} was {before!r}, is {wanted[section][key]!r}"
            for section in wanted
            for key, before in self._of(section).items()
            if _listed(wanted[section][key]) != before
            and not (section == "data" and key in FREE)
            and not is_left_out(section, key, before, wanted[section][key])
        ]
        if differences:
            raise InputError(
                f"{self.path} was prepared with other settings: {'; '.join(differences)}. Leave them out, or prepare "
                "the corpus again"
            )
        if data.bpe_dropout and not self._of("data")["bpe_dropout"]:
            raise InputError(
                f"data.bpe_dropout needs text, but {self.path} was prepared without it: prepare the corpus with --set "
                f"data.bpe_dropout={data.bpe_dropout}"
            )

    def language_tokens(self) -> np.ndarray | None:
        """Return the tokens of the languages of each corpus, [corpora, 2], or None if there is one direction."""
        return language_tokens_of(self.directions, self.vocabularies)

    def _of(self, section: str) -> dict[str, Any]:
        return {**WITHOUT_KEY.get(section, {}), **self.manifest["config"][section]}

    def _checked(self, name: str) -> bytes:
        """Return the content of a file, after comparing its digest."""
        path = self.path / name
        try:
            content = path.read_bytes()
        except OSError as error:
            raise InputError(f"cannot read {path}: {error.strerror}") from None
        if digest_of(content) != self.manifest["files"][name]:
            raise InputError(f"{path} is damaged: copy it again, or prepare the corpus again")
        return content


def _listed(value: Any) -> Any:
    """Return a setting as JSON represents it."""
    return list(value) if isinstance(value, tuple) else value


def language_tokens_of(
    directions: Sequence[Direction], vocabularies: tuple[Vocabulary, Vocabulary]
) -> np.ndarray | None:
    """Return the tokens of the languages of directions, [N, 2], or None if there are no directions."""
    if not directions:
        return None
    source, target = (vocabulary.languages for vocabulary in vocabularies)
    return np.array([(source[one], target[other]) for one, other in directions], np.int64)


def fingerprint_of(chunks: Iterable[str]) -> str:
    """Return the fingerprint of the training text, given the digests of its chunks."""
    return digest_of(*(chunk.encode() for chunk in chunks))


def written(manifest: Mapping[str, Any]) -> bytes:
    """Return the content of the file of a manifest, to which its version and its digest are added."""
    whole = {"format_version": FORMAT_VERSION, **manifest}
    return (json.dumps(whole | {"digest": digest_of(_rest(whole))}, indent=1) + "\n").encode()


def _rest(manifest: Mapping[str, Any]) -> bytes:
    """Return the bytes that the digest of a manifest covers."""
    return json.dumps({key: value for key, value in manifest.items() if key != "digest"}, sort_keys=True).encode()
