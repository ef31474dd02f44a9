"""Tests of the command line: what it prints, how it exits, and what it leaves on the disk."""

import argparse
import gzip
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.conftest import unpack
from tf_transformer import __version__
from tf_transformer.commands import evaluate, train
from tf_transformer.commands import export as export_command
from tf_transformer.commands.common.chosen_model import ChosenModel
from tf_transformer.commands.main import COMMANDS, main, parser
from tf_transformer.config import PRESETS, Config, override
from tf_transformer.data.corpora import copy_task
from tf_transformer.data.corpora.copy_task import SIZES
from tf_transformer.runs.descriptions import is_litert, is_web


def tree(path: Path) -> dict[str, bytes | None]:
    return {str(p.relative_to(path)): p.read_bytes() if p.is_file() else None for p in path.rglob("*")}


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with good and bad corpora in it."""
    monkeypatch.chdir(tmp_path)
    texts = {
        "good/train.en": b"a b\nc d\n",
        "good/train.de": b"x y\nz w\n",
        "good/val.en": b"a b\n",
        "good/val.de": b"x y\n",
        "uneven/train.en": b"a\nb\nc\n",
        "uneven/train.de": b"a\nb\n",
        "latin/train.en": b"a\n\xe4\n",
        "latin/train.de": b"a\nb\n",
        "empty/train.en": b"",
        "empty/train.de": b"",
        "blank/train.en": b"\n  \nb\n",
        "blank/train.de": b"a\nb\n\t\n",
        "single.tsv": b"a\tb\n",
        "columns.tsv": b"a\tb\na\tb\tc\n",
        "cut.tsv.gz": gzip.compress(b"a\tb\n" * 99)[:-5],
        "list.txt": b"a\tb\n",
        "syntax.toml": b"[model\n",
        "key.toml": b"[model]\ndmodel = 3\n",
        "type.toml": b"[training]\nseed = '3'\n",
        "section.toml": b"model = 3\n",
        "preset.toml": b"preset = 3\n",
        "latin.toml": b"preset = '\xe4'\n",
        "other/config.json": b"{}",
        "newer/config.json": b'{"format_version": 999}',
        "foreign/saved_model.pb": b"",
        "lite/model.tflite": b"",
        "web/model.tflite.gz": b"",
        "web/tf_transformer.json": b"{}",
        "foreign/variables/x": b"",
    }
    for name, raw in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(raw)
    for name in ("blank", "empty", "uneven", "latin"):
        for language in ("en", "de"):
            (tmp_path / name / f"val.{language}").write_bytes(b"a\n")
    return tmp_path


@pytest.fixture
def fails(work: Path, capfd: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """A function that runs a command, sees to it that it fails as it should, and returns what was said."""

    def run(*arguments: str) -> str:
        before = tree(work)
        try:
            code = main(list(arguments))
        except SystemExit as exit:  # argparse
            code = exit.code
        out, err = capfd.readouterr()
        assert (code, out) == (2, "")
        assert err.startswith("tf-transformer") and ": error: " in err
        assert err.count("\n") == 1 and err.endswith("\n")
        assert tree(work) == before
        return err

    return run


EN_DE = ("--source", "en", "--target", "de")


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        ([], ["--data"]),
        (["--data", "copi"], ["unknown dataset 'copi'", "did you mean 'copy'"]),
        (["--data", "no/such", *EN_DE], ["no/such", "no such folder"]),
        (["--data", "no.tsv"], ["no.tsv", "no such"]),
        (["--data", "list.txt"], ["list.txt", ".tsv"]),
        (["--data", "two\nlines/x"], ["two lines/x"]),
        (["--data", "tfds:no_such_dataset_here", *EN_DE], ["unknown TFDS dataset 'no_such_dataset_here'"]),
        (["--data", "good"], ["--source", "--target"]),
        (["--data", "good", "--source", "en", "--target", "en"], ["must differ", "en"]),
        (["--data", "good", "--source", "en", "--target", "fr"], ["unknown language 'fr'", "de, en"]),
        (["--data", "good", *EN_DE, "--set", "data.train_split=trian"], ["'trian'", "did you mean 'train'"]),
        (["--data", "good", *EN_DE, "--set", "data.validation_split=vla"], ["'vla'", "did you mean 'val'"]),
        (["--data", "uneven", *EN_DE], ["train.en", "train.de", "3 and 2"]),
        (["--data", "latin", *EN_DE], ["latin/train.en, line 2: not UTF-8"]),
        (["--data", "empty", *EN_DE], ["empty", "no pair", "'train'"]),
        (["--data", "blank", *EN_DE], ["blank", "no pair", "train"]),
        (["--data", "single.tsv"], ["single.tsv", "no pair", "'val'", "held_out"]),
        (["--data", "columns.tsv"], ["columns.tsv, line 2", "Received: 3"]),
        (["--data", "cut.tsv.gz"], ["cut.tsv.gz is not a complete gzip file"]),
        (["--data", "toy", "--source", "de", "--target", "fr"], ["de to en", "Received: de to fr"]),
        (["--data", "copy", "--preset", "smal"], ["unknown preset 'smal'", "did you mean 'small'"]),
        (["--data", "copy", "--max-steps", "0"], ["max_steps", "at least 1", "0"]),
        (["--data", "copy", "--max-steps", "1e3"], ["--max-steps", "'1e3'"]),
        (["--data", "copy", "--seed", "-1"], ["seed", "-1"]),
        (["--data", "copy", "--set", "model.d_model"], ["SECTION.KEY=VALUE", "'model.d_model'"]),
        (["--data", "copy", "--set", "model.dmodel=3"], ["'model.dmodel'", "did you mean 'model.d_model'"]),
        (["--data", "copy", "--set", "modle.d_model=3"], ["'modle'", "did you mean 'model'"]),
        (["--data", "copy", "--set", "model.d_model=30"], ["d_model=30", "num_heads=4"]),
        (["--data", "copy", "--set", "model.d_model=x"], ["model.d_model must be an integer", "'x'"]),
        (["--data", "copy", "--set", "model.d_model=-4"], ["model.d_model", "-4"]),
        (["--data", "copy", "--set", "model.dropout_rate=nan"], ["model.dropout_rate", "nan"]),
        (["--data", "copy", "--set", "model.norm=pots"], ["model.norm", "did you mean 'post'"]),
        (["--data", "copy", "--set", "model.target_vocab_size=99"], ["tokenizer.vocab_size", "99"]),
        (["--data", "copy", "--set", "tokenizer.vocab_size=3"], ["tokenizer.vocab_size", "3"]),
        (["--data", "copy", "--set", "tokenizer.vocab_size=200"], ["tokenizer.vocab_size", "200", "special tokens"]),
        (["--data", "copy", "--set", "tokenizer.shared=false"], ["share_embeddings", "shared=false"]),
        (["--data", "good", *EN_DE, "--set", "data.max_length=2"], ["max_length=2", "no pair to train on"]),
        (["--data", "copy", "--config", "no.toml"], ["cannot read no.toml"]),
        (["--data", "copy", "--config", "good"], ["cannot read good"]),
        (["--data", "copy", "--config", "syntax.toml"], ["syntax.toml is not a TOML file", "line 1"]),
        (["--data", "copy", "--config", "latin.toml"], ["latin.toml is not a TOML file"]),
        (["--data", "copy", "--config", "key.toml"], ["'model.dmodel'", "did you mean 'model.d_model'"]),
        (["--data", "copy", "--config", "type.toml"], ["training.seed must be an integer", "'3'"]),
        (["--data", "copy", "--config", "section.toml"], ["model must be a table", "3"]),
        (["--data", "copy", "--config", "preset.toml"], ["unknown preset '3'"]),
        (["--data", "copy", "--tokenizer", "no.model"], ["no.model"]),
        (["--data", "copy", "--tokenizer", "good"], ["good: Is a directory"]),
        (["--data", "copy", "--tokenizer", "list.txt"], ["list.txt is not a SentencePiece model"]),
        (["--data", "copy", "--bogus"], ["--bogus"]),
        (["--data", "copy", "--over"], ["--over"]),
    ],
)
def test_train_refuses(fails: Callable[..., str], arguments: list[str], parts: list[str]) -> None:
    said = fails("train", "--run-dir", "run", *arguments)
    for part in parts:
        assert part in said


@pytest.mark.parametrize("overwrite", [[], ["--overwrite"]])
@pytest.mark.parametrize(
    ("run_dir", "part"),
    [
        ("good", "good is not a run directory"),
        ("other", "other is not a run directory"),
        ("newer", "newer has format version 999"),
        ("list.txt", "list.txt is not a folder"),
        ("list.txt/run", "list.txt is not a folder"),
    ],
)
def test_train_touches_no_folder_that_is_not_its_own(
    fails: Callable[..., str], run_dir: str, part: str, overwrite: list[str]
) -> None:
    assert part in fails("train", "--data", "good", *EN_DE, "--run-dir", run_dir, *overwrite)


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["trian", "--data", "copy"], ["'trian'", "did you mean train?"]),
        (["plot", "attentoin"], ["'attentoin'", "did you mean attention?"]),
        (["export", "--run-dir", "good", "--output", "x", "--format", "tflight"], ["'tflight'", "choose from"]),
        (["export", "--run-dir", "good", "--output", "x", "--format", "litret"], ["did you mean litert?"]),
        (["translate", "--model", "nowhere"], ["nowhere", "no such folder"]),
        (["translate", "--model", "list.txt"], ["list.txt", "no such folder"]),
        (["translate", "--model", "good"], ["good is not a run directory"]),
        (["translate", "--model", "foreign"], ["foreign is not a SavedModel exported by tf-transformer"]),
        (["translate", "--model", "good", "--batch-tokens", "0"], ["--batch-tokens", "at least 1", "'0'"]),
        (["translate", "--model", "good", "--batch-tokens", "two"], ["--batch-tokens", "'two'"]),
        (["translate"], ["--model"]),
        (["evaluate", "--model", "nowhere"], ["nowhere", "no such folder"]),
        (["evaluate", "--model", "other"], ["other is not a run directory"]),
        (["evaluate", "--model", "foreign"], ["foreign is not a SavedModel exported by tf-transformer"]),
        (["evaluate", "--model", "good", "--output", "other"], ["--output other is a folder"]),
        (["evaluate", "--model", "good", "--output", "list.txt/x"], ["list.txt is not a folder"]),
        (["export", "--run-dir", "good", "--output", "other"], ["other exists"]),
        (["export", "--run-dir", "good", "--output", "list.txt"], ["list.txt exists"]),
        (["export", "--run-dir", "good", "--output", "list.txt/1"], ["list.txt is not a folder"]),
        (["export", "--run-dir", "good", "--output", "new"], ["good is not a run directory"]),
        (["export", "--run-dir", "nowhere", "--output", "new"], ["nowhere is not a run directory"]),
        (["export", "--run-dir", "good"], ["--output"]),
        (["export", "--run-dir", "good", "--output", "foreign/1"], ["foreign is an export", "move it to foreign/1"]),
        (["export", "--run-dir", "good", "--output", "lite/1"], ["lite is an export", "move it to lite/1"]),
        (["export", "--run-dir", "good", "--output", "web/1"], ["web is an export for browsers, which holds no other"]),
        *(
            (arguments, ["web is an export for browsers: export --format litert writes one that commands read"])
            for arguments in (
                ["info", "web"],
                ["translate", "--model", "web"],
                ["translate", "--model", "web", "--model", "web"],
                ["evaluate", "--model", "web"],
                ["score", "--model", "web", "list.txt", "list.txt"],
                ["serve", "web"],
                ["export", "--run-dir", "web", "--output", "x"],
                ["plot", "beam", "--model", "web", "--text", "a", "--output", "a.svg"],
            )
        ),
        (
            ["prepare", "--data", "single.tsv", "list.txt", "--output", "x"],
            ["list.txt: write the option before each file"],
        ),
        (["info", "nowhere"], ["nowhere is not a run directory"]),
        (["info", "newer"], ["newer has format version 999"]),
        (["info", "foreign"], ["foreign is not a SavedModel exported by tf-transformer"]),
        (["trian"], ["'trian'", "train"]),
    ],
)
def test_other_commands_refuse(fails: Callable[..., str], arguments: list[str], parts: list[str]) -> None:
    said = fails(*arguments)
    for part in parts:
        assert part in said


def test_an_export_for_browsers_that_was_unpacked_is_one_for_litert(work: Path) -> None:
    assert is_web("web") and not is_litert("web")
    (work / "web" / "model.tflite").touch()
    assert is_litert("web") and not is_web("web")


def test_what_the_system_refuses_is_one_line(fails: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device", "run/x")

    monkeypatch.setattr("tf_transformer.training.fit.train", full)
    assert "run/x: No space left on device" in fails("train", "--data", "copy", "--run-dir", "run")


def test_a_place_without_permission(fails: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)  # who runs this test may be allowed everything
    assert "no permission to write in" in fails("train", "--data", "copy", "--run-dir", "run")


@pytest.fixture
def trained(work: Path, monkeypatch: pytest.MonkeyPatch) -> list[Config]:
    """The configs that `train` was called with; it does nothing else."""
    configs: list[Config] = []

    def train(config: Config, run_dir: str, *, overwrite: bool, strategy: Any) -> SimpleNamespace:
        configs.append(config)
        return SimpleNamespace(path=f"{run_dir} {overwrite}")

    monkeypatch.setattr("tf_transformer.training.fit.train", train)
    return configs


def test_preset_below_file_below_set_below_option(
    work: Path, trained: list[Config], capsys: pytest.CaptureFixture[str]
) -> None:
    (work / "run.toml").write_text(
        'preset = "small"\n[model]\ndropout_rate = 0.31\nnum_heads = 2\n[training]\nseed = 3\nmax_steps = 3\n'
    )
    command = ["train", "--run-dir", "run", "--data", "copy", "--config", "run.toml"]
    settings = ["--set", "model.num_heads=4", "--set", "training.seed=4", "--set", "training.seed=5"]
    assert main([*command, *settings, "--seed", "6", "--overwrite"]) == 0
    assert capsys.readouterr().out == "trained: run True\n"
    layers = {
        "model": {"dropout_rate": 0.31, "num_heads": 4},
        "training": {"seed": 6, "max_steps": 3},
        "data": {"corpus": "copy"},
    }
    assert trained == [override(PRESETS["small"], layers)]
    assert main([*command, "--preset", "base"]) == 0
    assert (trained[1].model.d_model, trained[1].model.num_heads, trained[1].training.seed) == (512, 2, 3)


def test_named_options(trained: list[Config]) -> None:
    Path("my.model").touch()
    options = ["--data", "good", *EN_DE, "--max-steps", "7", "--seed", "8", "--tokenizer", "my.model"]
    assert main(["train", "--run-dir", "run", *options]) == 0
    named = {
        "data": {"corpus": "good", "source": "en", "target": "de"},
        "training": {"max_steps": 7, "seed": 8},
        "tokenizer": {"file": "my.model"},
    }
    assert trained == [override(PRESETS["tiny"], named)]


def test_settings_that_belong_together_may_come_one_by_one(trained: list[Config]) -> None:
    settings = ["--set", "model.d_model=90", "--set", "model.num_heads=6"]
    assert main(["train", "--run-dir", "run", "--data", "copy", *settings]) == 0
    assert (trained[0].model.d_model, trained[0].model.num_heads) == (90, 6)


def test_evaluate(shouting: list[int], work: Path, capfd: pytest.CaptureFixture[str]) -> None:
    command = ["evaluate", "--model", "any", "--output", "new/folder/out.txt", "--batch-tokens", "8000"]
    assert main([*command, "--json", "--tokenize", "none"]) == 0
    scores = json.loads(capfd.readouterr().out)
    assert scores["bleu"] < 1 and scores["sentences"] == SIZES["test"] and "tok:none" in scores["signature"]
    assert shouting == [500, 500]
    written = (work / "new/folder/out.txt").read_text()
    assert written.count("\n") == SIZES["test"] and written.isupper()
    assert [path.name for path in (work / "new/folder").iterdir()] == ["out.txt"]

    assert main([*command, "--split", "val"]) == 0
    out = capfd.readouterr().out
    assert f"{SIZES['val']} sentences" in out and out.startswith("BLEU ")
    assert (work / "new/folder/out.txt").read_text().count("\n") == SIZES["val"]


@pytest.mark.long
def test_evaluate_compares_with_a_file_and_with_a_model(
    shouting: list[int], work: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (work / "references").write_text("".join(f"{target}\n" for _, target in copy_task.pairs("test")))
    command = ["evaluate", "--model", "any", "--tokenize", "none", "--compare"]
    assert main([*command, "references", "--json"]) == 0
    scores = json.loads(capfd.readouterr().out)
    bleu, _ = scores["compared"]
    assert bleu["score"] == scores["bleu"] < bleu["other"] == pytest.approx(100)
    assert bleu["p_value"] < 0.01
    assert (work / "other").is_dir()
    assert main([*command, "other"]) == 0
    assert "BLEU  +0.00 against " in capfd.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["--compare", "nowhere"], ["--compare nowhere", "no such file"]),
        (["--compare", "good/val.en"], ["--compare good/val.en has 1 lines", f"{SIZES['test']} sentences"]),
        (["--compare", "latin/train.en"], ["latin/train.en, line 2: not UTF-8"]),
        (["--split", "tset"], ["unknown split 'tset'", "did you mean 'test'"]),
        (["--data", "toi"], ["unknown dataset 'toi'", "did you mean 'toy'"]),
        (["--data", "good"], ["--source", "--target"]),
        (["--data", "single.tsv"], ["single.tsv", "no pair", "'test'"]),
        (["--json", "--examples", "2"], ["--json shows no examples", "Received: --examples 2"]),
        (["--tokenize", "14a"], ["sacreBLEU '14a'", "did you mean '13a'"]),
    ],
)
def test_evaluate_refuses_before_it_translates(
    shouting: list[int], fails: Callable[..., str], arguments: list[str], parts: list[str]
) -> None:
    said = fails("evaluate", "--model", "any", "--output", "out.txt", *arguments)
    for part in parts:
        assert part in said
    assert shouting == []


def test_evaluate_refuses_the_other_direction(
    shouting: list[int], fails: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = evaluate.chosen_model(None)
    config = override(chosen.described.config, {"data": {"source": "en", "target": "de"}})
    turned = SimpleNamespace(path=Path("any"), config=config, languages=())
    monkeypatch.setattr(evaluate, "chosen_model", lambda options: ChosenModel(turned, chosen.decoding))
    said = fails("evaluate", "--model", "any", "--data", "good", "--source", "de", "--target", "en")
    assert "any translates from en to de, not the other way. Received: --source de --target en" in said


def test_train_says_what_it_cannot_know_of_the_languages(
    work: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    (work / "pairs.tsv").write_text("a\tb\n")
    base = SimpleNamespace(
        path=Path("base"), languages=(), config=override(Config(), {"data": {"source": "en", "target": "de"}})
    )
    monkeypatch.setattr("tf_transformer.runs.directory.RunDirectory", lambda path: base)
    for languages, said in (
        ({}, "the languages are not known"),
        ({"source": "de", "target": "en"}, "base translates from en to de, and this text is read the other way"),
        ({"source": "en", "target": "de"}, None),
    ):
        caplog.clear()
        data = {"corpus": "pairs.tsv", **languages}
        train._warn_of_languages(override(Config(), {"data": data, "training": {"init_from": "base"}}))
        assert (said in caplog.text) if said else not caplog.records


def test_evaluate_writes_into_what_is_no_plain_file(
    shouting: list[int], work: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (work / "real.txt").write_text("old\n")
    (work / "link.txt").symlink_to("real.txt")
    os.mkfifo(work / "pipe")
    reader = subprocess.Popen(["cat", work / "pipe"], stdout=subprocess.PIPE)
    for output in ("link.txt", "pipe"):
        assert main(["evaluate", "--model", "any", "--output", output]) == 0
    assert reader.communicate(timeout=60)[0] == (work / "real.txt").read_bytes()
    assert (work / "real.txt").read_text().count("\n") == SIZES["test"]
    assert (work / "link.txt").is_symlink() and (work / "pipe").is_fifo()


def test_evaluate_leaves_nothing_half_written(
    shouting: list[int], fails: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Path, target: Path) -> None:
        raise PermissionError(13, "Permission denied", str(target))

    monkeypatch.setattr(Path, "rename", refuse)
    assert "out.txt: Permission denied" in fails("evaluate", "--model", "any", "--output", "out.txt")


def test_without_a_command_the_help_shows_all_of_them_with_examples(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    helped = capsys.readouterr().out
    assert main([]) == 0
    out, err = capsys.readouterr()
    assert (out, err) == (helped, "")
    places = [out.index(f"  {name:10} {command.SUMMARY}\n") for name, command in COMMANDS.items()]
    assert places == sorted(places)
    for name, command in COMMANDS.items():
        assert f"$ {command.EXAMPLE}\n" in out
        assert shlex.split(command.EXAMPLE)[:2] == ["tf-transformer", name]
        parser().parse_args(shlex.split(command.EXAMPLE)[1:])


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_every_command(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit:
        main([command, "--help"])
    out, err = capsys.readouterr()
    assert (exit.value.code, err) == (0, "")
    assert f"usage: tf-transformer {command}" in out
    assert f"example:\n  {COMMANDS[command].EXAMPLE}\n" in out
    option_lines = [line for line in out.partition("options:")[2].splitlines() if line.startswith("  -")]
    assert option_lines[0].startswith("  -h, --help")


def parsers(of: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """A parser and those of its commands and kinds."""
    yield of
    for action in of._actions:
        if isinstance(action, argparse._SubParsersAction):
            for sub in action.choices.values():
                yield from parsers(sub)


def test_every_option_says_what_it_is() -> None:
    """A default alone says nothing."""
    options = [action for each in parsers(parser()) for action in each._actions]
    assert len(options) > 150
    assert [action.dest for action in options if not action.help or action.help.startswith("(")] == []


def test_help_of_serve_names_all_that_is_served(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["serve", "--help"])
    assert "an exported SavedModel or an export for LiteRT, or a folder" in " ".join(capsys.readouterr().out.split())


def test_help_of_train_has_options_presets_and_settings(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["train", "--help"])
    out = capsys.readouterr().out
    options = "--run-dir --data --source --target --preset --config --set --max-steps --seed --tokenizer --overwrite"
    for expected in (*options.split(), *PRESETS, "training.warmup_steps=4000", "data.batch_tokens=4096"):
        assert expected in out


LIGHT = """
import sys
from tf_transformer.commands.main import main
try:
    code = main(sys.argv[1:])
