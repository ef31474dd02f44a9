"""Which terms a translation must contain."""

import re
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tf_transformer.errors import InputError
from tf_transformer.text.glossary import Glossary, terms_of_line

GLOSSARY = Glossary(
    {
        "machine": "Maschine",
        "machine learning": "maschinelles Lernen",
        "us": "uns",
        "US": "USA",
        "C++": "C++",
        "機械": "Maschine",
        "ö": "O",
    }
)


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("Machine learning beats a machine , machine !", ["maschinelles Lernen", "Maschine"]),
        ("machines and submachine", []),
        ("The US let us go", ["USA", "uns"]),
        ("Us", ["uns"]),
        ("write C++.", ["C++"]),
        ("これは機械です", ["Maschine"]),
        ("Ö", ["O"]),
        ("", []),
        ("a machine learning machine learning", ["maschinelles Lernen"]),
        ("deep machine\tlearning", ["Maschine"]),
    ],
)
def test_terms_are_found_as_whole_words(text: str, terms: list[str]) -> None:
    assert GLOSSARY(text) == (text, terms)


@given(st.text(min_size=1), st.text(min_size=1))
def test_a_term_alone_is_found(term: str, translation: str) -> None:
    assert Glossary({term: translation})(term) == (term, [translation])


@pytest.mark.parametrize(
    ("case", "terms"),
    [("smart", ["USA", "uns"]), ("exact", ["USA", "uns"]), ("ignore", ["USA"])],
)
def test_case_by_choice(case: str, terms: list[str]) -> None:
    both = {"US": "USA", "us": "uns"} if case != "ignore" else {"US": "USA"}
    assert Glossary(both, case)("US us")[1] == terms
    assert Glossary({"us": "uns"}, case)("Us")[1] == ([] if case == "exact" else ["uns"])
    assert Glossary({"Us": "uns"}, case)("us")[1] == (["uns"] if case == "ignore" else [])
    assert Glossary({"ΟΔΟΣ": "Straße"}, case)("ΟΔΟΣ")[1] == ["Straße"]


@given(st.text(min_size=1), st.sampled_from(["NFC", "NFD"]), st.sampled_from(["NFC", "NFD"]))
@example("caf\u00e9", "NFD", "NFC")
@example("\ud55c\uad6d", "NFC", "NFD")
def test_composed_and_decomposed_text_are_alike(term: str, of_term: str, of_text: str) -> None:
    text = unicodedata.normalize(of_text, term)  # type: ignore[arg-type]
    assert Glossary({unicodedata.normalize(of_term, term): "x"})(text) == (text, ["x"])  # type: ignore[arg-type]


def test_terms_that_a_case_makes_one_are_refused() -> None:
    with pytest.raises(InputError, match=r"line 2: 'us' has two translations, 'USA' and 'uns': keep one"):
        Glossary.of_lines(["US\tUSA", "us\tuns"], "terms.tsv", "ignore")


@given(st.permutations([("a b", "1"), ("b c d", "2"), ("b c", "3"), ("B c", "4"), ("d", "5")]))
def test_of_terms_that_overlap_the_first_counts_then_the_longest_then_the_one_with_a_capital(
    terms: list[tuple[str, str]],
) -> None:
    glossary = Glossary(dict(terms))
    assert glossary("a b c d")[1] == ["1", "5"]
    assert glossary("x b c d")[1] == ["2"]
    assert glossary("B c , b c , B C")[1] == ["4", "3"]


@pytest.mark.parametrize(
    ("term", "text", "is_found"),
    [
        ("\u0930\u093e\u092e", "\u0930\u093e\u092e\u093e\u092f\u0923", False),  # ram in ramayan
        ("\u0e41\u0e21\u0e27", "\u0e1c\u0e21\u0e23\u0e31\u0e01\u0e41\u0e21\u0e27\u0e21\u0e32\u0e01", True),
        ("\U00020bb7\u91ce", "\u3053\u306e\U00020bb7\u91ce\u5bb6", True),
        ("Donau", "Do\u00adnau", True),
        ("\u03bf\u03b4\u03bf\u03c2", "\u039f\u0394\u039f\u03a3", True),  # a final sigma
        ("don", "don't", False),
    ],
)
def test_words_are_those_of_each_script(term: str, text: str, is_found: bool) -> None:
    assert Glossary({term: "x"})(text)[1] == ["x"] * is_found


def test_terms_of_any_lengths_may_be_many() -> None:
    """If each length were tried at each place, this would take minutes."""
    glossary = Glossary({" ".join(["abc"] * length) + f" {length}": str(length) for length in range(1, 1_000)})
    assert glossary("xyz " * 20_000 + "abc abc 2")[1] == ["2"]


def test_a_glossary_may_be_large() -> None:
    """The time for a line is that of the line: with 30,000 terms as with one."""
    glossary = Glossary({f"word {number}": str(number) for number in range(30_000)})
    assert glossary("word 7 , " * 2_000 + "word 29999")[1] == ["7", "29999"]


def test_a_glossary_of_lines(caplog: pytest.LogCaptureFixture) -> None:
    lines = ["dog\tHund", "", " cat \t Katze", "dog\tHund"]
    assert Glossary.of_lines(lines, "terms.tsv")("A dog , a cat .")[1] == ["Hund", "Katze"]
    assert not caplog.records
    for nothing in ([], ["", " ", "\t\t"]):
        assert Glossary.of_lines(nothing, "empty.tsv")("A dog")[1] == []
        assert caplog.records.pop().message == "empty.tsv has no terms: nothing is demanded"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("dog Hund\n", r"terms.tsv, line 1: write a term, a tab and its translation. Received: 'dog Hund'"),
        ("a\tb\ndog\t\n", r"terms.tsv, line 2: write a term"),
        ("\tHund\n", r"line 1: write a term"),
        ("a\tb\tc\n", r"line 1: write a term"),
        ("a\tb\t\n", r"line 1: write a term, .* Received: 'a\\tb\\t'"),
        ("a\t\t\tb\n", r"line 1: write a term"),
        ("a\tb\na\tc\n", r"line 2: 'a' has two translations, 'b' and 'c': keep one"),
    ],
)
def test_a_glossary_that_is_wrong(content: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Glossary.of_lines(content.splitlines(), "terms.tsv")


def test_terms_behind_a_line() -> None:
    assert terms_of_line("A dog\tHund\tder Hund") == ("A dog", ["Hund", "der Hund"])
    assert terms_of_line("A dog") == ("A dog", [])
    for line in ("A dog\t", "A dog\tHund\t\t", "A dog\t \tHund", "\t"):
        with pytest.raises(InputError, match=rf"a term is empty: .* Received: {re.escape(repr(line))}$"):
            terms_of_line(line)
