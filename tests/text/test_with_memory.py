"""Tests of translation memories: what is found, with tags and without."""

import pytest

from tf_transformer.text.with_memory import Memory, WithMemory

MEMORY = Memory(
    [
        ("Open  it.", "old"),
        ("Open it.", "Öffnen."),
        ("Click <g5>here</g5> now<x6/>", "Jetzt<x6/> <g5>hier</g5> klicken"),
        ("<b>a</b> <b>c</b>", "<b>d</b> <b>e</b>"),
        ("<g1>a</g1> b", "a b"),
        ("<x1/>p<x2/>q", "<x2/>r<x1/>s"),
        ("plain", "<x1/>schlicht"),
    ]
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (" Open it. ", "Öffnen."),
        ("open it.", None),
        ("Click <g1>here</g1> now<g2/>", "Jetzt<g2/> <g1>hier</g1> klicken"),
        ('Click <a href="x">here</a> now<br/>', 'Jetzt<br/> <a href="x">hier</a> klicken'),
        ("Click here now", "Jetzt hier klicken"),
        ("Click <g1/>here<g2/> now<g3/>", "Jetzt<g3/> <g1/>hier<g2/> klicken"),
        ("Click<g1> here</g1> now<g2/>", None),
        ("Click <g1>here</g1> now", None),
        ("<b>a</b> <b>c</b>", "<b>d</b> <b>e</b>"),
        ("<i>a</i> <u>c</u>", "<i>d</i> <u>e</u>"),
        ("<g1>a</g1> b", None),
        ("a b", "a b"),
        ("<g1>p</g1>q", None),
        ("<g1/>p<g2/>q", "<g2/>r<g1/>s"),
        ("plain", "schlicht"),
    ],
)
def test_tags_correspond_one_to_one(text: str, expected: str | None) -> None:
    assert MEMORY.get(text) == expected


@pytest.mark.parametrize(
    ("text", "is_other"),
    [
        ("<g1>a</g1> b", True),
        ("<g1>Open</g1> it.", True),
        ("Click <g1>here</g1> now", True),
        ("Open it.", False),
        ("Click <g1>here</g1> now<g2/>", False),
        ("<g1>x</g1>", False),
    ],
)
def test_what_is_known_with_other_tags(text: str, is_other: bool) -> None:
    assert MEMORY.has_other_tags(text) == is_other


def test_only_what_is_unknown_is_translated() -> None:
    asked: list[tuple[list[str], object]] = []

    def translate(sentences: list[str], numbers: object = None) -> list[str]:
        asked.append((sentences, numbers))
        return [sentence.upper() for sentence in sentences]

    known = WithMemory(translate, MEMORY)
    assert known.translate_strings(["x", "Open it.", "y"], [3, 5, 7]) == ["X", "Öffnen.", "Y"]
    assert known.translate_strings(["Open it."]) == ["Öffnen."]
    assert asked == [(["x", "y"], [3, 7])]
