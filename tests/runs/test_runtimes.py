"""What is known of this machine."""

import os
import re
from pathlib import Path

import pytest

from tf_transformer.runs.runtimes import cores

PACKAGE = Path(__file__).parents[2] / "tf_transformer"


def test_the_cores_are_those_that_this_process_may_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    assert cores() == len(os.sched_getaffinity(0))
    monkeypatch.delattr(os, "sched_getaffinity")  # as on a Mac
    assert cores() == 64


def test_cores_are_counted_in_one_place() -> None:
    texts = {file.name: file.read_text("utf-8") for file in PACKAGE.rglob("*.py")}
    assert [name for name, text in texts.items() if re.search("getaffinity|cpu_count", text)] == ["runtimes.py"]
