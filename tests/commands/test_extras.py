"""Tests of what is said where the packages of an extra are missing."""

import importlib
import re
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from tf_transformer.beam.__main__ import main as beam
from tf_transformer.commands.main import main
from tf_transformer.errors import InputError

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
OURS = {"litert": "litert", "plots": "plotting", "serve": "serving", "beam": "beam"}
"""The parts that import the packages of an extra."""
RUN = ["--run-dir", "RUN", "--output", "OUT"]


def forget(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    """Let a package and its modules be imported anew in a test."""
    for name in list(sys.modules):
        parent, _, child = name.rpartition(".")
        if f"{name}.".startswith(f"{package}.") and child != "__main__":
            if parent in sys.modules and hasattr(sys.modules[parent], child):
                # An import binds the module in its parent, too: the present one must be there again afterwards.
                monkeypatch.setattr(sys.modules[parent], child, sys.modules[name])
            monkeypatch.delitem(sys.modules, name)


@pytest.mark.parametrize(
    ("extra", "package", "arguments"),
    [
        ("plots", "matplotlib", ["plot", "masks", "--output", "OUT.svg"]),
        ("serve", "uvicorn", ["serve", "EMPTY", "--port", "0", "--grpc-port", "0"]),
        ("hub", "huggingface_hub", ["import", "owner/model", "--run-dir", "OUT"]),
        ("ctranslate2", "ctranslate2", ["export", "--format", "ctranslate2", *RUN]),
        ("litert", "ai_edge_litert", ["export", "--format", "litert", *RUN]),
        ("litert", "ai_edge_litert", ["translate", "--model", "LITERT", "--input", "TEXT", "--output", "OUT"]),
        ("documents", "sentencex", ["translate", "--document", "--model", "RUN", "--input", "TEXT", "--output", "OUT"]),
        ("files", "openpyxl", ["train", "--data", "PAIRS.xlsx", "--run-dir", "OUT"]),
        ("beam", "apache_beam", ["beam", "prepare", "--data", "toy", "--output", "OUT"]),
    ],
)
def test_a_missing_extra_is_named_in_one_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    copy_run: Path,
    copy_litert: Callable[[str], Path],
    extra: str,
    package: str,
    arguments: list[str],
) -> None:
    (tmp_path / "EMPTY").mkdir()
    for name in ("TEXT", "PAIRS.xlsx"):
        (tmp_path / name).write_text("a b c\n")
    files = {"RUN": copy_run, "LITERT": copy_litert("int8") if "LITERT" in arguments else None}
    monkeypatch.chdir(tmp_path)
    ours = OURS.get(extra, "none")
    forget(monkeypatch, package)
    forget(monkeypatch, f"tf_transformer.{ours}")
    monkeypatch.setitem(sys.modules, package, None)
    given = [str(files.get(argument) or argument) for argument in arguments]
    run = beam if given[0] == "beam" else main
    assert run(given[given[0] == "beam" :]) == 2
    out, err = capsys.readouterr()
    assert out == "" and not list(tmp_path.glob("OUT*"))
    last = err.strip().splitlines()[-1]
    assert f"needs the extra {extra}: pip install 'tf-transformer[{extra}]'" in last
    assert "Traceback" not in err


def test_a_missing_extra_is_also_an_import_error(monkeypatch: pytest.MonkeyPatch) -> None:
    forget(monkeypatch, "tf_transformer.litert")
    monkeypatch.setitem(sys.modules, "ai_edge_litert", None)
    with pytest.raises(ImportError, match="needs the extra litert") as error:
        importlib.import_module("tf_transformer.litert")
    assert isinstance(error.value, InputError)


def test_all_is_every_extra_of_users() -> None:
    extras = PROJECT["optional-dependencies"]
    named = re.fullmatch(r"tf-transformer\[(.*)\]", extras["all"][0])
    assert named and set(named[1].split(",")) == set(extras) - {"all", "bench", "docs", "gpu", "oracles", "test"}
