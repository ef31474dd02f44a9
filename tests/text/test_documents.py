"""Text in its sentences: what goes in comes out, whatever the text."""

import re
import sys
import tracemalloc

import langcodes
import pytest
import sentencex  # noqa: F401
from hypothesis import example, given
from hypothesis import strategies as st

from tf_transformer.commands.main import main
from tf_transformer.data.corpora import copy_task
from tf_transformer.text.documents import TWO_LETTERS, Cutter, halves, joined, parts_of, segmenter, translated_lines
from tf_transformer.text.markup import markup_spans, stripped

TEXT = st.text(st.sampled_from("ab .!?,;:\t\u3000\u00a0。，\"'()\r漢ж") | st.characters(codec="utf-8"), max_size=60)
always = lambda text: True  # noqa: E731
never = lambda text: False  # noqa: E731


def marks_of(text):
    return [text[start:end] for start, end in markup_spans(text)]


@given(lines=st.lists(TEXT, max_size=6), language=st.sampled_from(["en", "de", "zh", "xx", "deu_Latn", None]))
def test_a_translator_that_changes_nothing_changes_nothing(lines, language):
    segment = segmenter(language)
    lines = [line.replace("\n", "") + "\n" for line in lines]
    for ahead in (True, False):
        seen = []

        def same(sentences, ahead=ahead, seen=seen):
            for sentence in list(sentences) if ahead else sentences:
                assert sentence == sentence.strip() != ""
                seen.append(sentence)
                yield sentence

        found = list(translated_lines(lines, same, Cutter(segment, always, never)))
        assert found == lines
        assert re.sub(r"\s", "", "".join(seen)) == re.sub(r"\s", "", "".join(lines))  # nothing is lost


@given(text=TEXT, most=st.integers(1, 9))
@example(text="a e\u0301\u0302\u0303 b", most=2)
def test_what_is_too_long_is_cut_and_not_lost(text, most):
    line = parts_of(text, segmenter("en"), lambda part: len(part) <= most)
    parts = [sentence.text for sentence in line.sentences]
    assert all(0 < len(part) <= most or halves(part) is None for part in parts)  # one sign is not cut
    assert joined(line, parts) == text


@pytest.mark.parametrize("language", ["de", "deu", "ger", "deu_Latn", "de-AT", "de_AT", "DE", "gsw_Latn"])
def test_a_language_may_be_named_in_any_way(language):
    text = "Am 3. Mai kommt Dr. Maier bzw. Hr. Schmidt. "
    assert [*segmenter(language)(text + "Ja.")] == [text, "Ja."]
    assert len([*segmenter("en")(text)]) > 1


def test_codes_of_three_letters_are_those_of_the_standard():
    for three, two in TWO_LETTERS.items():
        assert langcodes.standardize_tag(three, macro=True) == two


@pytest.mark.parametrize("language", ["first", "one thing", "", "\ud83d", ">>de<<"])
def test_text_of_an_unknown_language_is_cut_as_english_is(language):
    text = "Dr. Smith is here. He waits."
    assert [*segmenter(language)(text)] == [*segmenter("en")(text)] == ["Dr. Smith is here. ", "He waits."]


@pytest.mark.parametrize("text", ["Plan A\u00a0.", "A\u2003. B", "Siehe Teil B\u202f. Ende."])
def test_text_that_the_splitter_panics_at_is_one_sentence(text):
    """A panic of Rust is no Exception."""
    assert [*segmenter("en")(text)] == [text]
    assert [sentence.text for sentence in parts_of(f" {text}\n", segmenter("en"), always).sentences] == [text]


def test_a_code_at_the_front_is_that_of_all_sentences_up_to_the_next():
    text = "  >>de<< One. Two.\nThree >>fr<< four.\n>>fr<<Five. >>de<< Six.\n>>xx<< Seven.\n>>de<< \nEight"
    seen = []

    def shout(sentences):
        for sentence in sentences:
            seen.append(sentence)
            yield sentence.partition("<< ")[2].upper()

    cut = Cutter(segmenter("en"), always, lambda code: code in (">>de<<", ">>fr<<"))
    found = list(translated_lines(text.splitlines(keepends=True), shout, cut))
    assert seen == [
        *(">>de<< One.", ">>de<< Two.", ">>de<< Three >>fr<< four."),
        *(">>fr<< Five.", ">>fr<< >>de<< Six.", ">>fr<< >>xx<< Seven.", ">>de<< Eight"),
    ]
    assert found == ["  ONE. TWO.\n", "THREE >>FR<< FOUR.\n", "FIVE. >>DE<< SIX.\n", ">>XX<< SEVEN.\n", " \n", "EIGHT"]


