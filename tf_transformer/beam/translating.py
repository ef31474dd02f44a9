"""Translating text of any size in a pipeline, with an export."""

import contextlib
import itertools
import json
import tempfile
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import apache_beam as beam
from apache_beam.ml.inference.base import KeyedModelHandler, ModelHandler, RunInference

from tf_transformer.beam.storage import StoredFolder, absolute, copy, is_elsewhere, naming
from tf_transformer.config import DecodingConfig
from tf_transformer.data.chunks import digest_of, split_lines
from tf_transformer.errors import InputError
from tf_transformer.runs.descriptions import LITERT_MODEL
from tf_transformer.storage.lines import decoded, line_blocks
from tf_transformer.text.batching import BATCH_TOKENS, translate_lines

if TYPE_CHECKING:
    from tf_transformer.text.translator import TextTranslator

LINES = 8_192
"""The number of lines that are translated at once and written to one file."""
DONE, LEFT = "done", "left"
IDENTIFYING = ("fingerprint.pb", LITERT_MODEL)
"""The files that identify an export: TensorFlow's fingerprint of a SavedModel, or the model of an export for LiteRT."""
SUMMARY = "translations.json"
"""The file whose presence says that all lines are translated."""


class TranslationHandler(ModelHandler[Sequence[str], list[str], "TextTranslator"]):
    """Translates lists of sentences, as RunInference requires.

    Args:
        model: the folder of an export that every worker sees, or one with a scheme.
        decoding: the languages to translate between, if the model has several; see `ExportedTranslator`.
        batch_tokens: the most tokens that are translated at once; see `translate_lines`.
        **settings: settings of Beam's `ModelHandler`, such as `max_batch_size`, or `large_model=True` for one model per
            machine instead of one per process.

    Raises:
        InputError: `model` is not an export.
    """

    def __init__(
        self, model: str, decoding: DecodingConfig | None = None, *, batch_tokens: int = BATCH_TOKENS, **settings: Any
    ):
        super().__init__(**settings)
        self.model = absolute(model)
        folder = StoredFolder(self.model)
        there = [name for name in IDENTIFYING if folder.size(name) is not None]
        if not there:
            raise InputError(f"{model} is not an exported model: it has neither {' nor '.join(IDENTIFYING)}")
        self.identifying = there[0]
        self.decoding = decoding
        self.batch_tokens = batch_tokens

    def load_model(self) -> "TextTranslator":
        """Return the translator."""
        from tf_transformer.translation.opening import open_translator  # only workers need it

        with contextlib.ExitStack() as stack:
            path = self.model
            if is_elsewhere(path):
                path = stack.enter_context(tempfile.TemporaryDirectory())
                StoredFolder(self.model).fetch(Path(path))
            return open_translator(path, self.decoding, batch_tokens=self.batch_tokens)

    def run_inference(
        self, batch: Sequence[Sequence[str]], model: "TextTranslator", inference_args: dict[str, Any] | None = None
    ) -> Iterator[list[str]]:
        """Yield the list of translations for each list of sentences.

        Raises:
            InputError: what should be a list of sentences is none; a sentence cannot be translated.
        """
        for some in batch:
            _check_list(some)

        def translate(lines: list[str], _: Sequence[int]) -> list[str]:
            try:
                return model.translate_strings(lines)
            except InputError as error:  # once the batch is split up, the first line is the one that fails
                raise InputError(f"{error}. Received: {_shown(lines[0])}") from None

        sentences = itertools.chain.from_iterable(batch)
        found = translate_lines(translate, sentences, count=model.count_tokens, batch_tokens=self.batch_tokens)
        for some in batch:
            yield list(itertools.islice(found, len(some)))


