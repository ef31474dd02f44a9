"""The default normalisation keeps what people see, in every script, and the graph, the library and prepare agree."""

import functools
import json
import os
import re
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest
import sentencepiece
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from tf_transformer.commands.main import main
from tf_transformer.config import TokenizerConfig
from tf_transformer.config.tokenizer import NORMALIZATIONS
from tf_transformer.data.corpora import toy
from tf_transformer.data.prepared.manifest import written
from tf_transformer.errors import InputError
from tf_transformer.tokenizers import Tokenizer, train_tokenizer
from tf_transformer.tokenizers.normalization import INVISIBLE, REMOVED, SPACES, is_blank, name_of, rules_of

SENTENCES = [side for pair in toy.pairs("train")[:500] for side in pair]
SCRIPTS = (
    *("ARABIC", "ARMENIAN", "BENGALI", "CANADIAN SYLLABICS", "CHEROKEE", "CJK", "COPTIC", "CYRILLIC", "DEVANAGARI"),
    *("EMOJI", "ETHIOPIC", "GEORGIAN", "GREEK", "GUJARATI", "GURMUKHI", "HANGUL", "HEBREW", "HIRAGANA", "JAVANESE"),
    *("KANNADA", "KATAKANA", "KHMER", "LAO", "LATIN", "MALAYALAM", "MATHEMATICAL", "MONGOLIAN", "MYANMAR", "ORIYA"),
    *(
        "REGIONAL INDICATOR",
        "SINHALA",
        "SUPERSCRIPT",
        "SYRIAC",
        "TAMIL",
        "TELUGU",
        "THAANA",
        "THAI",
        "TIBETAN",
        "VULGAR",
    ),
)
OTHERS = [
    "\u200c",
    "\u200d",
    "\ufe0f",
    "\u0301",
    "\u0323",
    "\u00ad",
    "\u00a0",
    "\u202f",
    "\u2060",
    " ",
    "a",
    "。",
    "２",
]


@functools.cache
def visible():
    every = map(chr, range(0x21, sys.maxunicode + 1))
    return [one for one in every if unicodedata.category(one)[0] in "LMNPS" and one not in SPACES]


def characters(code_ranges):
    return [chr(code) for first, last in code_ranges for code in range(first, last + 1)]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer(train_tokenizer(SENTENCES, TokenizerConfig(vocab_size=500)))


def there_and_back(tokenizer, text):
    """Through the graph; the library must give the same ids."""
    ids = tokenizer.tokenize([text])
    assert ids[0].numpy().tolist() == tokenizer.encode([text])[0]
    return tokenizer.detokenize(ids.to_tensor())[0].numpy().decode()


def seen(text):
    """Text as the documentation says that it is kept: composed, without what nobody sees, its white space folded."""
    removed = set(characters(REMOVED))
    text = "".join(one for one in text if one not in removed)
    return "" if is_blank(text) else unicodedata.normalize("NFC", " ".join(text.split()))


@pytest.mark.long_but_first
@pytest.mark.parametrize("script", SCRIPTS)
def test_what_is_visible_comes_back_in_every_script(tokenizer, script):
    name = script.replace("EMOJI", "SMILING")
    of_script = [one for one in visible() if unicodedata.name(one, "").startswith(name)]
    assert len(of_script) >= 3

    @settings(max_examples=30)
    @given(st.lists(st.sampled_from(of_script) | st.sampled_from(of_script) | st.sampled_from(OTHERS), max_size=12))
    def check(drawn):
        text = "".join(drawn)
        # Marks that compose with nothing, or only once something between is removed, are canonically equivalent.
        found = there_and_back(tokenizer, text)
        assert unicodedata.normalize("NFC", found) == seen(text)
        assert unicodedata.normalize("NFC", there_and_back(tokenizer, found)) == seen(text)

    check()


@pytest.mark.parametrize(
    "text",
    [
        *(
            "10² m² ½ ™ … ﬁ",
            "H₂O, x² ≠ x₂",
            "好吗？，：“引号”",
            "ＡＢＣ　１２３",
            "می‌خواهم",
            "क्‍ष",
            "한국어",
            "ﷺ",
            "𝒳 ∈ ℝ",
        ),
        *("👩‍👧 🇩🇪 ❤️ 👍🏽", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "« Bonjour ! »", "ⅷ ㎏ ㍿", "ศัพท์", "ខ្មែរ"),
    ],
)
def test_what_nfkc_would_change_stays(tokenizer, text):
    assert there_and_back(tokenizer, text) == seen(text)


