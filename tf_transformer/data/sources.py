"""Where pairs of sentences come from: files, TensorFlow Datasets, and the corpora that are written here."""

import codecs
import contextlib
import dataclasses
import gzip
import hashlib
import os
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from tf_transformer.config import DataConfig
from tf_transformer.data import copy_task, toy
from tf_transformer.errors import InputError, unknown

TSV_SPLITS = ("train", "val", "test")
VALIDATION_NAMES = ("val", "valid", "validation", "dev")
BUILT_IN: dict[str, tuple[tuple[str, ...], Callable[[str], list[tuple[str, str]]]]] = {
    "toy": (toy.SPLITS, toy.pairs),
    "copy": (tuple(copy_task.SIZES), copy_task.pairs),
}
TOY_LANGUAGES = ("en", "de")


class Pairs(NamedTuple):
    """Sentences and their translations, line for line."""

    sources: list[str]
    targets: list[str]

    @property
    def fingerprint(self) -> str:
        """A hash of the text: the same text, the same fingerprint."""
        digest = hashlib.sha256()
        for side in self:
            digest.update("\n".join(side).encode("utf-8", "surrogatepass") + b"\0")
        return digest.hexdigest()[:16]


def read(data: DataConfig, split: str) -> Pairs:
    """Read a split of the corpus that `data` names.

    Raises:
        InputError: what is missing, malformed or empty, with file and line where there are such.
    """
    kind, corpus = _kind(data)
    if kind == "built-in":
        pairs = _read_built_in(data, corpus, split)
    elif kind == "tfds":
        pairs = _read_tfds(data, corpus, split)
    elif kind == "tsv":
        pairs = _read_tsv(data, Path(corpus), split)
    else:
        pairs = _read_folder(data, Path(corpus), split)
    if not pairs.sources:
        why = f" (data.held_out={data.held_out}, of few lines)" if kind == "tsv" else ""
        raise InputError(f"{data.corpus}: there is no pair in split {split!r}{why}")
    return pairs


def check_split(data: DataConfig, split: str) -> None:
    """Raise InputError where the corpus that `data` names has no such split, as far as can be told without reading it.

    TensorFlow Datasets is not asked: it takes seconds, and may have to download.
    """
    kind, corpus = _kind(data)
    if kind == "built-in":
        _check_built_in(data, corpus, split)
    elif kind == "tsv":
        _check_tsv(Path(corpus), split)
    elif kind == "folder":
        _files(data, Path(corpus), split)


def check_training_splits(data: DataConfig) -> None:
    """Raise InputError where the corpora that `data` names have not the splits to train and validate on, likewise."""
    for corpus in (data.corpus, *data.extra_corpora):
        check_split(dataclasses.replace(data, corpus=corpus), data.train_split)
    held_out = validation_data(data)
    if _kind(held_out)[0] != "tfds":
        check_split(held_out, validation_split(held_out))


def validation_data(data: DataConfig) -> DataConfig:
    """Return the same, with the corpus that the validation split is in."""
    return dataclasses.replace(data, corpus=data.validation_corpus or data.corpus)


def absolute(corpus: str | None) -> Any:
    """Return `corpus` so that it names the same from every folder."""
    if corpus is None or corpus in BUILT_IN or corpus.startswith("tfds:") or not Path(corpus).exists():
        return corpus
    return os.path.abspath(corpus)


def splits(data: DataConfig) -> tuple[str, ...]:
    """Return the names of the splits that the corpus has in both languages."""
    kind, corpus = _kind(data)
    if kind == "built-in":
        return BUILT_IN[corpus][0]
    if kind == "tfds":
        return tuple(_tfds_builder(data, corpus).info.splits)
    if kind == "tsv":
        return TSV_SPLITS
    files = {path.name.removesuffix(".gz") for path in Path(corpus).iterdir() if path.is_file()}
    languages = _languages(data)
    for language in languages:
        if not any(name.endswith(f".{language}") for name in files):
            found = {name.rpartition(".")[2] for name in files if "." in name}
            raise unknown("language", language, found, where=f" in {corpus}")
    by_language = [{n.removesuffix(f".{lang}") for n in files if n.endswith(f".{lang}")} for lang in languages]
    return tuple(sorted(by_language[0] & by_language[1]))


