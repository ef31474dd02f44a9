"""Search and scores from the command line, on a model that has learned to copy."""

import importlib
import importlib.util
import io
import math
import os
import re
import sys
from pathlib import Path

import pytest

from tf_transformer.commands.main import main
from tf_transformer.data.corpora import copy_task

SOURCES = [source for source, _ in copy_task.pairs("test")[:7]]


@pytest.fixture
def translate(copy_run, copy_export, monkeypatch, capfdbinary):
    """Translates lines; gives those that come back."""

    def translate(*options, model=copy_run, lines=SOURCES):
        text = "".join(f"{line}\n" for line in lines).encode()
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text)))
        capfdbinary.readouterr()
        code = main(["translate", "--model", str(model), *options])
        output, errors = capfdbinary.readouterr()
        return code, output.decode().splitlines(), errors.decode()

    return translate


@pytest.mark.long
def test_n_best_with_scores(translate, copy_export):
    code, lines, _ = translate("--n-best", "3", "--scores")
    assert code == 0
    assert len(lines) == 3 * len(SOURCES)
    for i, source in enumerate(SOURCES):
        scores, translations = zip(*(line.split("\t") for line in lines[3 * i : 3 * i + 3]), strict=True)
        assert translations[0] == source
        assert len(set(translations)) == 3
        assert list(map(float, scores)) == sorted(map(float, scores), reverse=True)
    assert translate("--n-best", "3", "--scores", model=copy_export)[1] == lines


@pytest.mark.long
def test_every_way_to_search_copies(translate):
    for options in (
        ["--beam-size", "1"],
        ["--beam-size", "2", "--length-penalty", "0"],
        ["--set", "decoding.coverage_penalty=0.2", "--set", "decoding.ban_unknown=true", "--beam-size", "3"],
        ["--jit-compile", "--beam-size", "1", "--batch-tokens", "50"],
        ["--sampling-temperature", "0.01", "--top-k", "5", "--top-p", "0.9", "--seed", "3"],
    ):
        assert translate(*options)[:2] == (0, SOURCES)


def test_a_long_line_is_cut_and_said_to_be(translate, caplog):
    lines = [*SOURCES[:2], " ".join(SOURCES), *SOURCES[2:]]
    code, found, _ = translate("--set", "decoding.max_source_length=30", lines=lines)
    assert code == 0
    assert [*found[:2], *found[3:]] == SOURCES
    assert [record.message for record in caplog.records if "was cut" in record.message] == [
        "line 3 was cut, because it has more tokens than max_source_length or than the model has positions: "
        f"{lines[2]:.60} ..."
    ]


def test_the_length_is_capped(translate):
    _, lines, _ = translate("--max-length", "4")
    assert all(len(line.split()) <= 4 for line in lines)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--beam-size", "0"], "beam_size must be at least 1. Received: 0"),
        (["--sampling-temperature", "0"], "temperature must be above 0. Received: 0.0"),
        (["--sampling-temperature", "1", "--top-p", "1.5"], "top_p must be at most 1. Received: 1.5"),
        (["--top-k", "3"], "top_k and top_p are for sampling: give a temperature"),
        (["--length-penalty", "nan"], "length_penalty must be a finite number. Received: nan"),
        (["--n-best", "5"], "error: n_best must be 1 to 4, the beam_size. Received: 5"),
        (["--max-length", "0"], "max_length must be at least 1. Received: 0"),
        (["--set", "decoding.no_repeat_ngrm=2"], "did you mean 'decoding.no_repeat_ngram'"),
        (["--set", "model.d_model=2"], "only settings of decoding can be set here. Received: --set model.d_model=2"),
        (["--set", "decoding.coverage_penalty=-1"], "coverage_penalty must be at least 0. Received: -1"),
        (["--set", "decoding.coverage_penalty=1", "--beam-size", "1"], "give a beam_size above 1, and no temperature"),
        (["--set", "decoding.attention_layer=9"], "attention_layer must be at most the number of decoder layers, "),
        (["--set", "decoding.max_source_length=1"], "max_source_length must be at least 2. Received: 1"),
    ],
)
def test_nonsense_is_refused(translate, options, message):
    code, lines, errors = translate(*options)
    assert code == 2
    assert lines == []
    assert message in errors
    assert len([line for line in errors.splitlines() if "error" in line]) == 1