def test_a_code_counts_where_a_sentence_must_fit():
    cut = Cutter(lambda line: [line], lambda text: len(text) <= 12, always)
    assert [part.source for part in cut(">>de<< one two three").sentences] == [
        ">>de<< one",
        ">>de<< two",
        ">>de<< three",
    ]


SPACES = st.text(st.sampled_from("AbZ.?! \t\u00a0\u2003\u2009\u202f\u3000\u1680"), max_size=12)


@given(text=SPACES, language=st.sampled_from(["en", "fr", "zh"]))
def test_the_splitter_survives_all_spaces(text, language):
    assert "".join(segmenter(language)(text)) == text


def test_a_long_line_is_cut_in_linear_time():
    """This once took seconds."""
    assert "".join(segmenter("en")("`" * 100_000)) == "`" * 100_000
    assert segmenter("en")("One is here. " * 1_000) == ["One is here. "] * 1_000


def test_a_long_word_is_cut_in_little_memory():
    tracemalloc.start()
    assert halves("a" * 1_000_000) == ("a" * 500_000,) * 2
    assert tracemalloc.get_traced_memory()[1] < 5e6  # the halves alone have 1 MB
    tracemalloc.stop()


def test_other_ends_of_the_process_are_not_caught(monkeypatch):
    def interrupted(language, text):
        raise KeyboardInterrupt

    monkeypatch.setattr(sys.modules["sentencex"], "segment", interrupted)
    with pytest.raises(KeyboardInterrupt):
        segmenter("en")("a")


@pytest.mark.parametrize(
    "text",
    ["a, " * 50_000, "word " * 1_600 + " " * 20_000, " " * 50_000 + "a", "<b>x</b> " * 5_000, "x" * 30_000],
    ids=["clauses", "spaces at the end", "spaces before", "tags", "no space"],
)
def test_long_lines_are_cut_in_linear_time(text):
    """If they were not, this would take minutes."""
    line = parts_of(text, lambda all: [all], lambda part: len(part) <= 200, markup_spans)
    assert joined(line, [sentence.text for sentence in line.sentences]) == text
    assert all(len(sentence.text) <= 200 for sentence in line.sentences)


def test_sentences_lines_and_white_space():
    text = "  Dr. Smith came.  He saw it!\n\n\t- One. Two\r\n"
    lines = text.splitlines(keepends=True)
    found = "".join(
        translated_lines(lines, lambda all: (one.upper() for one in all), Cutter(segmenter("en"), always, never))
    )
    assert found == text.upper()
    line = parts_of("One, two and three, four five", segmenter("en"), lambda part: len(part) < 20)
    assert [sentence.text for sentence in line.sentences] == ["One, two and three,", "four five"]  # where a clause ends


def test_markup_is_not_cut():
    line = 'See <a title="A. B. C"> this. Then <b>that. And</b> https://a.b/c.d e. '
    cut = lambda text: re.findall(r".+?(?:\. |$)", text)  # noqa: E731
    found = parts_of(line, cut, always, markup_spans)
    assert [sentence.text for sentence in found.sentences] == [
        'See <a title="A. B. C"> this.',
        "Then <b>that.",
        "And</b> https://a.b/c.d e.",
    ]


@given(
    parts=st.lists(
        st.sampled_from(['<a b="c, d">', "{x: y}", "https://a.b/c,d:e", "word, ", "x", " ", ". "]), max_size=9
    ),
    most=st.integers(1, 9),
)
def test_what_is_too_long_is_not_cut_within_markup(parts, most):
    text = "".join(parts)
    line = parts_of(text, segmenter("en"), lambda part: len(part) <= most, markup_spans)
    assert joined(line, [sentence.text for sentence in line.sentences]) == text
    kept = [mark for sentence in line.sentences for mark in marks_of(sentence.text)]
    assert kept == marks_of(text)
    assert all(len(sentence.text) <= most or markup_spans(sentence.text) for sentence in line.sentences)


