"""What several tests share."""

import os
from pathlib import Path

import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

MULTI30K = Path(__file__).parents[2] / "shared" / "data" / "multi30k"


@pytest.fixture(scope="session")
def multi30k() -> Path:
    """The folder of real parallel text."""
    if not MULTI30K.is_dir():
        pytest.skip("no Multi30k beside the repository")
    return MULTI30K
