"""Tests of `tf-transformer plot`: each kind draws what the real parts give, or refuses in one line."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest

from tf_transformer.commands.main import main
from tf_transformer.commands.plot import KINDS
from tf_transformer.decoding.search_tree import FINISHED, KEPT
from tf_transformer.translation.translator import Translator

SENTENCE = "a b c d"


def draw(tmp_path: Path, *arguments: str) -> str:
    output = tmp_path / "picture.svg"
    assert main(["plot", *arguments, "--output", str(output)]) == 0
    return output.read_text("utf-8")


def test_kinds_that_need_no_model(tmp_path, capfd):
    for arguments, shown in (
        (["positions", "--length", "13"], "the encoding of 13 positions"),
        (["masks", "--text", "uno dos", "--padding", "1"], "dos"),
        (["schedule", "--of", "64:100", "--updates", "300"], "width 64, warm-up 100"),
        (["label-smoothing", "--smoothing", "0.2"], "smoothing 0.2"),
        (["architecture", "--preset", "tiny"], "model/attention.py"),
    ):
        assert shown in draw(tmp_path, *arguments)
        assert capfd.readouterr().out == f"drawn: {tmp_path / 'picture.svg'}\n"


@pytest.mark.long
def test_kinds_that_look_into_a_run(copy_run, tmp_path):
    model = ("--model", str(copy_run))
    found = Translator.load(copy_run).attention(SENTENCE)
    layers, heads = found.weights.shape[:2]
    for which, tokens in (
        ("cross", found.source_tokens),
        ("encoder", found.source_tokens),
        ("decoder", found.read_tokens),
    ):
        svg = draw(tmp_path, "attention", *model, "--text", SENTENCE, "--which", which)
        assert len(re.findall(r">layer \d+, head \d+</text>", svg)) == layers * heads
        for token in tokens:
            assert f">{token.replace('<', '&lt;').replace('>', '&gt;')}</text>" in svg
    one = draw(tmp_path, "attention", *model, "--text", SENTENCE, "--layer", "1", "--target", "x y")
    assert len(re.findall(r">head \d+</text>", one)) == heads and ", layer 1</text>" in one
    assert "finished: score" in draw(tmp_path, "beam", *model, "--text", SENTENCE, "--beam-size", "3")
    assert "learning rate" in draw(tmp_path, "history", "--run-dir", str(copy_run))
    assert "padding, %" in draw(tmp_path, "lengths", "--data", str(copy_run))
    assert "Decoder" in draw(tmp_path, "architecture", *model)


@pytest.mark.long
@pytest.mark.parametrize(("beam_size", "alpha"), [(2, 0.0), (3, 0.6), (4, 1.0)])
def test_the_tree_is_that_of_the_search(copy_run, beam_size, alpha):
    """Its finished candidates are the translations that the search finds, with their scores; at most K are kept."""
    loaded = Translator.load(copy_run)
    import dataclasses

    decoding = dataclasses.replace(loaded.decoding, beam_size=beam_size, length_penalty=alpha)
    translator = Translator(loaded.model, loaded.source_tokenizer, loaded.target_tokenizer, decoding)
    steps = translator.tree(SENTENCE)
    finished = {}
    for number, step in enumerate(steps):
        assert sum(candidate.status == KEPT for candidate in step) <= beam_size
        log_probabilities = [candidate.log_probability for candidate in step]
        assert log_probabilities == sorted(log_probabilities, reverse=True)
        assert len(step) <= 2 * beam_size
        for candidate in step:
            before = steps[number - 1][candidate.parent] if number else None
            if before is not None:
                assert before.status == KEPT
                assert candidate.log_probability <= before.log_probability + 1e-6
            if candidate.status == FINISHED:
                pieces, place = [], candidate
                for earlier in range(number, -1, -1):
                    pieces.append(place.token)
                    place = steps[earlier - 1][place.parent] if earlier else None
                text = "".join(reversed(pieces)).replace("</s>", "").replace("▁", " ").strip()
                finished[text] = candidate.score
    [found] = translator.n_best_strings([SENTENCE], beam_size)
    for text, score in found:
        if np.isfinite(score):
            assert finished[text] == pytest.approx(score, abs=1e-4)
    assert steps[-1][-1].status != KEPT
    best = [candidate.token for step in steps for candidate in step if candidate.is_best]
    assert "".join(best).replace("</s>", "").replace("▁", " ").strip() == found[0][0]


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("attention", "a run directory; several run directories, by --model A --model B, translate as an ensemble"),
        ("beam", "a run directory; several run directories, by --model A --model B, translate as an ensemble"),
        ("schedule", "how many updates are drawn (default: 20000)"),
        ("positions", "even and at least 8"),
        ("label-smoothing", "at least 0 and below 1"),
    ],
)
def test_help_says_what_is_taken(capsys, kind, said):
    with pytest.raises(SystemExit):
        main(["plot", kind, "--help"])
    shown = " ".join(capsys.readouterr().out.split())
    assert said in shown
    assert " export" not in shown


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["attention", "--text", "a"], "--model"),
        (["attention", "--model", "nowhere", "--text", "a"], "no such folder"),
        (["history", "--run-dir", "nowhere"], "nowhere is not a run directory"),
        (["lengths", "--data", "nowhere"], "nowhere is no prepared corpus"),
        (["positions", "--d-model", "7"], "--d-model must be even, and at least 8. Received: 7"),
        (["schedule", "--of", "512"], "--of takes width:warm-up, such as 512:4000. Received: 512"),
        (["label-smoothing", "--smoothing", "1"], "--smoothing must be at least 0 and below 1. Received: [1.0]"),
        (["masks", "--text", " "], "--text must have at least one word"),
        (["architecture", "--preset", "smal"], "did you mean 'small'"),
    ],
)
def test_what_cannot_be_drawn_is_refused(tmp_path, capfd, monkeypatch, arguments, said):
    monkeypatch.chdir(tmp_path)
    try:
        code = main(["plot", *arguments, "--output", "picture.svg"])
    except SystemExit as exit:
        code = exit.code
    err = capfd.readouterr().err
    assert code == 2 and said in err and err.count("\n") == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.long
def test_what_a_model_cannot_show_is_refused(copy_run, copy_export, tmp_path, capfd):
    output = ["--output", str(tmp_path / "picture.svg")]
    for arguments, said in (
        (["attention", "--model", str(copy_export), "--text", "a"], "is an export: give a run directory"),
        (["attention", "--model", str(copy_run), "--text", "a", "--layer", "99"], "--layer must be at most the layers"),
        (["attention", "--model", str(copy_run), "--text", " "], "--text must have at least one word"),
        (["beam", "--model", str(copy_run), "--text", ""], "give a sentence with at least one word"),
        (
            ["beam", "--model", str(copy_run), "--text", "a", "--sampling-temperature", "1"],
            "only a beam search has a tree",
        ),
        (["lengths", "--data", str(copy_run), "--batch-tokens", "2"], "--batch-tokens must hold the longest sentence"),
    ):
        assert main(["plot", *arguments, *output]) == 2
        err = capfd.readouterr().err
        assert said in err and err.count("\n") == 1
    assert main(["plot", "masks", "--output", str(tmp_path / "picture.gif")]) == 2
    assert "pictures are written as .svg or .png" in capfd.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_missing_matplotlib_is_named(tmp_path, capfd, monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib" or "plotting" in name]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main(["plot", "masks", "--output", str(tmp_path / "picture.svg")]) == 2
    assert "pip install 'tf-transformer[plots]'" in capfd.readouterr().err


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_has_an_example_that_is_understood(kind, capsys):
    import shlex

    from tf_transformer.commands.main import parser

    command, verb, *arguments = shlex.split(KINDS[kind].EXAMPLE)
    assert (command, verb, arguments[0]) == ("tf-transformer", "plot", kind)
    assert parser().parse_args([verb, *arguments]).figure is KINDS[kind].figure
    with pytest.raises(SystemExit):
        main(["plot", kind, "--help"])
    assert KINDS[kind].EXAMPLE in capsys.readouterr().out
