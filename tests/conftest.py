"""What several tests share."""

import os
from pathlib import Path

import pytest

from tf_transformer.cli import main

# As the command line sets them before it imports TensorFlow, which the tests import first.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")


def pytest_itemcollected(item: pytest.Item) -> None:
    """Keep the tests that share a trained run in one process, so that it is trained once; files stay together."""
    shares = "copy_run" in getattr(item, "fixturenames", ())
    item.add_marker(pytest.mark.xdist_group("copy_run" if shares else item.path.name))


MULTI30K = Path(__file__).parents[2] / "shared" / "data" / "multi30k"


@pytest.fixture(scope="session")
def multi30k() -> Path:
    """The folder of real parallel text."""
    if not MULTI30K.is_dir():
        pytest.skip("no Multi30k beside the repository")
    return MULTI30K


@pytest.fixture(scope="session")
def copy_run(tmp_path_factory) -> Path:
    """A run that has learned to copy, trained by the command line as a user would."""
    run = tmp_path_factory.mktemp("runs") / "copy"
    config = Path(__file__).parents[1] / "scripts" / "copy.toml"
    assert main(["train", "--data", "copy", "--config", str(config), "--run-dir", str(run)]) == 0
    return run


@pytest.fixture(scope="session")
def copy_export(copy_run, tmp_path_factory) -> Path:
    """Its SavedModel."""
    output = tmp_path_factory.mktemp("saved_models") / "copy" / "1"
    assert main(["export", "--run-dir", str(copy_run), "--output", str(output)]) == 0
    return output
