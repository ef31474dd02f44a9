"""A MarianMT model that transformers 5.23 has trained on the toy corpus, by scripts/oracles/marian.py.

python scripts/oracles/marian.py --data TOY --steps 3000 --sentences 40 --vocabulary 160 --width 32 --output marian
"""

import json
import shutil
import tarfile
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from tf_transformer.importers.opening import import_model

SAMPLE = Path(__file__).with_name("marian.tar.xz")


@pytest.fixture(scope="session")
def marian(tmp_path_factory):
    """The folder, as transformers has written it."""
    folder = tmp_path_factory.mktemp("pretrained")
    with tarfile.open(SAMPLE) as archive:
        archive.extractall(folder, filter="data")
    return folder / "marian"


@pytest.fixture(scope="session")
def expected(marian):
    """What transformers makes of it."""
    with np.load(marian / "expected.npz") as arrays:
        return json.loads((marian / "expected.json").read_text("utf-8")) | dict(arrays)


@pytest.fixture(scope="session")
def imported(marian, tmp_path_factory):
    """The run directory that it becomes."""
    return import_model(marian, tmp_path_factory.mktemp("runs") / "marian").path


@pytest.fixture
def changed(marian, tmp_path):
    """Makes a copy of the folder with other settings, other tensors, or without some files."""

    def change(config=None, tensors=None, without=(), name="changed"):
        folder = shutil.copytree(marian, tmp_path / name)
        if config:
            settings = json.loads((folder / "config.json").read_text("utf-8"))
            (folder / "config.json").write_text(json.dumps(settings | config), "utf-8")
        if tensors:
            there = load_file(folder / "model.safetensors")
            tensors(there)
            save_file(there, folder / "model.safetensors")
        for file in without:
            (folder / file).unlink()
        return folder

    return change
