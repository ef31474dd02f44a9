"""A preparation, with what a restart continues from."""

import contextlib
import dataclasses
import errno
import fcntl
import itertools
import json
import logging
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from tf_transformer.config import DataConfig
from tf_transformer.data.chunks import digest_of
from tf_transformer.data.corpora import STANDARD_INPUT, check_scores, is_prepared, renamed, without_direction
from tf_transformer.data.prepared import Prepared
from tf_transformer.data.prepared.manifest import FORMAT_VERSION
from tf_transformer.data.preparing.chosen import Choice, Numbered, numbered_chunks
from tf_transformer.data.preparing.duplicates import Hashing, directions_of, duplicates_in
from tf_transformer.data.preparing.plan import Plan
from tf_transformer.data.preparing.result import (
    assemble,
    described,
    model_names,
    nothing_left,
    validation_rows,
    write_validation,
)
from tf_transformer.data.preparing.sample import Sample
from tf_transformer.data.preparing.shard import Encoding, Models, encoding_of, facts_name, models_of
from tf_transformer.data.preparing.workers import Workers
from tf_transformer.errors import InputError
from tf_transformer.progress import progress_bar
from tf_transformer.storage.atomic import OLD, LocalFolder, atomic_write
from tf_transformer.storage.lock import LOCK
from tf_transformer.tokenizers.normalization import is_blank
from tf_transformer.tokenizers.vocabulary import Vocabulary, train_tokenizer

SPOOLED = "standard_input.tsv"
"""The file to which standard input is written, because it is read several times."""

log = logging.getLogger(__name__)
Item = TypeVar("Item")