class Translate(beam.PTransform):
    """Translates elements (key, sentence) to elements (key, translation), with Beam's RunInference.

    A key may be anything that Beam can encode. The job fails at an element that is not such a pair, with an InputError
    that names its key. To go on without such elements, use `with_exception_handling`.

    The arguments are those of `TranslationHandler`.
    """

    def __init__(
        self, model: str, decoding: DecodingConfig | None = None, *, batch_tokens: int = BATCH_TOKENS, **settings: Any
    ):
        super().__init__()
        handler = TranslationHandler(model, decoding, batch_tokens=batch_tokens, **settings)
        # Elements are checked before they are batched, so that a bad one does not take its batch along.
        self.inference = RunInference(KeyedModelHandler(handler).with_preprocess_fn(_listed))
        self.has_dead_letters = False

    def with_exception_handling(self, **settings: Any) -> Self:
        """Return this transform, which then gives two PCollections: the translations, and the dead letters.

        A dead letter is `(element, (type of the exception, its repr, lines of the traceback))`, as that of `beam.Map`.
        If a batch cannot be translated, each of its elements is a dead letter.

        Args:
            **settings: those of Beam's `RunInference.with_exception_handling`, such as `threshold`, the share of bad
                elements, and of bad batches, above which the job fails all the same.
        """
        self.inference.with_exception_handling(**settings)
        self.has_dead_letters = True
        return self

    def expand(self, sentences: beam.PCollection) -> Any:  # Beam warns of a type that is no PCollection
        """Return the translations, and with exception handling the dead letters too."""
        # A bad element is often not of the type that was declared, and so has no place in a PCollection of that type.
        elements = sentences | "Of any type" >> beam.Map(lambda element: element).with_output_types(Any)
        found = elements | self.inference
        good, bad = found if self.has_dead_letters else (found, None)
        translations = good | "From lists" >> beam.MapTuple(lambda key, translations: (key, translations[0]))
        if bad is None:
            return translations
        batches = bad.failed_inferences | "From batches" >> beam.FlatMap(_letters)
        return translations, (*bad.failed_preprocessing, batches) | "Dead letters" >> beam.Flatten()


def _listed(element: Any) -> tuple[Any, list[str]]:
    """Return the key and the sentence of an element, the sentence as a list, which `TranslationHandler` takes."""
    if not isinstance(element, tuple | list) or len(element) != 2:
        raise InputError(f"an element is not a pair: give (key, sentence). Received: {_typed(element)}")
    key, sentence = element
    if not isinstance(sentence, str):
        raise _not_text(f"the sentence with the key {_shown(key)}", sentence)
    # Beam cannot encode a lone surrogate, which all translators read as a question mark.
    return key, [sentence.encode("utf-8", "replace").decode()]


def _letters(failed: tuple[list[tuple[Any, list[str]]], Any]) -> Iterator[tuple[tuple[Any, str], Any]]:
    """Yield a dead letter for each element of a batch that failed."""
    batch, reason = failed
    for key, (sentence,) in batch:
        yield (key, sentence), reason


def _check_list(sentences: Any) -> None:
    """Raise InputError if these are not several strings."""
    if isinstance(sentences, str | bytes) or not isinstance(sentences, Collection):
        raise InputError(
            f"TranslationHandler takes lists of sentences: give [sentence], or use Translate. "
            f"Received: {_typed(sentences)}"
        )
    for number, sentence in enumerate(sentences, 1):
        if not isinstance(sentence, str):
            raise _not_text(f"sentence {number} of a list of {len(sentences)}", sentence)


def _not_text(what: str, sentence: Any) -> InputError:
    """Return the error for a sentence that is not a string."""
    advice = "decode it" if isinstance(sentence, bytes) else "give a string, or leave it out"
    return InputError(f"{what} is not a string: {advice}. Received: {_typed(sentence)}")


def _typed(value: Any) -> str:
    return f"{_shown(value)}, of type {type(value).__name__}"


def _shown(value: Any) -> str:
    """Return what a value is in one line of at most 200 characters, which has room for keys that are paths."""
    return f"{' '.join(repr(value).splitlines()):.200}"


class Block(NamedTuple):
    """A block of successive lines."""

    number: int
    name: str
    """name of the file, for errors"""
    first: int
    """number of the first line, from 1"""
    content: bytes


