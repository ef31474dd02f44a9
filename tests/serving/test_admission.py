"""What a request may ask of a model, and that no more is computed than it was admitted for."""

import contextlib
import threading

import pytest
import tensorflow as tf

from tests.serving.conftest import SECONDS, TEXT, predict, wait_for
from tf_transformer.serving.jobs import Waiting
from tf_transformer.serving.limits import Limits, Refused
from tf_transformer.serving.version import Version


def with_terms(*terms: str) -> dict:
    return {"signature_name": "translate_with_terms", "inputs": {"text": [TEXT], "terms": ["\t".join(terms)]}}


def with_prefix(prefix: str) -> dict:
    return {"signature_name": "search_steps", "inputs": {"text": [TEXT], "prefix_ids": [prefix]}}


REFUSED = {
    "a long sentence": ({"instances": ["a" * 1500]}, "text: a sentence may have at most 1000 bytes. Received: 1500"),
    "terms": (with_terms(*"a" * 33), "a sentence may have at most 32 terms. Received: 33"),
    "400 terms": (with_terms(*"a" * 400), "a sentence may have at most 32 terms. Received: 400"),
    "long terms": (with_terms("a " * 200, "b " * 100), "at most 256 tokens. Received: 302"),
    "one long term": (with_terms("a " * 490), "the terms of a sentence may have at most 256 tokens. Received: 491"),
    "no term": (with_terms("a", "", "b"), "each term must have text"),
    "a last tab": (with_terms("a", ""), "each term must have text"),
    "a blank term": (with_terms("a", " \u3000"), "each term must have text"),
    "long prefix": (with_prefix("5 " * 500), "a translation of that text may have at most 53 tokens. Received: 500"),
    "no ids": (with_prefix("5 x"), "prefix_ids must be ids of tokens, below "),
    "a negative id": (with_prefix("-5"), "with spaces between them. Received: -5"),
    "a large id": (with_prefix("9" * 999), "prefix_ids must be ids of tokens, below "),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_would_be_cut_or_dropped_is_refused(client, name):
    body, message = REFUSED[name]
    status, answer = predict(client, body)
    assert (status, message in answer["error"]) == (400, True), answer


def test_as_many_terms_as_are_allowed_are_written(client):
    terms = ["a b", "c d e", *"fghij" * 6]
    status, answer = predict(client, with_terms(*terms))
    assert status == 200
    (best, *_) = answer["outputs"]["translations"][0]
    assert all(f" {term} " in f" {best} " for term in terms)
    assert predict(client, with_terms())[0] == 200


def test_terms_and_prefixes_count_as_what_they_are(model):
    """A term as many tokens as it has alone, each; a prefix one a number."""
    count = model.version.admission.tokens
    text = [b"a b c", b"a"]
    assert count({"text": text}) == [4, 2]
    assert count({"text": text, "terms": [b"a\tb c", b""]}) == [4 + 2 + 3, 2]
    assert count({"text": text, "prefix_ids": [b"5 6 7", b""]}) == [4 + 3, 2]
    assert count({"text": []}) == []


def test_what_a_source_vocabulary_does_not_know_counts_by_its_letters(model, monkeypatch):
    """It takes any number of unknown letters for one token; the target vocabulary may know them."""
    count = model.version.admission.tokens
    known = count({"source": [b"a"], "target": [b"b" * 99]})
    monkeypatch.setattr(type(model.version.admission), "_knows_all", False)
    monkeypatch.setattr(model.version.signatures, "count", lambda texts: [2] * len(texts))
    assert count({"source": [b"a"], "target": [b"b" * 99]}) == [2 + 99]
    assert count({"text": [b"a"], "terms": [b"bbb\tb"]}) == [2 + 3 + 2]
    assert known[0] > 2


@pytest.fixture
def endless(tmp_path):
    """A version with a signature whose search never ends."""

    def forever(text):
        return {"steps": tf.while_loop(lambda i: i >= 0, lambda i: tf.math.floormod(i + 1, 9), [tf.size(text)])[0]}

    text = tf.TensorSpec([None], tf.string, name="text")
    module = tf.Module()
    module.functions = {
        "endless": tf.function(forever, input_signature=[text]),
        "upper": tf.function(lambda text: {"upper": tf.strings.upper(text)}, input_signature=[text]),
    }
    tf.saved_model.save(module, str(tmp_path / "1"), signatures=module.functions)
    version = Version(tmp_path / "1", 1, Limits(max_batch_tokens=32), lambda _: None)
    yield version
    version.close()


@contextlib.contextmanager
def running(version: Version, text: bytes):
    """A call of the endless signature, on a thread of its own, which ends once nobody waits for it."""
    over, ended = Waiting(), []

    def run() -> None:
        with pytest.raises(Refused, match="nobody waits"):
            version.run("endless", {"text": [text]}, over)
        ended.append(True)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    yield over
    wait_for(lambda: over.reason == "send fewer sentences")  # its batch runs
    over.set()
    thread.join(SECONDS)
    assert ended


LONG = b"a" * 500
"""More than the thread of small requests takes."""


def test_a_batch_ends_between_two_steps_once_nobody_waits(endless):
    """It would otherwise hold its thread for ever."""
    for _ in range(2):
        with running(endless, LONG):
            pass
    assert endless.run("upper", {"text": [b"b" * 500]}, Waiting())["upper"].tolist() == [b"B" * 500]


def test_a_small_request_is_served_beside_a_large_batch(endless):
    with running(endless, LONG) as over:
        wait_for(lambda: over.reason == "send fewer sentences")
        assert endless.run("upper", {"text": [b"b"]}, Waiting())["upper"].tolist() == [b"B"]


def test_a_request_for_a_cold_signature_waits_while_others_are_served(endless):
    endless.cold.add("endless")
    with running(endless, b"a") as over:
        wait_for(lambda: "still prepares the signature endless" in over.reason)
        assert endless.run("upper", {"text": [b"b"]}, Waiting())["upper"].tolist() == [b"B"]
        endless.warm_up(["endless"], gives_way=True)  # it has no requests to warm up with


def test_many_bytes_are_counted_in_chunks(model, monkeypatch):
    """Each text is counted once, and in its order."""
    texts = [b"a b", b"", *(b"a " * n for n in range(30)), b"c"]
    expected = model.version.signatures.count(texts)
    chunks = []
    call = model.version.signatures.call
    monkeypatch.setattr("tf_transformer.serving.signatures.CHUNK", 100)
    monkeypatch.setattr(
        model.version.signatures, "call", lambda name, rows: chunks.append(len(rows)) or call(name, rows)
    )
    assert model.version.signatures.count(texts) == expected
    assert sum(chunks) == len(texts) and len(chunks) > 5
    assert model.version.signatures.count([]) == []
