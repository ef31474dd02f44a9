import pytest
import tensorflow as tf

from tf_transformer.errors import InputError
from tf_transformer.text.batching import MIN_LENGTH, translate_lines
from tf_transformer.translation.results import failures_told


def lengths(lines):
    return [MIN_LENGTH * len(line.split()) for line in lines]


def test_lines_keep_their_order_and_number():
    batches = []

    def shout(sentences, numbers):
        batches.append(sentences)
        return [sentence.upper() + "!" for sentence in sentences]

    lines = ["word " * (i * 7 % 11) + f"{i}" for i in range(101)]
    found = translate_lines(shout, iter(lines), count=lengths, batch_tokens=29 * MIN_LENGTH, window=32)
    assert list(found) == [f"{line.upper()}!" for line in lines]
    assert max(len(batch) * max(lengths(batch)) for batch in batches) <= 29 * MIN_LENGTH
    assert sum(map(len, batches)) == 101
    assert len(batches) < 40


def test_a_line_beyond_the_tokens_of_a_batch_goes_alone():
    batches = []

    def keep(sentences, numbers):
        batches.append(sentences)
        return sentences

    lines = ["a", "b c d e f", "g"]
    assert list(translate_lines(keep, lines, count=lengths, batch_tokens=3 * MIN_LENGTH)) == lines
    assert batches == [["a", "g"], ["b c d e f"]]


def test_short_lines_count_for_what_may_be_written():
    batches = []

    def keep(sentences, numbers):
        batches.append(len(sentences))
        return sentences

    list(
        translate_lines(keep, map(str, range(100)), count=lambda lines: [1] * len(lines), batch_tokens=10 * MIN_LENGTH)
    )
    assert batches == [10] * 10


def test_lines_are_read_no_further_than_the_window():
    read = []

    def lines():
        for i in range(1000):
            read.append(i)
            yield str(i)

    translations = translate_lines(lambda sentences, numbers: sentences, lines(), count=lengths, window=16)
    assert next(translations) == "0"
    assert len(read) == 16


def test_what_has_arrived_is_a_batch():
    batches, left = [], iter([True, False, True, True, False, False])

    def keep(sentences, numbers):
        batches.append(sentences)
        return sentences

    lines = list("abcdef")
    assert list(translate_lines(keep, lines, count=lengths, has_more=lambda: next(left))) == lines
    assert batches == [["a", "b"], ["c", "d", "e"], ["f"]]


def test_the_numbers_are_those_of_the_lines():
    def numbered(sentences, numbers):
        return [f"{number}: {sentence}" for sentence, number in zip(sentences, numbers, strict=True)]

    lines = ["word " * (i * 7 % 11) + f"{i}" for i in range(1, 102)]
    found = translate_lines(numbered, lines, count=lengths, batch_tokens=5 * MIN_LENGTH, window=32)
    assert list(found) == [f"{number}: {line}" for number, line in enumerate(lines, 1)]


@pytest.mark.parametrize("error", [InputError("too odd"), tf.errors.ResourceExhaustedError(None, None, "too odd")])
def test_a_failure_names_its_line_and_loses_no_other(error):
    @failures_told()
    def careful(sentences, numbers):
        if "odd" in sentences:
            raise error
        return sentences

    lines = [str(i) for i in range(40)]
    lines[29] = "odd"
    found = translate_lines(careful, lines, count=lengths, window=32)
    assert [next(found) for _ in range(29)] == lines[:29]
    with pytest.raises(InputError, match="^line 30: too odd$"):
        next(found)


def test_a_batch_that_is_too_large_is_halved():
    @failures_told()
    def small(sentences, numbers):
        if len(sentences) > 3:
            raise tf.errors.ResourceExhaustedError(None, None, "out of memory")
        return sentences

    lines = [str(i) for i in range(17)]
    assert list(translate_lines(small, lines, count=lengths)) == lines


def test_what_is_wrong_in_the_program_comes_out_as_it_is():
    def wrong(sentences, numbers):
        raise KeyError("x")

    with pytest.raises(KeyError):
        list(translate_lines(wrong, ["a"], count=lengths))