except SystemExit as exit:
    code = exit.code
print("heavy:", *sorted({"tensorflow", "keras", "numpy", "tensorflow_datasets"} & sys.modules.keys()))
sys.exit(code)
"""


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--help"], 0, "usage: tf-transformer"),
        (["train", "--help"], 0, "--max-steps"),
        (["--version"], 0, f"tf-transformer {__version__}\n"),
        (["train", "--run-dir", "run", "--data", "toy", "--preset", "smal"], 2, "did you mean 'small'"),
        (["train", "--run-dir", "run"], 2, "--data"),
        (["translate", "--model", "nowhere"], 2, "no such folder"),
        (["export", "--run-dir", "run", "--output", "/"], 2, "/ exists"),
    ],
)
def test_tensorflow_is_not_imported_before_it_is_needed(
    tmp_path: Path, arguments: list[str], code: int, said: str
) -> None:
    command = [sys.executable, "-c", LIGHT, *arguments]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == code
    assert said in (done.stderr if code else done.stdout)
    assert done.stdout.endswith("heavy:\n")
    assert done.stderr.count("\n") == (1 if code else 0)
    assert not list(tmp_path.iterdir())


FROZEN = Path(__file__).parents[1] / "frozen"
MODEL, EXPORT, CORPUS = ("--model", "shared_ema"), ("--model", "export/shared_ema"), ("--data", str(FROZEN / "corpus"))
XX_YY = ("--source", "xx", "--target", "yy")


@pytest.mark.long_but_first
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["translate", *MODEL, "--n-best", "5"], "n_best must be 1 to 4, the beam_size. Received: 5"),
        (["translate", *EXPORT, "--n-best", "5"], "n_best must be 1 to 4, the beam_size. Received: 5"),
        (["translate", "--model", "."], ". is not a run directory: config.json is missing or damaged"),
        (["translate", *MODEL, "--beam-size", "0"], "beam_size must be at least 1. Received: 0"),
        (["translate", *EXPORT, "--beam-size", "2"], "is an export: how it searches was chosen when it was written"),
        (["evaluate", *MODEL, *CORPUS, "--split", "tset"], "unknown split 'tset'"),
        (["evaluate", *EXPORT, *CORPUS, "--target", "zz"], "unknown language 'zz'"),
        (["export", "--run-dir", ".", "--output", "new"], ". is not a run directory"),
        (["export", "--run-dir", "shared_ema", "--output", "shared_ema/export/1"], "it would go with the run"),
        (["export", "--run-dir", "shared_ema", "--output", "new", "--beam-size", "0"], "beam_size must be at least 1"),
        *(
            (
                ["export", "--run-dir", "shared_ema", "--output", "new", "--format", form, *given],
                f"LiteRT has no XLA, which --jit-compile is for. Received: {' '.join(given)} with --format {form}",
            )
            for form in ("litert", "web")
            for given in (["--jit-compile"], ["--set", "decoding.jit_compile=true"])
        ),
        (["info", "."], ". is not a run directory"),
        (["average", "--run-dir", ".", "--last", "1"], ". is not a run directory"),
        (["average", "--run-dir", "shared_ema", "--last", "2"], "was trained with training.keep_last=1"),
        (["average", "--run-dir", "shared_ema", "--last", "1", "--output", "export"], "export exists"),
        (["train", *CORPUS, *XX_YY, "--run-dir", "."], ". is not a run directory"),
        (["train", *CORPUS, *XX_YY, "--run-dir", "new", "--set", "data.train_split=2014"], "unknown split '2014'"),
        (["train", *CORPUS, "--run-dir", "new"], "give --source and --target"),
        (["train", *CORPUS, *XX_YY, "--run-dir", "shared_ema"], "model.d_model was 8, is 128;"),
        (["train", *CORPUS, *XX_YY, "--run-dir", "new", "--init-from", "."], ". is not a run directory"),
        (
            ["train", *CORPUS, *XX_YY, "--init-from", "shared_ema", "--run-dir", "shared_ema", "--overwrite"],
            "--init-from shared_ema lies inside shared_ema: --overwrite would remove it",
        ),
        (
            [
                *("train", *CORPUS, *XX_YY, "--run-dir", "shared_ema", "--overwrite"),
                *("--set", "tokenizer.normalization=shared_ema/config.json"),
            ],
            "tokenizer.normalization shared_ema/config.json lies inside shared_ema: --overwrite would remove it",
        ),
        (
            ["evaluate", *MODEL, *CORPUS, "--split", "val", "--output", str(FROZEN / "corpus" / "val.yy")],
            "val.yy is also read, and would be lost: give another file",
        ),
    ],
)
def test_what_files_and_options_show_is_said_without_tensorflow(
    tmp_path: Path, arguments: list[str], said: str
) -> None:
    for name, folder in (("shared_ema", tmp_path), ("export_shared_ema", tmp_path / "export")):
        unpack(FROZEN / f"{name}.tar.xz", folder)
    before = tree(tmp_path)
    done = subprocess.run([sys.executable, "-c", LIGHT, *arguments], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2
    assert said in done.stderr and done.stderr.count("\n") == 1
    assert done.stdout in ("heavy: numpy\n", "heavy:\n")
    assert tree(tmp_path) == before


def test_a_missing_ctranslate2_is_said_before_the_run_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    unpack(FROZEN / "shared_ema.tar.xz", tmp_path)
    monkeypatch.setattr(export_command.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(export_command, "import_tensorflow", lambda: pytest.fail("it loads"))
    run, output = str(tmp_path / "shared_ema"), str(tmp_path / "ct2")
    assert main(["export", "--run-dir", run, "--format", "ctranslate2", "--output", output]) == 2
    assert "pip install 'tf-transformer[ctranslate2]'" in capsys.readouterr().err


@pytest.mark.long
def test_a_process_of_its_own_has_nothing_to_say_but_its_error(work: Path) -> None:
    command = [sys.executable, "-c", "import sys; from tf_transformer.commands.main import main; sys.exit(main())"]
    before = tree(work)
    arguments = ["train", "--run-dir", "run", "--data", "uneven", *EN_DE]
    done = subprocess.run([*command, *arguments], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("tf-transformer: error: ") and done.stderr.count("\n") == 1
    assert tree(work) == before


@pytest.mark.long
def test_commands_run_whatever_backend_keras_is_told_to_use(tmp_path: Path) -> None:
    unpack(FROZEN / "shared_ema.tar.xz", tmp_path)
    command = [sys.executable, "-m", "tf_transformer", "translate", *MODEL, "--beam-size", "1"]
    environment = os.environ | {"KERAS_BACKEND": "jax"}
    given: dict[str, Any] = {"cwd": tmp_path, "env": environment, "capture_output": True, "text": True}
    done = subprocess.run(command, input="a b c\n", **given)
    assert (done.returncode, done.stdout.count("\n")) == (0, 1), done.stderr
    code = "from tf_transformer import Translator; Translator.load('shared_ema')"
    done = subprocess.run([sys.executable, "-c", code], **given)
    assert done.stderr.endswith(
        "InputError: Translator needs Keras on TensorFlow: set KERAS_BACKEND=tensorflow before Keras is imported. "
        "Received: jax\n"
    )


def test_info_tells_people_what_a_model_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, kind in (("shared_ema", "run directory"), ("export_shared_ema", "SavedModel")):
        unpack(FROZEN / f"{name}.tar.xz", tmp_path / name)
        path = str(tmp_path / name / "shared_ema")
        assert main(["info", path, "--json"]) == 0
        all_of_it = json.loads(capsys.readouterr().out)
        assert main(["info", path]) == 0
        rows = dict(line.split(None, 1) for line in capsys.readouterr().out.splitlines())
        assert rows["Kind"] == kind
        assert rows["Parameters"].startswith(f"{all_of_it['parameters']:,}: ")
        assert rows["Languages"] == "xx to yy"
        assert rows["Updates"] == str(all_of_it["checkpoint"]["step"])
        assert rows["Search"] == "beam of 4, length penalty 0.6"


def test_info_tells_people_what_a_prepared_corpus_is(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["prepare", "--data", "copy", "--vocab-size", "300", "--output", "prepared"]) == 0
    capsys.readouterr()
    assert main(["info", "prepared"]) == 0
    shown = capsys.readouterr().out
    for row in (r"Kind +prepared corpus", rf"Corpus 1 +copy: {SIZES['train']:,} of {SIZES['train']:,} pairs"):
        assert re.search(rf"^{row}$", shown, flags=re.M), shown
    assert re.search(r"^Tokens of the source +[\d,]+; [\d.]+ a pair, 50% have at most \d+", shown, flags=re.M)