class TranslateFiles(beam.PTransform):
    """Translates the lines of files in a pipeline, which writes a folder of files of 8,192 lines each.

    In the order of their names, these files have the translations in the order of the lines. `cat OUTPUT/*.txt` joins
    them. If a pipeline fails, the next one with the same output, model and settings reuses the translations of blocks
    of lines that have not changed.

    Args:
        inputs: files with one sentence per line, plain, .gz or .zst, that every worker sees. Those with a scheme, such
            as gs://, are copied to the disk of the worker that reads them.
        output: a folder that does not exist yet and that every worker sees, or one with a scheme.
        handler: the handler that translates.

    Raises:
        InputError: `inputs` is a string; `output` exists.
    """

    def __init__(self, inputs: Sequence[str], output: str, handler: TranslationHandler):
        super().__init__()
        if isinstance(inputs, str):
            raise InputError(f"inputs must be a list of files: give [{inputs!r}]. Received: {inputs!r}")
        self.inputs = [absolute(path) for path in inputs]
        self.output = StoredFolder(absolute(output))
        self.handler = handler
        if self.output.size(SUMMARY) is not None:
            raise InputError(f"{output} already exists: remove it, or give another folder")
        self.work = StoredFolder(f"{self.output.path}.translating")

    def expand(self, pipeline: beam.Pipeline) -> beam.PCollection:
        """Return one element: the number of translated lines."""
        inputs = pipeline | "Inputs" >> beam.Create([self.inputs])
        blocks = inputs | "Read" >> beam.FlatMap(_blocks) | "Spread" >> beam.Reshuffle()
        identity = _identity(self.handler)
        found = blocks | "Look up" >> beam.FlatMap(_looked_up, self.work, self.output, identity).with_outputs(
            DONE, main=LEFT
        )
        written = (
            found[LEFT]
            | "Decode" >> beam.Map(_sentences)
            | RunInference(KeyedModelHandler(self.handler))
            | "Write" >> beam.Map(_written, self.work, self.output, identity)
        )
        counts = beam.pvalue.AsIter((found[DONE], written) | "All" >> beam.Flatten())
        return inputs | "Finish" >> beam.Map(_finish, self.output, self.work, counts)


def _blocks(inputs: list[str]) -> Iterator[Block]:
    """Yield the lines of files in blocks."""
    number = 0
    for name in inputs:
        with tempfile.TemporaryDirectory() as temporary:
            path = Path(name)
            if is_elsewhere(name):
                path = Path(temporary, name.rpartition("/")[2])
                copy(name, path)
            first = 1
            with naming({name: str(path)}):
                for content in line_blocks(path, LINES):
                    yield Block(number, name, first, content)
                    number, first = number + 1, first + LINES


def _identity(handler: TranslationHandler) -> str:
    """Return what distinguishes the translations of an export from those of another."""
    return digest_of(StoredFolder(handler.model).read(handler.identifying), repr(handler.decoding).encode())


def _facts(number: int) -> str:
    return f"{number:07d}.json"


def _text(number: int) -> str:
    return f"{number:07d}.txt"


def _looked_up(block: Block, work: StoredFolder, output: StoredFolder, identity: str) -> Iterator[Any]:
    """Yield a block if it is still to be translated, and otherwise the number of its lines."""
    facts = _facts(block.number)
    if work.size(facts) is not None:
        known = json.loads(work.read(facts))
        is_same = known["key"] == [identity, digest_of(block.content)]
        if is_same and output.size(_text(block.number)) == known["bytes"]:
            yield beam.pvalue.TaggedOutput(DONE, known["lines"])
            return
    yield block


def _sentences(block: Block) -> tuple[tuple[int, str], list[str]]:
    """Return the number of a block with the digest of its text, and its lines."""
    lines = list(decoded(split_lines(block.content), block.name, block.first))
    return (block.number, digest_of(block.content)), lines


def _written(
    translated: tuple[tuple[int, str], list[str]], work: StoredFolder, output: StoredFolder, identity: str
) -> int:
    """Write the translations of a block, and return their number."""
    (number, digest), translations = translated
    content = "".join(f"{translation}\n" for translation in translations).encode()
    output.write(_text(number), content)
    facts = {"key": [identity, digest], "lines": len(translations), "bytes": len(content)}
    work.write(_facts(number), json.dumps(facts).encode())
    return len(translations)


def _finish(inputs: list[str], output: StoredFolder, work: StoredFolder, counts: Iterable[int]) -> int:
    """Write the summary, which says that all is done, and return the number of lines."""
    found = list(counts)
    lines = sum(found)
    output.keep_only([_text(number) for number in range(len(found))])
    output.write(SUMMARY, json.dumps({"inputs": inputs, "lines": lines}).encode())
    work.remove()
    return lines
