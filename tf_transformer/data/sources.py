"""Where pairs of sentences come from: files, TensorFlow Datasets, and the corpora that are written here."""

import gzip
import hashlib
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tf_transformer.config import DataConfig
from tf_transformer.data import copy_task, toy
from tf_transformer.errors import InputError, unknown

VALIDATION_NAMES = ("val", "valid", "validation", "dev")
BUILT_IN: dict[str, tuple[tuple[str, ...], Callable[[str], list[tuple[str, str]]]]] = {
    "toy": (toy.SPLITS, toy.pairs),
    "copy": (tuple(copy_task.SIZES), copy_task.pairs),
}


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
        InputError: what is missing or malformed, with file and line where there are such.
    """
    kind, corpus = _kind(data)
    if split not in (known := splits(data)):
        raise unknown("split", split, known)
    if kind == "built-in":
        return _unzip(BUILT_IN[corpus][1](split))
    if kind == "tfds":
        return _read_tfds(data, corpus, split)
    if kind == "tsv":
        return _read_tsv(data, Path(corpus), split)
    source, target = _languages(data)
    sides = [_read_lines(_find(Path(corpus), split, language)) for language in (source, target)]
    if len(sides[0]) != len(sides[1]):
        raise InputError(
            f"the files of {split!r} in {corpus} must have a line for each line of the other. "
            f"Received: {len(sides[0])} lines in {source}, {len(sides[1])} in {target}"
        )
    return Pairs(*sides)


def splits(data: DataConfig) -> tuple[str, ...]:
    """Return the names of the splits that the corpus has in both languages."""
    kind, corpus = _kind(data)
    if kind == "built-in":
        return BUILT_IN[corpus][0]
    if kind == "tfds":
        return tuple(_tfds_builder(corpus).info.splits)
    if kind == "tsv":
        return ("train", "val", "test")
    files = {path.name.removesuffix(".gz") for path in Path(corpus).iterdir() if path.is_file()}
    languages = _languages(data)
    for language in languages:
        if not any(name.endswith(f".{language}") for name in files):
            found = {name.rpartition(".")[2] for name in files if "." in name}
            raise unknown(f"language in {corpus}", language, found)
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
    if "/" in corpus or "." in corpus:
        raise InputError(f"--data {corpus}: there is no such folder, and no such .tsv or .tsv.gz file")
    raise unknown("dataset", corpus, [*BUILT_IN, "tfds:NAME", "a folder", "a .tsv file"])


def _languages(data: DataConfig) -> tuple[str, str]:
    if not (data.source and data.target):
        raise InputError(f"--data {data.corpus} needs the languages: give --source and --target, such as en and de")
    if data.source == data.target:
        raise InputError(f"--source and --target must differ. Received: {data.source} twice")
    return data.source, data.target


def _unzip(pairs: list[tuple[str, str]]) -> Pairs:
    return Pairs([source for source, _ in pairs], [target for _, target in pairs])


def _find(folder: Path, split: str, language: str) -> Path:
    plain = folder / f"{split}.{language}"
    return plain if plain.is_file() else folder / f"{split}.{language}.gz"


def _read_lines(path: Path) -> list[str]:
    """Return the lines of a UTF-8 file; only a line feed, with or without a carriage return, ends a line."""
    try:
        raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from None
    except (EOFError, zlib.error):
        raise InputError(f"{path} is not a whole gzip file") from None
    try:
        text = raw.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise InputError(f"{path}, line {line}: not UTF-8") from None
    return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")] if text else []


def _read_tsv(data: DataConfig, path: Path, split: str) -> Pairs:
    chosen = []
    for number, line in enumerate(_read_lines(path), 1):
        columns = line.split("\t")
        if len(columns) != 2:
            raise InputError(f"{path}, line {number}: must be source TAB target. Received: {len(columns)} columns")
        if _split_of(line, data.held_out) == split:
            chosen.append((columns[0], columns[1]))
    return _unzip(chosen)


def _split_of(line: str, held_out: float) -> str:
    """Return the split of a line: a function of its text alone, so that equal pairs share a split."""
    place = int.from_bytes(hashlib.sha256(b"tf_transformer" + line.encode()).digest()[:8]) / 2**64
    return "test" if place < held_out else "val" if place < 2 * held_out else "train"


def _tfds_builder(name: str):  # type: ignore[no-untyped-def]  # TFDS is untyped, and takes a second to import
    import tensorflow_datasets as tfds

    try:
        return tfds.builder(name)
    except (tfds.core.DatasetNotFoundError, tfds.core.registered.DatasetNotFoundError):
        raise unknown("TFDS dataset", name, tfds.list_builders(with_community_datasets=False)) from None
    except ValueError as error:
        raise InputError(f"tfds:{name}: {str(error).splitlines()[0]}") from None


def _read_tfds(data: DataConfig, name: str, split: str) -> Pairs:
    builder = _tfds_builder(name)
    source, target = _languages(data)
    for language in (source, target):
        if language not in builder.info.features:
            raise unknown(f"language in tfds:{name}", language, builder.info.features)
    builder.download_and_prepare()
    examples = builder.as_dataset(split=split, shuffle_files=False).as_numpy_iterator()
    return _unzip([(example[source].decode(), example[target].decode()) for example in examples])
