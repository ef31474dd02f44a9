"""Models that transformers 5.23 has trained on the toy corpus, by scripts/oracles.

python scripts/oracles/marian.py --data TOY --steps 3000 --sentences 40 --vocabulary 160 --width 32 --output marian
python scripts/oracles/m2m100.py --kind m2m100 --data TOY --steps 4000 --sentences 40 --vocabulary 300 --width 32 \
    --output m2m100; and the same with nllb
"""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from tests.conftest import unpack
from tests.importers.runs_to_extend import run_of as run_of
from tf_transformer.commands.main import main
from tf_transformer.importers.opening import import_model


@pytest.fixture(scope="session")
def unpacked(tmp_path_factory):
    """Unpacks one of them, as transformers has written it."""
    folder = tmp_path_factory.mktemp("pretrained")

    def get(name):
        if not (folder / name).exists():
            unpack(Path(__file__).with_name(f"{name}.tar.xz"), folder)
        return folder / name

    return get


@pytest.fixture(scope="session")
def marian(unpacked):
    """The folder of MarianMT."""
    return unpacked("marian")


@pytest.fixture(scope="session")
def expected(marian):
    """What transformers makes of it."""
    return expected_of(marian)


@pytest.fixture(scope="session")
def read_expected():
    """Reads what transformers makes of a model."""
    return expected_of


def expected_of(folder):
    """What transformers makes of a model."""
    with np.load(folder / "expected.npz") as arrays:
        return json.loads((folder / "expected.json").read_text("utf-8")) | dict(arrays)


@pytest.fixture(scope="session")
def imported(marian, tmp_path_factory):
    """The run directory that it becomes."""
    return import_model(marian, tmp_path_factory.mktemp("runs") / "marian").path


@pytest.fixture
def changed(unpacked, tmp_path):
    """Makes a copy of a folder with other settings, other tensors, other JSON files, or without some files."""

    def change(config=None, tensors=None, files=None, without=(), name="changed", of="marian"):
        folder = shutil.copytree(unpacked(of), tmp_path / name)
        if config:
            settings = json.loads((folder / "config.json").read_text("utf-8"))
            (folder / "config.json").write_text(json.dumps(settings | config), "utf-8")
        if tensors:
            there = load_file(folder / "model.safetensors")
            tensors(there)
            save_file(there, folder / "model.safetensors")
        for file, content in (files or {}).items():
            (folder / file).write_text(json.dumps(content), "utf-8")
        for file in without:
            (folder / file).unlink()
        return folder

    return change


@pytest.fixture
def refuses(changed, tmp_path, capsys):
    """Imports a changed folder: it must be refused in one line, with nothing left of the run."""

    def check(change, said):
        folder, run = changed(**change), tmp_path / "run"
        assert main(["import", str(folder), "--run-dir", str(run)]) == 2
        error = capsys.readouterr().err
        assert said in error and error.count("\n") == 1
        assert not run.exists() and [path.name for path in tmp_path.iterdir()] == ["changed"]

    return check
