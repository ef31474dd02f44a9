"""A bad element is named by its key, and with exception handling it is a dead letter, and all others are translated."""

import gzip
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("apache_beam")

import apache_beam as beam
import numpy as np
from apache_beam import Pipeline
from apache_beam.ml.inference.base import RunInference
from apache_beam.pipeline import PipelineVisitor
from apache_beam.testing.util import assert_that, equal_to

from tf_transformer.beam import Translate, TranslateFiles
from tf_transformer.beam.translating import TranslationHandler
from tf_transformer.errors import InputError


class Text(str):
    """A string that Beam pickles, which lets a lone surrogate through."""

    __slots__ = ()


class Upper:
    """A model that translates to capitals, and fails at two words."""

    def count_tokens(self, sentences: list[str]) -> list[int]:
        return [len(sentence) + 1 for sentence in sentences]

    def translate_strings(self, sentences: list[str]) -> list[str]:
        if any("huge" in sentence for sentence in sentences):
            raise InputError("no memory")
        if any("crash" in sentence for sentence in sentences):
            raise RuntimeError("crashed")
        return [sentence.upper() for sentence in sentences]


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The folder of a model that needs no TensorFlow."""
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "fingerprint.pb").write_bytes(b"upper")
    monkeypatch.setattr(TranslationHandler, "load_model", lambda self: Upper())
    return str(folder)


BAD = [
    (("k7", None), "key 'k7' is not a string: .*leave it out. Received: None, of type NoneType"),
    (("k7", b"a b"), "key 'k7' is not a string: decode it. Received: b'a b', of type bytes"),
    (("k7", 13), "key 'k7' is not a string: .*Received: 13, of type int"),
    (("k7", float("inf")), "key 'k7' is not a string: .*Received: inf, of type float"),
    (("k7", ["a", "b"]), r"key 'k7' is not a string: .*Received: \['a', 'b'\], of type list"),
    ((("x\ny", 5), None), r"key \('x\\ny', 5\) is not a string"),
    (("gs://bucket/" + "folder/" * 19 + "k7", None), "folder/k7' is not a string"),
    ((None, None), "key None is not a string"),
    (("k7", "a", "b"), r"not a pair: give \(key, sentence\). Received: \('k7', 'a', 'b'\), of type tuple"),
    (("k7",), r"not a pair: .*Received: \('k7',\), of type tuple"),
    ("a sentence", "not a pair: .*Received: 'a sentence', of type str"),
    ("ab", "not a pair: .*Received: 'ab', of type str"),
    (b"ab", "not a pair: .*Received: b'ab', of type bytes"),
    ({"k7": 1, "a": 2}, r"not a pair: .*Received: \{'k7': 1, 'a': 2\}, of type dict"),
    (None, "not a pair: .*Received: None, of type NoneType"),
]


@pytest.mark.long_but_first
@pytest.mark.parametrize(("element", "words"), BAD)
def test_the_job_fails_and_names_the_key(model: str, element: Any, words: str) -> None:
    with pytest.raises(InputError, match=words) as raised, Pipeline("FnApiRunner") as pipeline:
        _ = pipeline | beam.Create([("good", "a"), element]) | Translate(model)
    assert "while running" in str(raised.value).splitlines()[0]  # which Beam adds at the end of our one line


def letters(given: Iterable[tuple[Any, type, str]]) -> Callable[[list[Any]], None]:
    """Check that these elements are dead letters, each with the type of an exception and some of its words."""
    expected = list(given)

    def check(found: list[Any]) -> None:
        assert all(lines[0].startswith("Traceback") for _, (_, _, lines) in found)
        left = [(element, kind, message) for element, (kind, message, _) in found]
        for element, kind, words in expected:
            (same,) = (each for each in left if repr(each[:2]) == repr((element, kind)) and words in each[2])
            left.remove(same)
        assert not left

    return check


def test_every_element_is_translated_or_a_dead_letter(model: str) -> None:
    elements = [element for element, _ in BAD]
    with Pipeline("FnApiRunner") as pipeline:
        sentences = pipeline | beam.Create([("first", "a b"), *elements, ("last", "c")])
        good, bad = sentences | Translate(model).with_exception_handling()
        assert_that(good, equal_to([("first", "A B"), ("last", "C")]))
        assert_that(bad, letters((element, InputError, "Received: ") for element in elements), label="bad")


def test_a_batch_that_fails_is_dead_letters(model: str) -> None:
    sentences = [("a", "one"), ("b", "huge"), ("c", "two"), ("d", "crash"), ("e", None)]
    failing = [("b", "huge"), ("d", "crash")]
    with Pipeline("FnApiRunner") as pipeline:
        elements = pipeline | beam.Create(sentences)
        good, bad = elements | "singly" >> Translate(model, max_batch_size=1).with_exception_handling()
        kinds = {"b": (InputError, "no memory. Received: 'huge'"), "d": (RuntimeError, "crashed")}
        expected = [(element, *kinds[element[0]]) for element in failing] + [(("e", None), InputError, "key 'e'")]
        assert_that(good, equal_to([("a", "ONE"), ("c", "TWO")]), label="good singly")
        assert_that(bad, letters(expected), label="bad singly")
        together = pipeline | "together" >> beam.Create(sentences[:3], reshuffle=False)
        good, bad = together | Translate(model, min_batch_size=3).with_exception_handling()
        assert_that(good, equal_to([]), label="good together")
        assert_that(bad, letters((each, InputError, "'huge'") for each in sentences[:3]), label="bad together")
    with pytest.raises(InputError, match="no memory. Received: 'huge'"), Pipeline("FnApiRunner") as pipeline:
        _ = pipeline | beam.Create(sentences[:3]) | Translate(model)


def test_too_many_dead_letters_end_the_job(model: str) -> None:
    elements = [("a", "one"), ("b", None), ("c", None)]
    for threshold in (0.7, 0.6):
        pipeline = Pipeline("FnApiRunner")
        _ = pipeline | beam.Create(elements) | Translate(model).with_exception_handling(threshold=threshold)
        if threshold > 2 / 3:
            pipeline.run()
        else:
            with pytest.raises(ValueError, match="exceeded threshold: 2 / 3"):
                pipeline.run()


def test_dead_letters_are_not_of_the_declared_type(model: str) -> None:
    """A coder of strings would fail at a None, which Beam calls only for some elements to estimate their sizes."""
    types = set()

    class Types(PipelineVisitor):
        def visit_transform(self, node: Any) -> None:
            types.update(str(output.element_type) for tag, output in node.outputs.items() if tag == "bad")

    pipeline = Pipeline("FnApiRunner")
    sentences = pipeline | beam.Create([("a", "one")]).with_output_types(tuple[str, str])
    _ = sentences | Translate(model).with_exception_handling()
    pipeline.visit(Types())
    assert types
    assert all("Tuple[<class 'str'>, <class 'str'>]" not in name for name in types)
    assert any(name.startswith("Tuple[Any, ") for name in types)


@pytest.mark.long_but_first
@pytest.mark.parametrize(
    ("element", "translation"),
    [
        (("k", ""), ""),
        ((None, "a"), "A"),
        ((["no", "hash"], "a"), "A"),
        ((np.int64(3), "a"), "A"),
        (["k", "a"], "A"),
        (("k", np.str_("a")), "A"),
        (("k", Text("a")), "A"),
        (("k", Text("a \ud800 b")), "A ? B"),
    ],
)
def test_unusual_elements_are_translated(model: str, element: Any, translation: str) -> None:
    with Pipeline("FnApiRunner") as pipeline:
        good, bad = pipeline | beam.Create([element]) | Translate(model).with_exception_handling()
        assert_that(good, equal_to([(element[0], translation)]))
        assert_that(bad, equal_to([]), label="bad")


@pytest.mark.parametrize(
    ("element", "words"),
    [
        ("a sentence", r"lists of sentences: give \[sentence\], .*Received: 'a sentence', of type str"),
        (b"ab", "lists of sentences: .*Received: b'ab', of type bytes"),
        (None, "lists of sentences: .*Received: None, of type NoneType"),
        (["a", None], "sentence 2 of a list of 2 is not a string: .*Received: None, of type NoneType"),
        (["a", "b", b"c"], "sentence 3 of a list of 3 is not a string: decode it. Received: b'c', of type bytes"),
    ],
)
def test_the_handler_says_what_is_no_list_of_sentences(model: str, element: Any, words: str) -> None:
    with pytest.raises(InputError, match=words), Pipeline("FnApiRunner") as pipeline:
        _ = pipeline | beam.Create([["good"], element]) | RunInference(TranslationHandler(model))


def test_files_are_named_as_they_were_given(model: str, tmp_path: Path, elsewhere: Path) -> None:
    handler = TranslationHandler(model)
    with pytest.raises(InputError, match=r"give \['text.txt'\]"):
        TranslateFiles("text.txt", str(tmp_path / "output"), handler)
    (elsewhere / "cut.gz").write_bytes(gzip.compress(b"a\n" * 101)[:-5])
    with pytest.raises(InputError, match="^elsewhere://cut.gz is not a complete"), Pipeline("FnApiRunner") as pipeline:
        _ = pipeline | TranslateFiles(["elsewhere://cut.gz"], str(tmp_path / "output"), handler)