def validation_split(data: DataConfig) -> str:
    """Return the split to validate on: `data.validation_split`, or the first usual name that the corpus has."""
    if data.validation_split is not None:
        return data.validation_split
    known = splits(data)
    for name in VALIDATION_NAMES:
        if name in known:
            return name
    raise InputError(
        f"{data.corpus} has no split to validate on: add one of {', '.join(VALIDATION_NAMES)}, or name another with "
        f"--set data.validation_split=NAME. Received: {', '.join(known) or 'no split'}"
    )


def _kind(data: DataConfig) -> tuple[str, str]:
    corpus = data.corpus
    if corpus is None:
        raise InputError("no data: name a folder, a .tsv file, tfds:NAME, toy or copy with --data")
    if corpus in BUILT_IN:
        return "built-in", corpus
    if corpus.startswith("tfds:"):
        return "tfds", corpus.removeprefix("tfds:")
    if corpus.endswith((".tsv", ".tsv.gz")) and Path(corpus).is_file():
        return "tsv", corpus
    if Path(corpus).is_dir():
        return "folder", corpus
    if Path(corpus).exists():
        raise InputError(f"--data {corpus}: a file must be a .tsv or .tsv.gz of source TAB target")
    if "/" in corpus or "." in corpus:
        raise InputError(f"--data {corpus}: there is no such folder, and no such .tsv or .tsv.gz file")
    raise unknown("dataset", corpus, [*BUILT_IN, "tfds:NAME", "a folder that exists", "a .tsv file that exists"])


def _languages(data: DataConfig) -> tuple[str, str]:
    if not (data.source and data.target):
        raise InputError(f"--data {data.corpus} needs the languages: give --source and --target, such as en and de")
    if data.source == data.target:
        raise InputError(f"--source and --target must differ. Received: {data.source} twice")
    return data.source, data.target


def _unzip(pairs: list[tuple[str, str]]) -> Pairs:
    return Pairs([source for source, _ in pairs], [target for _, target in pairs])


def _read_built_in(data: DataConfig, corpus: str, split: str) -> Pairs:
    _check_built_in(data, corpus, split)
    return _unzip(BUILT_IN[corpus][1](split))


def _check_built_in(data: DataConfig, corpus: str, split: str) -> None:
    known = BUILT_IN[corpus][0]
    if split not in known:
        raise unknown("split", split, known, where=f" of {corpus}")
    languages = (data.source or TOY_LANGUAGES[0], data.target or TOY_LANGUAGES[1])
    if corpus == "toy" and languages != TOY_LANGUAGES:
        raise InputError(
            "toy goes from en to de: leave --source and --target out, or give these. "
            f"Received: {languages[0]} to {languages[1]}"
        )


def _read_folder(data: DataConfig, folder: Path, split: str) -> Pairs:
    files = _files(data, folder, split)
    sides = [_read_lines(file) for file in files]
    if len(sides[0]) != len(sides[1]):
        raise InputError(
            f"{files[0]} and {files[1]} must have the same number of lines. "
            f"Received: {len(sides[0])} and {len(sides[1])}"
        )
    return Pairs(*sides)


def _files(data: DataConfig, folder: Path, split: str) -> list[Path]:
    """Return the files of both sides of a split."""
    source, target = _languages(data)
    known = splits(data)
    files = [_find(folder, split, language) for language in (source, target)]
    there = [file.is_file() for file in files]
    if any(there) and not all(there):
        missing, other = files if there[1] else reversed(files)
        raise InputError(f"{missing.with_suffix('') if missing.suffix == '.gz' else missing} is missing beside {other}")
    if not any(there):
        raise unknown("split", split, known, where=f" in {folder}")
    return files