def test_an_export_searches_as_it_was_told(translate, copy_export):
    code, _, errors = translate("--beam-size", "2", model=copy_export)
    assert code == 2
    assert "is an export: how it searches was chosen when it was written. Give --beam-size" in errors
    assert "Give --set decoding.min_length=1 and" in translate("--set", "decoding.min_length=1", model=copy_export)[2]


@pytest.mark.long
def test_scores_of_given_translations(copy_run, copy_export, translate, tmp_path, capfdbinary):
    """A copy is probable, a wrong one is not; the search reports the same number."""
    (tmp_path / "source").write_text("".join(f"{source}\n" for source in SOURCES))
    (tmp_path / "target").write_text("".join(f"{target}\n" for target in [*SOURCES[:-1], "a a a"]))
    capfdbinary.readouterr()
    files = [str(tmp_path / side) for side in ("source", "target")]
    assert main(["score", "--model", str(copy_run), *files, "--tokens"]) == 0
    output, errors = (out.decode() for out in capfdbinary.readouterr())
    rows = [list(map(float, line.split("\t"))) for line in output.splitlines()]
    assert len(rows) == len(SOURCES)
    for total, perplexity, *tokens in rows:
        assert total == pytest.approx(sum(tokens), abs=1e-3)
        assert perplexity == pytest.approx(math.exp(-total / len(tokens)), rel=1e-3)
    assert all(row[0] > -0.5 for row in rows[:-1])
    assert rows[-1][0] < -5
    count = sum(len(row) - 2 for row in rows)
    perplexity = math.exp(-sum(row[0] for row in rows) / count)
    assert errors.splitlines()[-1].startswith(f"{count} tokens, perplexity ")
    assert float(errors.split()[-1]) == pytest.approx(perplexity, rel=1e-3)
    assert main(["score", "--model", str(copy_export), *files, "--tokens"]) == 0
    exported = [list(map(float, line.split("\t"))) for line in capfdbinary.readouterr().out.decode().splitlines()]
    for row, other in zip(rows, exported, strict=True):
        assert other == pytest.approx(row, abs=1e-3)
    _, lines, _ = translate("--length-penalty", "0", "--scores")
    for line, row in zip(lines[:-1], rows, strict=False):
        assert float(line.split("\t")[0]) == pytest.approx(row[0], abs=2e-4)


@pytest.mark.long
def test_what_the_page_shows_runs(copy_run, tmp_path, monkeypatch, capfd):
    """docs/decoding.md, on this model."""
    page = (Path(__file__).parents[2] / "docs" / "decoding.md").read_text("utf-8")
    program, runtime, python, plot = re.findall(r"```python\n(.*?)```", page, flags=re.S)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "m30k").symlink_to(copy_run)
    assert main(["export", "--run-dir", "runs/m30k", "--output", "exported", "--format", "ctranslate2"]) == 0
    capfd.readouterr()
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    for example in (program, runtime, python):
        example = example.replace("a man is sleeping .", SOURCES[0]).replace("der mann", SOURCES[0][:3])
        example = example.replace("runs/mine", "runs/m30k").replace("The cat sleeps.", SOURCES[0])
        exec(example, names := {})
        assert capfd.readouterr().out.startswith(f"{SOURCES[0]}\n")
    assert names["begun"].texts.numpy().tolist() == [[SOURCES[0].encode()]]
    assert names["scored"].lengths[0] > 1
    if importlib.util.find_spec("matplotlib"):  # of the extra `plots`
        importlib.import_module("matplotlib").use("agg")
        exec(plot, names)
        assert (tmp_path / "attention.svg").stat().st_size > 1000
