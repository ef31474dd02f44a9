"""Which terms a translation must contain."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tf_transformer.errors import InputError
from tf_transformer.terminology import Glossary, terms_of_line

GLOSSARY = Glossary(
    {
        "machine": "Maschine",
        "machine learning": "maschinelles Lernen",
        "US": "USA",
        "us": "uns",
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
    ],
)
def test_terms_are_found_as_whole_words(text: str, terms: list[str]) -> None:
    assert GLOSSARY(text) == (text, terms)


@given(st.text(min_size=1), st.text(min_size=1))
def test_a_term_alone_is_found(term: str, translation: str) -> None:
    assert Glossary({term: translation})(term) == (term, [translation])


def test_a_glossary_file(tmp_path: Path) -> None:
    (tmp_path / "terms.tsv").write_text("dog\tHund\n\n cat \t Katze\ndog\tHund\n", "utf-8")
    assert Glossary.read(tmp_path / "terms.tsv")("A dog , a cat .")[1] == ["Hund", "Katze"]
    (tmp_path / "empty.tsv").write_text("")
    assert Glossary.read(tmp_path / "empty.tsv")("A dog")[1] == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("dog Hund\n", r"terms.tsv, line 1: write a term, a tab and its translation. Received: 'dog Hund'"),
        ("a\tb\ndog\t\n", r"terms.tsv, line 2: write a term"),
        ("\tHund\n", r"line 1: write a term"),
        ("a\tb\tc\n", r"line 1: write a term"),
        ("a\tb\na\tc\n", r"line 2: 'a' has two translations, 'b' and 'c': keep one"),
    ],
)
def test_a_glossary_that_is_wrong(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "terms.tsv").write_text(content, "utf-8")
    with pytest.raises(InputError, match=message):
        Glossary.read(tmp_path / "terms.tsv")
    with pytest.raises(InputError, match="cannot read"):
        Glossary.read(tmp_path / "nothing.tsv")


def test_terms_behind_a_line() -> None:
    assert terms_of_line("A dog\tHund\tder Hund") == ("A dog", ["Hund", "der Hund"])
    assert terms_of_line("A dog") == ("A dog", [])
    with pytest.raises(InputError, match=r"a term is empty: .* Received: 'A dog\\t'"):
        terms_of_line("A dog\t")
