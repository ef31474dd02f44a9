"""Preparing corpora in a pipeline, with the functions of `tf_transformer.data.preparing`."""

import contextlib
import dataclasses
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np

from tf_transformer.beam.storage import StoredFolder, absolute, copy, is_elsewhere, naming
from tf_transformer.data.chunks import Chunk
from tf_transformer.data.corpora import ENDINGS, MANIFEST, STANDARD_INPUT, renamed, without_direction
from tf_transformer.data.pairs import Pairs
from tf_transformer.data.prepared.shards import shard_name, text_name
from tf_transformer.data.preparing.chosen import Numbered, numbered_chunks
from tf_transformer.data.preparing.duplicates import bounds, directions_of, hashed, packed_bits, repeated
from tf_transformer.data.preparing.plan import Plan
from tf_transformer.data.preparing.result import assemble, described, model_names, validation_rows, write_validation
from tf_transformer.data.preparing.shard import Encoding, Models, encoding_of, models_of
from tf_transformer.errors import InputError

PARTS = 256
"""The number of parts in which hashes of pairs are compared. The hashes of a billion pairs take 80 MB per part."""
TEXT, VALIDATION = "text", "validation"
Row = tuple[int, tuple[int, str, str]]
"""The number of a validation pair, and the pair with the number of its corpus."""
Facts = tuple[int, dict[str, Any]]
"""The number of a shard, and the facts about it."""


class Prepare(beam.PTransform):
    """Prepares corpora in a pipeline, which writes the files that `tf-transformer prepare` writes.

    One worker reads the text and cuts it into chunks of 131,072 lines. The others filter and tokenise chunks, and write
    a shard for each. If a pipeline fails, the next one with the same settings and output reuses what it has written.

    Args:
        plan: the plan, from `tf_transformer.data.preparing.plan_of`. Its corpora are folders or files that every
            worker sees under the same name. Those with a scheme, such as gs://, are copied to the disk of the worker
            that reads them.
        output: a folder that does not exist yet and that every worker sees, or one with a scheme. Its manifest is
            written last.

    Raises:
        InputError: no tokenizer is given, a corpus is standard input, or `output` exists.
    """

    def __init__(self, plan: Plan, output: str):
        super().__init__()
        if plan.vocabularies is None:
            raise InputError(
                "a pipeline cannot train a tokenizer: give --tokenizer FILE, such as that of a corpus that you have "
                "prepared from part of the text"
            )
        if STANDARD_INPUT in (without_direction(data.corpus or "")[0] for data in plan.corpora):
            raise InputError(
                "--data - cannot be read, because the workers of a pipeline have no standard input: give files"
            )
        self.output = absolute(output)
        if StoredFolder(self.output).size(MANIFEST) is not None:
            raise InputError(f"{output} already exists: remove it, or give another folder")
        self.plan = dataclasses.replace(plan, vocabularies=None)  # workers open them when they are needed
        self.models = models_of(plan, plan.vocabularies)
        self.work = StoredFolder(f"{self.output}.preparing")

    def expand(self, pipeline: beam.Pipeline) -> beam.PCollection:
        """Return one element: the number of prepared pairs."""
        plan = pipeline | "Plan" >> beam.Create([self.plan])
        read = plan | "Read" >> beam.FlatMap(_read).with_outputs(VALIDATION, main=TEXT)
        chunks = read[TEXT] | "Spread" >> beam.Reshuffle()
        if self.plan.data.drop_duplicates:
            tasks = _compared(chunks, directions_of(self.plan))
        else:
            tasks = chunks | "Take all" >> beam.Map(lambda task: (task, None))
        encoding = encoding_of(self.plan, self.models, self.work, StoredFolder(self.output))
        facts = tasks | "Encode" >> beam.Map(_encoded, encoding)
        validation, written = beam.pvalue.AsIter(read[VALIDATION]), beam.pvalue.AsIter(facts)
        return plan | "Finish" >> beam.Map(_finish, self.models, self.output, self.work, validation, written)


def _read(plan: Plan) -> Iterator[Any]:
    """Yield the validation text, and all chunks."""
    with _fetched(plan) as (local, copies), naming(copies):
        for numbered in enumerate(validation_rows(local)):
            yield beam.pvalue.TaggedOutput(VALIDATION, numbered)
        for task in numbered_chunks(local):
            yield task._replace(chunk=_Copied(task.chunk, copies))


