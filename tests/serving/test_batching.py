"""Whose turn it is: without a model, by batches that are held back."""

import threading

import numpy as np
import pytest

from tests.serving.conftest import SECONDS
from tf_transformer.serving.batching import Batcher
from tf_transformer.serving.jobs import Job, Waiting
from tf_transformer.serving.limits import Refused


class Echo:
    """A model that gives back what it gets; its batches are held back by a gate."""

    def __init__(self, gate):
        self._gate = gate
        self.error: Exception | None = None

    def __call__(self, signature, sentences, cancellation):
        texts = [b" ".join(sentence).decode() for sentence in sentences]
        self._gate.wait(texts)
        if self.error:
            error, self.error = self.error, None
            raise error
        if signature == "wide":
            width = max(map(len, texts), default=0)
            rows = [list(text.ljust(width, ".")) for text in texts]
            return {"echo": np.array(rows, object).reshape(len(texts), width)}
        return {"echo": np.array(texts, object)}


@pytest.fixture
def echo(gate):
    return Echo(gate)


@pytest.fixture
def counted():
    return []


@pytest.fixture
def batcher(echo, counted):
    batcher = Batcher(echo, {"translate"}, max_tokens=100, wait=0.0, count=counted.append)
    yield batcher
    batcher.close()


def job(*lengths: int, signature="translate", mark="") -> Job:
    texts = [(f"{mark}{length}".encode(),) for length in lengths]
    return Job(signature, texts, lengths, Waiting())


def begin(batcher, gate) -> Job:
    """A job that is being translated: what comes now waits."""
    first = job(1, signature="first")
    batcher.submit(first)
    assert gate.begun() == ["1"]
    return first


def test_a_batch_is_as_large_as_its_tokens(batcher, gate, counted):
    """Rows times the longest, a short one counted as 16; what is longer than a batch goes alone."""
    mixed = job(3, 50, 40, 300, 3, 20, 3, 3, 49, 3)
    batcher.submit(mixed)
    gate.go_on(1000)
    assert mixed.result()["echo"].tolist() == ["3", "50", "40", "300", "3", "20", "3", "3", "49", "3"]
    found = [gate.begun() for _ in range(gate.unseen)]
    assert found == [["300"], ["49", "50"], ["20", "40"], ["3", "3", "3", "3", "3"]]
    assert counted == [1, 2, 2, 5]


def test_one_word_waits_for_one_batch_of_a_long_request(batcher, gate):
    long, word = job(*[100] * 9, mark="l"), job(1, mark="w")
    batcher.submit(long)
    assert gate.begun() == ["l100"]
    batcher.submit(word)
    gate.go_on(2)
    assert gate.begun() == ["w1"]
    assert word.result()["echo"].tolist() == ["w1"]
    gate.go_on(8)
    assert long.result()["echo"].tolist() == ["l100"] * 9


def test_long_requests_take_turns(batcher, gate):
    begin(batcher, gate)
    jobs = [job(*[100] * 3, mark=mark) for mark in "abc"]
    for each in jobs:
        batcher.submit(each)
    gate.go_on(10)
    for each in jobs:
        each.result()
    assert [gate.begun() for _ in range(9)] == [[f"{mark}100"] for mark in "abcabcabc"]


def test_the_room_of_a_batch_is_given_to_those_behind(batcher, gate):
    begin(batcher, gate)
    jobs = [
        job(20, mark="a"),
        job(20, 18, mark="b", signature="wide"),  # has its batches to itself: its width would be that of others
        job(70, 25, 17, mark="c"),  # of which the first would make the batch too large
        job(22, 1, mark="d"),
    ]
    for each in jobs:
        batcher.submit(each)
    gate.go_on(10)
    answers = [each.result()["echo"] for each in jobs]
    assert answers[1].shape == (2, 3)
    assert [answers[i].tolist() for i in (0, 2, 3)] == [["a20"], ["c70", "c25", "c17"], ["d22", "d1"]]
    batches = [gate.begun() for _ in range(gate.unseen)]
    assert batches == [["a20", "c17", "c25", "d22"], ["b18", "b20"], ["c70"], ["d1"]]


def test_a_word_does_not_wait_for_what_is_much_longer(echo, gate):
    batcher = Batcher(echo, {"translate"}, max_tokens=1000, wait=0.0, count=lambda _: None)
    begin(batcher, gate)
    word, others = job(1, mark="w"), job(65, 64, mark="o")
    batcher.submit(word)
    batcher.submit(others)
    gate.go_on(3)
    others.result()
    assert [gate.begun(), gate.begun()] == [["w1", "o64"], ["o65"]]
    batcher.close()