class Preparation:
    """A preparation in its work folder, which holds the unfinished result and what a restart continues from."""

    def __init__(self, plan: Plan, output: Path, work: Path, pool: Workers, part: tuple[int, int]):
        self.plan = plan
        self.output = output
        self.work = work
        self.result = work / "result"
        self.facts = LocalFolder(work, beside=work)
        self.pool = pool
        self.part = part
        self.choice = Choice(plan.data.drop_copies)
        self.read = dataclasses.replace(plan, data=_spooled(plan.data, work / SPOOLED))
        """the plan, with the file that is read instead of standard input"""
        self.is_spooled = False
        self.total: int | None = None
        """number of pairs of all corpora, once they have been counted"""

    def settle(self) -> None:
        """Put the corpus that is to be overwritten back, or remove it, where a process ended while it replaced it."""
        old = self.work / OLD
        if old.exists():
            shutil.rmtree(old) if self.output.exists() else old.rename(self.output)

    def spool(self) -> Plan:
        """Write standard input to its file, unless that has been done, and return the plan with files alone."""
        if self.read.data != self.plan.data and not self.is_spooled:
            with (self.work / SPOOLED).open("wb") as file:
                shutil.copyfileobj(sys.stdin.buffer, file, 1 << 20)
            self.is_spooled = True
        return self.read

    def run(self) -> Prepared | None:
        """Do what is left to do."""
        check_scores(self.plan.data)
        self._begin()
        validation = validation_rows(self.read)
        write_validation(validation, self.result)
        duplicates: list[np.ndarray] | None = None
        if self.plan.data.drop_duplicates and (duplicates := self._duplicates()) is None:
            return None
        models = self._models(duplicates)
        encoding = encoding_of(self.plan, models, self.facts, LocalFolder(self.result, beside=self.work))
        count = self._encode(encoding, duplicates)
        if count is None:
            return None
        shards = (json.loads(self.facts.read(facts_name(number))) for number in range(count))
        assemble(self.plan, models, shards, described(validation), self.result)
        if self.output.exists() and self.part[1] == 1:  # it is to be overwritten
            self.output.rename(self.work / OLD)
        try:
            self.result.rename(self.output)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT) or not is_prepared(self.output):
                raise
            log.info("another part has finished %s", self.output)  # all of its files are the same
        shutil.rmtree(self.work, ignore_errors=True)
        return Prepared(self.output)

    def remove_if_empty(self) -> None:
        """Remove the work folder if it has nothing that a restart could continue from."""
        if not any(path.suffix == ".json" and path.stem != "plan" for path in self.work.glob("*")):
            self.remove()

    def remove(self) -> None:
        """Remove the work folder, unless it belongs to other parts as well."""
        if self.part[1] == 1 and self.work.exists():
            shutil.rmtree(self.work)

    def _begin(self) -> None:
        """Continue in the work folder if it is that of the same plan, and otherwise start over.

        Raises:
            InputError: other parts were begun with other settings.
        """
        place, identity = self.work / "plan.json", json.dumps(_identity(self.plan))
        self.work.mkdir(parents=True, exist_ok=True)
        if place.is_file() and place.read_text("utf-8") != identity:
            if self.part[1] > 1:
                raise InputError(
                    f"the parts of {self.output} were begun with other settings, or another tokenizer: give each part "
                    f"the same, or remove {self.work} to start over. Received: {self._changed(place)}"
                )
            log.info("%s was begun with other settings: starting over", self.output)
            for path in self.work.iterdir():
                if path.name != LOCK and not (path.name == SPOOLED and self.is_spooled):
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
        elif place.is_file():
            log.info("continuing the preparation of %s", self.output)
        self.result.mkdir(exist_ok=True)
        with atomic_write(place) as beside:
            beside.write_text(identity, "utf-8")
        self.spool()

    def _changed(self, begun: Path) -> str:
        """Return the settings of this part that differ from those in the file of a plan."""
        before, now = json.loads(begun.read_text("utf-8")), json.loads(json.dumps(_identity(self.plan)))
        old, new = (plan.pop("config") for plan in (before, now))
        differing = [
            f"{section}.{key}={value}"
            for section, settings in new.items()
            for key, value in settings.items()
            if old[section].get(key) != value
        ]
        differing = differing or [key for key in now if before.get(key) != now[key]]
        return ", ".join(differing) or "what another version began"

    def _is_own(self, task: Numbered) -> bool:
        """Say whether a chunk belongs to this part."""
        number, count = self.part
        return task.number % count == number - 1

    def _own(self, numbers: list[int]) -> Iterator[Numbered]:
        """Yield the chunks of this part; the numbers of all chunks are added to `numbers`."""
        for task in numbered_chunks(self.read):
            numbers.append(task.number)
            if self._is_own(task):
                yield task

    def _duplicates(self) -> list[np.ndarray] | None:
        """Return, for each chunk, which pairs equal earlier ones, or None if other parts must hash theirs first."""
        hashing = Hashing(self.work, directions_of(self.plan))
        numbers: list[int] = []
        hashed = self._shown("comparing", self.pool.map(hashing, self._own(numbers)), lambda found: found[1])
        pairs = sum(found[1] for found in hashed)
        self.total = pairs if self.part[1] == 1 else None
        files = [hashing.place(number) for number in numbers]
        if missing := sum(not file.with_suffix(".json").is_file() for file in files):
            log.info(
                "compared part %d of %d: %d of %d chunks are left to the other parts. When these have ended, run the "
                "command of each part again",
                *self.part,
                *(missing, len(files)),
            )
            return None
        return duplicates_in(files)

    def _with_duplicates(
        self, tasks: Iterable[Numbered], duplicates: list[np.ndarray] | None
    ) -> Iterator[tuple[Numbered, np.ndarray | None]]:
        """Yield tasks, each with those of its pairs that equal earlier ones."""
        for task in tasks:
            yield task, None if duplicates is None else duplicates[task.number]

    def _models(self, duplicates: list[np.ndarray] | None) -> Models:
        """Write the tokenizers of the plan, or else ones trained on a sample, to the result, and return them."""
        plan = self.plan
        if plan.vocabularies is None:
            with self._one_by_one("tokenizer.lock"):
                files = self._trained(duplicates)
            vocabularies = [Vocabulary(file, languages=plan.languages) for file in files]
        else:
            vocabularies = list(plan.vocabularies)
        models = models_of(plan, vocabularies)
        for name, model in zip(model_names(models), models.files, strict=True):
            with atomic_write(self.result / name) as beside:
                beside.write_bytes(model)
        return models

    def _trained(self, duplicates: list[np.ndarray] | None) -> list[bytes]:
        """Return tokenizers trained on the text, or those that a stopped preparation has trained on the same text."""
        settings = self.plan.tokenizer
        names = ["tokenizer.model"] if settings.shared else ["source.model", "target.model"]
        facts = self.work / "tokenizers.json"
        if facts.is_file() and json.loads(facts.read_text()) == [
            task.chunk.digest() for task in numbered_chunks(self.read)
        ]:
            return [(self.work / name).read_bytes() for name in names]
        tasks = self._with_duplicates(self._shown("sampling", numbered_chunks(self.read)), duplicates)
        sample = Sample(self.pool, self.choice, tasks)
        if all(is_blank(source) or is_blank(target) for source, target in zip(*sample.pairs, strict=True)):
            raise nothing_left(self.plan)
        log.info("training the tokenizer on %d pairs", len(sample.pairs.sources))
        texts: list[Iterable[str]] = [itertools.chain(*sample.pairs)] if settings.shared else [*sample.pairs]
        models = [train_tokenizer(text, settings, self.plan.languages) for text in texts]
        for name, model in zip(names, models, strict=True):
            with atomic_write(self.work / name) as beside:
                beside.write_bytes(model)
        with atomic_write(facts) as beside:
            beside.write_text(json.dumps(sample.digests))
        return models

    def _encode(self, encoding: Encoding, duplicates: list[np.ndarray] | None) -> int | None:
        """Write the shards of this part, and return the number of all shards, or None if other parts lack theirs."""
        numbers: list[int] = []
        results = self.pool.map(encoding, self._with_duplicates(self._own(numbers), duplicates))
        for _ in self._shown("preparing", results, lambda facts: facts["given"]):
            pass
        if missing := sum(self.facts.size(facts_name(number)) is None for number in numbers):
            log.info(
                "part %d of %d is prepared: %d of %d shards are left to other parts", *self.part, missing, len(numbers)
            )
            return None
        return len(numbers)

    def _shown(self, what: str, items: Iterable[Item], pairs: Callable[[Item], int] | None = None) -> Iterator[Item]:
        """Yield the items, and show the number of their pairs, or else of the items."""
        with progress_bar(what, "pairs" if pairs else "chunks", self.total if pairs else None, unit_scale=True) as bar:
            for item in items:
                yield item
                bar.update(pairs(item) if pairs else 1)

    @contextlib.contextmanager
    def _one_by_one(self, name: str) -> Iterator[None]:
        """Let in only one part at a time."""
        if self.part[1] == 1:
            yield
            return
        with (self.work / name).open("w") as file:
            with contextlib.suppress(OSError):  # on a file system without locks, all parts do the same work
                fcntl.flock(file, fcntl.LOCK_EX)
            yield


def _spooled(data: DataConfig, place: Path) -> DataConfig:
    """Return the same data with a file in the place of standard input."""

    def spooled(name: str) -> str:
        corpus, _ = without_direction(name)
        return str(place) + name.removeprefix(corpus) if corpus == STANDARD_INPUT else name

    return renamed(data, spooled)


def _identity(plan: Plan) -> dict[str, Any]:
    """Return, as JSON, what a restart must have in common with the preparation that was begun."""
    models = [digest_of(vocabulary.model) for vocabulary in plan.vocabularies or ()]
    return {
        "format_version": FORMAT_VERSION,
        "models": models,
        "languages": plan.languages,
        "directions": plan.directions,
        "config": plan.settings(),
    }