@dataclasses.dataclass(frozen=True)
class _Copied:
    """A chunk of local copies of corpora. Errors name the corpora."""

    chunk: Chunk
    copies: dict[str, str]

    def read(self) -> tuple[Pairs, dict[str, int]]:
        """Return what the chunk does."""
        with naming(self.copies):
            return self.chunk.read()

    def digest(self) -> str:
        """Return what the chunk does."""
        return self.chunk.digest()


@contextlib.contextmanager
def _fetched(plan: Plan) -> Iterator[tuple[Plan, dict[str, str]]]:
    """Yield the plan with local copies of the corpora that have a scheme, and the paths of the copies by corpora."""
    with tempfile.TemporaryDirectory() as temporary:
        copies: dict[str, str] = {}

        def local(name: str) -> str:
            corpus, _ = without_direction(name)
            if not is_elsewhere(corpus):
                return name
            if corpus not in copies:
                place = Path(temporary, str(len(copies)))
                if corpus.lower().endswith(ENDINGS):
                    place /= corpus.rpartition("/")[2]
                    copy(corpus, place)
                else:
                    StoredFolder(corpus.rstrip("/")).fetch(place)
                copies[corpus] = str(place)
            return copies[corpus] + name.removeprefix(corpus)

        yield dataclasses.replace(plan, data=renamed(plan.data, local)), copies


def _compared(chunks: beam.PCollection, directions: tuple[str, ...]) -> beam.PCollection:
    """Return chunks, each with those of its pairs that equal earlier ones."""
    duplicates = (
        chunks
        | "Hash" >> beam.FlatMap(_hashes, directions)
        | "Bring equal hashes together" >> beam.GroupByKey()
        | "Compare" >> beam.FlatMap(_repeated)
    )
    numbered = chunks | "Number" >> beam.Map(lambda task: (task.number, task))
    return {"task": numbered, "equal": duplicates} | "Join" >> beam.CoGroupByKey() | "Mark" >> beam.Map(_marked)


def _hashes(task: Numbered, directions: tuple[str, ...]) -> Iterator[tuple[int, tuple[int, int, np.ndarray]]]:
    """Yield, for each part, the number of the chunk, its number of pairs, and its hashes that belong to the part.

    Parts to which no hash belongs are left out, except the first part, which thus has all chunks.
    """
    rows = hashed(task, directions[task.corpus])
    cuts = [0, *np.searchsorted(rows["high"], bounds(PARTS)), len(rows)]
    for part in range(PARTS):
        some = rows[cuts[part] : cuts[part + 1]]
        if part == 0 or len(some):
            yield part, (task.number, len(rows), some)


def _repeated(
    part: tuple[int, Iterable[tuple[int, int, np.ndarray]]],
) -> Iterator[tuple[int, tuple[int, np.ndarray]]]:
    """Yield chunks, each with the number of its pairs and those that equal earlier ones.

    The first part yields all chunks, even those without such pairs.
    """
    number, given = part
    chunks = sorted(given, key=lambda chunk: chunk[0])
    for (chunk, count, _), rows in zip(chunks, repeated([rows for *_, rows in chunks]), strict=True):
        if number == 0 or len(rows):
            yield chunk, (count, rows)


def _marked(joined: tuple[int, dict[str, Any]]) -> tuple[Numbered, np.ndarray]:
    """Return a chunk, and its pairs that equal earlier ones as packed bits."""
    _, found = joined
    (task,), duplicates = found["task"], list(found["equal"])
    return task, packed_bits(duplicates[0][0], np.concatenate([rows for _, rows in duplicates]))


def _encoded(task: tuple[Numbered, np.ndarray | None], encoding: Encoding) -> Facts:
    """Write the shard of a chunk, and return its number and the facts about it."""
    return task[0].number, encoding(task)


def _finish(
    plan: Plan, models: Models, output: str, work: StoredFolder, validation: Iterable[Row], facts: Iterable[Facts]
) -> int:
    """Write everything but the shards, and return the number of pairs."""
    result, names = StoredFolder(output), (shard_name, text_name) if plan.data.bpe_dropout else (shard_name,)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        rows = [row for _, row in sorted(validation)]
        write_validation(rows, folder)
        for name, model in zip(model_names(models), models.files, strict=True):
            (folder / name).write_bytes(model)
        in_order = [fact for _, fact in sorted(facts, key=lambda fact: fact[0])]
        assemble(plan, models, in_order, described(rows), folder)
        result.keep_only(name_of(number) for number in range(len(in_order)) for name_of in names)
        for path in sorted(folder.iterdir(), key=lambda path: (path.name == MANIFEST, path.name)):
            result.write(path.name, path.read_bytes())
    work.remove()
    return sum(fact["shard"]["pairs"] for fact in in_order)
