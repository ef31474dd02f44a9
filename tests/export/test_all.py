"""A SavedModel and an export for LiteRT in one version, and what commands say of the runtime that they use."""

import dataclasses
import json
import shutil
from pathlib import Path

import pytest

from tf_transformer.commands.main import main
from tf_transformer.errors import InputError
from tf_transformer.export import all as side_by_side
from tf_transformer.export import litert, web
from tf_transformer.runs import runtimes
from tf_transformer.runs.descriptions import OF_EXPORT
from tf_transformer.runs.directory import RunDirectory
from tf_transformer.serving.versions import Versions
from tf_transformer.translation.opening import open_translator

pytestmark = pytest.mark.long
LINES = ["a b c d e f", "k j i h"]


@pytest.fixture(scope="module")
def both(copy_run, made_once) -> Path:
    """The version 1 with both exports of a run."""

    def export(output: Path) -> None:
        kind = ["--format", "all", "--quantize", "float32"]
        assert main(["export", *kind, "--run-dir", str(copy_run), "--output", str(output / "1")]) == 0

    return made_once("copy_all", export) / "1"


def test_both_translate_as_the_run_does(both, copy_run):
    wanted = open_translator(copy_run).translate_strings(LINES)
    assert open_translator(both).translate_strings(LINES) == wanted
    assert open_translator(both / "litert").translate_strings(LINES) == wanted


def test_it_is_one_version(both):
    assert [found.folder for found in Versions(both.parent).to_try(None)] == [both]
    assert 'load("1/litert")' in (both / "litert" / "README.md").read_text()
    assert not [path.name for path in both.parent.iterdir() if path != both]


def test_what_was_measured_is_in_the_description(both):
    speeds = json.loads((both / OF_EXPORT).read_text())["sentences_per_second"]
    assert speeds.keys() == {"cpu", "saved_model", "litert"}
    assert speeds["cpu"] == runtimes.cpu()
    assert speeds["saved_model"] > 0
    assert speeds["litert"] > 0


@pytest.mark.parametrize(
    ("speeds", "named"),
    [
        ({"cpu": "this", "saved_model": 10.0, "litert": 34.0}, "3.4 times as fast on this CPU"),
        ({"cpu": "this", "saved_model": 10.0, "litert": 20.0}, "2.0 times as fast on this CPU"),
        ({"cpu": "this", "saved_model": 10.0, "litert": 19.0}, None),
        ({"cpu": "another", "saved_model": 10.0, "litert": 34.0}, None),
        (None, None),
    ],
)
def test_a_faster_export_is_named_where_it_was_faster(both, tmp_path, monkeypatch, speeds, named):
    copied = shutil.copytree(both, tmp_path / "1")
    description = json.loads((copied / OF_EXPORT).read_text()) | {"sentences_per_second": speeds}
    if speeds is None:
        description.pop("sentences_per_second")
    (copied / OF_EXPORT).write_text(json.dumps(description))
    monkeypatch.setattr(runtimes, "cpu", lambda: "this")
    wanted = f"{copied / 'litert'}, the same model for LiteRT, was {named}" if named else None
    assert runtimes.faster_than(copied) == wanted
    assert runtimes.faster_than(copied / "litert") is None


def test_nothing_is_named_where_it_is_not_there(both, tmp_path):
    copied = shutil.copytree(both, tmp_path / "1")
    shutil.rmtree(copied / "litert")
    assert runtimes.faster_than(copied) is None
    (copied / OF_EXPORT).write_text("{")
    (copied / "litert").mkdir()
    (copied / "litert" / "model.tflite").touch()
    assert runtimes.faster_than(copied) is None


@pytest.mark.parametrize(("kind", "runtime"), [("", "TensorFlow"), ("litert", "LiteRT")])
def test_translate_says_its_runtime_and_names_the_faster_one_once(both, tmp_path, monkeypatch, capsys, kind, runtime):
    text = tmp_path / "text.txt"
    text.write_text("\n".join(LINES))
    monkeypatch.setattr(runtimes, "WORTH_SAYING", 0)
    assert main(["translate", "--model", str(both / kind), "--input", str(text)]) == 0
    said = capsys.readouterr().err.splitlines()
    assert said[-1].endswith(f", by {runtime}")
    assert [line.endswith("as fast on this CPU") for line in said[:-1]] == [True] * (not kind)


@pytest.mark.parametrize("export", [litert.export, web.export, side_by_side.export])
def test_what_cannot_sample_is_not_written(export, copy_run, tmp_path, monkeypatch):
    monkeypatch.setattr(web.web_runtime, "find", lambda: tmp_path)
    decoding = dataclasses.replace(RunDirectory(copy_run).config.decoding, beam_size=1, temperature=1.0)
    with pytest.raises(InputError, match="leave the temperature away"):
        export(copy_run, tmp_path / "x", decoding)
    assert not list(tmp_path.iterdir())


def test_several_runs_are_refused(copy_run, tmp_path, capsys):
    runs = ["--run-dir", str(copy_run)] * 2
    assert main(["export", "--format", "all", *runs, "--output", str(tmp_path / "x")]) == 2
    assert "only a SavedModel holds an ensemble" in capsys.readouterr().err