def test_what_is_given_up_is_dropped_and_its_thread_is_free(batcher, gate):
    first = begin(batcher, gate)
    gone, waits = job(*[100] * 50, mark="g"), job(1, mark="w")
    batcher.submit(gone)
    batcher.submit(waits)
    gone.over.set()
    with pytest.raises(Refused, match="nobody waits"):
        gone.result()  # while the batch of another is not yet done
    assert not first.over.is_set()
    gate.go_on(2)
    assert gate.begun() == ["w1"]
    assert waits.result()["echo"].tolist() == ["w1"]
    assert not gate.unseen


def test_a_request_that_is_given_up_meanwhile_ends_with_its_batch(batcher, gate, counted):
    long = job(*[100] * 50)
    batcher.submit(long)
    gate.begun()
    long.over.set()
    gate.go_on()
    other = job(1)
    batcher.submit(other)
    assert gate.begun() == ["1"]
    gate.go_on()
    other.result()
    assert counted == [1, 1]


def test_an_error_is_of_those_in_the_batch_alone(batcher, echo, gate, counted):
    begin(batcher, gate)
    failing, along, other = job(90, 20), job(21), job(1, signature="other")
    for each in (failing, along, other):
        batcher.submit(each)
    gate.go_on(2)  # 'first', and the 90
    assert gate.begun() == ["90"]
    assert gate.begun() == ["21", "20"]
    echo.error = KeyError("anything")
    gate.go_on(2)
    for each in (failing, along):
        with pytest.raises(KeyError, match="anything"):
            each.result()
    assert other.result()["echo"].tolist() == ["1"]
    assert gate.unseen == 1  # what was left of the one that failed is not tried
    assert counted == [1, 1, 1]


def test_what_a_model_gives_too_little_of_is_an_error_of_its_batch():
    batcher = Batcher(lambda *_: {"echo": np.array(0)}, {"translate"}, max_tokens=100, wait=0.0, count=lambda _: None)
    for _ in range(2):
        wrong = job(1)
        batcher.submit(wrong)
        with pytest.raises(IndexError):
            wrong.result()
    batcher.close()


def test_widths_are_filled_up_and_have_a_bound(batcher, gate, monkeypatch):
    gate.go_on(1000)
    wide = job(100, 20, 1, signature="wide")
    batcher.submit(wide)
    assert wide.result()["echo"].tolist() == [["1", "0", "0"], ["2", "0", b""], ["1", ".", b""]]
    monkeypatch.setattr("tf_transformer.serving.jobs.MAX_VALUES", 8)
    many = job(100, 99, 1, signature="wide")
    batcher.submit(many)
    with pytest.raises(Refused, match="would have 9 values, but may have 8: send less"):
        many.result()


def test_no_sentence_has_an_answer_too(batcher, gate):
    gate.go_on(1000)
    for signature, shape in (("translate", (0,)), ("wide", (0, 0))):
        empty = job(signature=signature)
        batcher.submit(empty)
        assert empty.result()["echo"].shape == shape


def test_one_that_has_room_waits_for_others_a_while(echo, gate):
    batcher = Batcher(echo, {"translate"}, max_tokens=32, wait=SECONDS, count=lambda _: None)
    word, further = job(1, mark="w"), job(1, mark="f")
    batcher.submit(word)
    assert not gate.unseen
    batcher.submit(further)
    assert gate.begun() == ["w1", "f1"]  # full, and so at once
    gate.go_on(2)
    alone = job(1, signature="other")
    batcher.submit(alone)
    assert gate.begun() == ["1"]  # no other can join it
    batcher.close()


def test_its_thread_ends_and_what_comes_late_is_answered(batcher, gate):
    def threads() -> list[threading.Thread]:
        return [thread for thread in threading.enumerate() if thread.name == "batches" and thread not in before]

    before = set(threading.enumerate())
    first = begin(batcher, gate)
    (thread,) = threads()
    waits = job(1)
    batcher.submit(waits)
    batcher.close()
    gate.go_on(2)
    first.result()
    waits.result()
    thread.join(SECONDS)
    assert threads() == []
    late = job(1)
    gate.go_on()
    batcher.submit(late)
    assert late.result()["echo"].tolist() == ["1"]
    for thread in threads():
        thread.join(SECONDS)
    assert threads() == []