@pytest.mark.parametrize(
    "sign",
    [
        "e\u0301",
        "\u0e01\u0e33\u0e49",
        "\U0001f469\u200d\U0001f680",
        "\U0001f44d\U0001f3fd",
        "\U0001f1e9\U0001f1ea",
        "\u2764\ufe0f",
    ],
    ids=ascii,
)
def test_what_is_too_long_is_not_cut_within_a_sign(sign):
    line = parts_of(sign * 23, lambda all: [all], lambda part: len(part) <= 4 * len(sign), markup_spans)
    assert len(line.sentences) > 5
    assert all(sentence.text == sign * (len(sentence.text) // len(sign)) for sentence in line.sentences)


def test_a_space_is_added_where_only_the_translation_needs_one():
    line = parts_of("你好。再见！", segmenter("zh"), always)
    assert [sentence.text for sentence in line.sentences] == ["你好。", "再见！"]
    assert joined(line, ["Hello.", "Goodbye!"]) == "Hello. Goodbye!"
    assert joined(line, ["你好。", "再见！"]) == "你好。再见！"


def test_a_missing_package_is_named(monkeypatch, copy_run, capsys):
    monkeypatch.setitem(__import__("sys").modules, "sentencex", None)
    assert main(["translate", "--model", str(copy_run), "--document"]) == 2
    assert "pip install 'tf-transformer[documents]'" in capsys.readouterr().err


@pytest.mark.long_but_first
@pytest.mark.parametrize("kind", ["run", "export", "litert"])
def test_the_command_keeps_lines_and_cuts_nothing_off(kind, copy_run, copy_export, copy_litert, tmp_path, capsys):
    model = {"run": copy_run, "export": copy_export}.get(kind) or copy_litert("float32")
    first, second = (source for source, _ in copy_task.pairs("test")[:2])
    text = f"  {first}\r\n\n\t{second}"  # no line feed at the end
    (tmp_path / "in.txt").write_text(text, newline="")
    command = ["translate", "--model", str(model), "--document", "--input", str(tmp_path / "in.txt")]
    assert main([*command, "--output", str(tmp_path / "out.txt")]) == 0
    assert (tmp_path / "out.txt").read_bytes().decode() == text  # it copies
    if kind == "run":
        assert main([*command, "--set", "decoding.max_source_length=8"]) == 0
        said = capsys.readouterr()
        assert "was cut" not in said.err
        assert len(said.out.split()) >= len(text.split())
        assert main([*command, "--n-best", "2"]) == 2
        assert "--document writes text, not lists" in capsys.readouterr().err


@pytest.mark.long
@pytest.mark.parametrize("kind", ["run", "export", "litert"])
def test_the_command_keeps_markup(kind, copy_run, copy_export, copy_litert, tmp_path, capsys):
    model = {"run": copy_run, "export": copy_export}.get(kind) or copy_litert("float32")
    first, second = (source for source, _ in copy_task.pairs("test")[:2])
    words = first.split()
    marked = f"<p class='x'>{words[0]} <b>{' '.join(words[1:3])}</b> {{name}} {' '.join(words[3:])}</p>"
    (tmp_path / "in.txt").write_text(f"{marked}\n\n<br/>\n{second}\n")
    command = ["translate", "--model", str(model), "--keep-markup", "--input", str(tmp_path / "in.txt")]
    assert main(command) == 0
    first, *others = capsys.readouterr().out.splitlines()
    assert others == ["", "<br/>", second]  # it copies
    assert sorted(marks_of(first)) == sorted(marks_of(marked))
    assert stripped(first).text.split() == words
    if kind == "run":
        assert main([*command, "--document"]) == 0
        assert capsys.readouterr().out.splitlines() == [first, *others]
        assert main([*command, "--mbr", "chrf"]) == 2
        assert "--keep-markup is for the best translations" in capsys.readouterr().err
        assert main([*command, "--constraints"]) == 2
        assert "--keep-markup takes no terms behind its lines" in capsys.readouterr().err