def _find(folder: Path, split: str, language: str) -> Path:
    plain, packed = folder / f"{split}.{language}", folder / f"{split}.{language}.gz"
    return packed if packed.is_file() and not plain.is_file() else plain


def _read_lines(path: Path) -> list[str]:
    """Return the lines of a UTF-8 file; only a line feed, with or without a carriage return, ends a line."""
    try:
        raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from None
    except (EOFError, zlib.error):
        raise InputError(f"{path} is not a whole gzip file") from None
    if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise InputError(f"{path} is UTF-16: convert it, such as by iconv -f UTF-16 -t UTF-8")
    try:
        text = raw.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise InputError(f"{path}, line {line}: not UTF-8") from None
    return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")] if text else []


def _read_tsv(data: DataConfig, path: Path, split: str) -> Pairs:
    _check_tsv(path, split)
    chosen = []
    for number, line in enumerate(_read_lines(path), 1):
        # A blank line is an empty pair, to be counted with those that are left out of training.
        columns = line.split("\t") if line else ["", ""]
        if len(columns) != 2:
            hint = "; cut -f1,2 keeps the first two" if len(columns) > 2 else ""
            raise InputError(
                f"{path}, line {number}: must be 2 columns, source TAB target{hint}. Received: {len(columns)}"
            )
        if (_split_of(line, data) if line else "train") == split:
            chosen.append((columns[0], columns[1]))
    return _unzip(chosen)


def _check_tsv(path: Path, split: str) -> None:
    if split not in TSV_SPLITS:
        raise unknown("split", split, TSV_SPLITS, where=f" of {path}")


def _split_of(line: str, data: DataConfig) -> str:
    """Return the split of a line: a function of its text and the seed alone, so that equal pairs share a split."""
    digest = hashlib.sha256(f"{data.held_out_seed}\t{line}".encode()).digest()
    place = int.from_bytes(digest[:8]) / 2**64
    return "test" if place < data.held_out else "val" if place < 2 * data.held_out else "train"


def _read_tfds(data: DataConfig, name: str, split: str) -> Pairs:
    source, target = _languages(data)
    builder = _tfds_builder(data, name)
    if split not in builder.info.splits:
        raise unknown("split", split, builder.info.splits, where=f" of tfds:{name}")
    examples = builder.as_dataset(split=split, shuffle_files=False).as_numpy_iterator()
    try:
        return _unzip([(example[source].decode("utf-8"), example[target].decode("utf-8")) for example in examples])
    except UnicodeDecodeError:
        raise InputError(f"tfds:{name}, split {split}: not UTF-8") from None


def _tfds_builder(data: DataConfig, name: str) -> Any:
    """Return the builder of a dataset that has text in both languages, once it is on the disk."""
    import tensorflow_datasets as tfds  # takes a second

    try:
        builder = tfds.builder(name)
    except tfds.core.registered.DatasetNotFoundError:
        raise unknown("TFDS dataset", name, tfds.list_builders(with_community_datasets=False)) from None
    except Exception as error:
        raise _tfds_failure(name, error) from None
    features = builder.info.features
    texts = (
        [key for key in features if isinstance(features[key], tfds.features.Text)] if hasattr(features, "keys") else []
    )
    for language in _languages(data):
        if language not in texts:
            raise unknown("language", language, texts, where=f" of tfds:{name}")
    try:
        # TFDS talks on standard output, where our results go.
        with contextlib.redirect_stdout(sys.stderr):
            builder.download_and_prepare()
    except Exception as error:
        raise _tfds_failure(name, error) from None
    return builder


def _tfds_failure(name: str, error: Exception) -> InputError:
    """Return the error for whatever TFDS, the script of a dataset or the network has raised."""
    reason = next(iter(str(error).splitlines()), "")
    return InputError(f"tfds:{name} cannot be prepared: {type(error).__name__}: {reason}")