def test_every_spelling_of_a_character_becomes_its_composed_one(tokenizer):
    processor = sentencepiece.SentencePieceProcessor(model_proto=tokenizer.model)
    for one in visible():
        composed = unicodedata.normalize("NFC", f"a{one}")
        for spelling in (composed, unicodedata.normalize("NFD", composed)):
            assert processor.normalize(spelling) == f"\u2581{composed}", ascii(one)
    for text in ("e\u0302\u0323", "e\u0323\u0302", "\u1eb9\u0302", "\u00ea\u0323", "\u1ec7"):
        assert there_and_back(tokenizer, text) == "\u1ec7"


def test_what_nobody_sees_changes_nothing(tokenizer):
    plain = tokenizer.encode(["Donau dampf schiff"])
    for hidden in characters(REMOVED)[1:]:  # NUL stays
        assert tokenizer.encode([f"Do{hidden}nau dampf schiff{hidden}"]) == plain, hex(ord(hidden))
    for space in (*SPACES, "\u00a0", "\u2003", "\u202f", "\u3000", "\u2028"):
        assert tokenizer.encode([f"{space}Donau{space}dampf {space}schiff"]) == plain, hex(ord(space))


@pytest.mark.parametrize("normalization", NORMALIZATIONS)
def test_a_line_of_nothing_visible_is_empty(normalization):
    made = Tokenizer(train_tokenizer(SENTENCES, TokenizerConfig(vocab_size=500, normalization=normalization)))
    blank = [*characters(INVISIBLE), "", " \u200d\ufe0f ", "\u2060\u00ad\t"]
    assert made.tokenize(blank).row_lengths().numpy().tolist() == [0] * len(blank)
    assert made.encode(blank) == [[]] * len(blank)
    assert all(map(is_blank, blank))
    assert not any(map(is_blank, ("a", "\u200da", " .", "\u0301", "\ufffd", "½")))
    one = made.tokenize(tf.constant(["a\u200d"]))
    assert one.row_lengths()[0] > 0 and one[0].numpy().tolist() == made.encode(["a\u200d"])[0]


def test_a_tokenizer_says_by_what_rules_it_normalises_and_is_the_same_each_time():
    made = [train_tokenizer(SENTENCES, TokenizerConfig(vocab_size=500, normalization=name)) for name in (None, "nfc")]
    assert made[0] == made[1]
    assert b".tsv" not in made[0] and b"\x0a\x03nfc" in made[0]
    assert len(rules_of("nfc").splitlines()) > 20_000


def test_rules_of_ones_own_are_added_to_those_of_nfc(tmp_path):
    file = tmp_path / "rules.tsv"
    file.write_text("2019\t27\t# a curly apostrophe becomes a straight one\n\n# nothing\nE4\t61 65\nB2\t\nA0\tA0\n")
    made = Tokenizer(train_tokenizer(SENTENCES, TokenizerConfig(vocab_size=500, normalization=str(file))))
    assert there_and_back(made, "l\u2019a a\u0308 ä 2² ½ e\u0301") == "l'a ae ae 2 ½ é"
    assert str(tmp_path).encode() not in made.model and b"rules.tsv (" in made.model
    before = name_of(str(file))
    file.write_text("2019\t60\n")
    assert name_of(str(file)) != before


def test_rules_of_ones_own_are_called_the_same_in_every_process(tmp_path):
    """The order of Python's sets differs from process to process, as the seed of its hashes does."""
    file = tmp_path / "rules.tsv"
    file.write_text("2019\t27\n")
    code = "import sys; from tf_transformer.tokenizers.normalization import name_of; print(name_of(sys.argv[1]))"
    names = {
        subprocess.run(
            [sys.executable, "-c", code, str(file)],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert names == {f"{name_of(str(file))}\n"}


@pytest.mark.long
@pytest.mark.parametrize("command", ["prepare", "train"])
def test_a_file_of_rules_is_not_needed_once_there_is_a_tokenizer(tmp_path, monkeypatch, command):
    """A corpus that was prepared with it is trained on, and a run continues, from other folders too."""
    monkeypatch.chdir(tmp_path)
    file, manifest = Path("rules.tsv"), Path("prepared", "manifest.json")
    file.write_text("2019\t27\n")
    text = ["--data", "toy", "--vocab-size", "400", "--set", "data.max_length=32"]
    rules = ["--set", "tokenizer.normalization=rules.tsv"]
    sizes = {"model.num_layers": 1, "model.d_model": 14, "model.num_heads": 7, "model.dff": 11}
    train = ["train", *(part for name, size in sizes.items() for part in ("--set", f"{name}={size}"))]
    if command == "prepare":
        assert main(["prepare", *text, *rules, "--output", "prepared"]) == 0
        # An earlier version gave the rules another digest in each process.
        old = json.loads(manifest.read_text())
        old["config"]["tokenizer"]["normalization"] = "rules.tsv (0123456789abcdef)"
        manifest.write_bytes(written(old))
        file.unlink()
        train += ["--data", str(tmp_path / "prepared")]
    else:
        train += [*text, *rules]
    assert main([*train, "--run-dir", "run", "--max-steps", "1"]) == 0
    if command == "prepare":
        (tmp_path / "other").mkdir()
        monkeypatch.chdir(tmp_path / "other")
    assert main([*train, "--run-dir", str(tmp_path / "run"), "--max-steps", "2"]) == 0


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("2019\tx\n", r"rules.tsv, line 1: write code points in hexadecimal, .*Received: '2019\\tx'"),
        ("41\t42\n110000\t41\n", r"rules.tsv, line 2: write code points"),
        ("2019 27\n", r"rules.tsv, line 1: write code points"),
        ("2019\t0\n", r"rules.tsv, line 1: write code points"),
        ("D800\t41\n", r"rules.tsv, line 1: write code points"),
        ("\t41\n", r"rules.tsv, line 1: write code points"),
        ("41\t42\n41\t43\n", r"rules.tsv, line 2: .*each rule once"),
        (None, r"cannot read the rules of normalisation .*rules.tsv"),
        (b"\xff\xfe", r"cannot read the rules of normalisation .*rules.tsv"),
    ],
)
def test_what_is_no_file_of_rules_is_named(tmp_path, content, message):
    file = tmp_path / "rules.tsv"
    if content is not None:
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError, match=message):
        train_tokenizer(SENTENCES, TokenizerConfig(vocab_size=500, normalization=str(file)))


def test_an_unknown_normalisation_is_no_file():
    with pytest.raises(InputError, match=r"normalization: unknown value 'nkfc': did you mean"):
        TokenizerConfig(normalization="nkfc")


@pytest.mark.parametrize("normalization", NORMALIZATIONS)
def test_a_term_that_a_normalisation_changes_is_not_written(normalization):
    """The search is then told so; what is kept but for case and composition is written."""
    made = Tokenizer(train_tokenizer(SENTENCES, TokenizerConfig(vocab_size=500, normalization=normalization)))
    keeps = normalization in ("nfc", "identity")
    assert made.vocabulary.keeps_text == keeps
    terms = ["Hund", "Straßen", "5 m²", "½", "好吗？", "", "\u200b", "ﬁne", "der  Rüde "]
    _, written = made.tokens_that_write(tf.constant(terms))
    expected = [True, True, keeps, keeps, keeps, True, False, keeps, True]
    assert written.numpy().tolist() == expected
    for term, is_written in zip(terms, expected, strict=True):
        assert is_written == (not made.vocabulary.is_changed(term) and term != "\u200b")


def test_the_table_of_the_documentation_is_true():
    text = (Path(__file__).parents[2] / "docs" / "data.md").read_text("utf-8")
    header, _, *rows = re.findall(
        r"^\| .* \|$", text.partition("### Normalisation")[2].partition("\n## ")[0], flags=re.M
    )
    names = re.findall(r"`(\w+)`", header)
    made = [
        sentencepiece.SentencePieceProcessor(
            model_proto=train_tokenizer(SENTENCES, TokenizerConfig(vocab_size=500, normalization=name))
        )
        for name in names
    ]
    assert len(rows) > 10 and len(names) == 3
    for row in rows:
        _, given, *cells = (cell.strip() for cell in row.strip("|").split(" | "))
        for processor, cell in zip(made, cells, strict=True):
            found = processor.normalize(given).removeprefix("\u2581").replace("\u2581", " ")
            if cell in ("composed", "decomposed", "removed", "other code points"):
                assert found != given, row
            else:
                assert found == (given if cell == "same" else cell), row
