"""This machine, which runtime translates with a model, and whether an export beside it is faster here."""

import os
import platform
from pathlib import Path
from typing import Any

from tf_transformer.errors import InputError
from tf_transformer.runs.descriptions import describe, is_litert

LITERT_WITHIN = "litert"
"""The folder of the export for LiteRT within a SavedModel, where both are written under one version."""
SPEEDS = "sentences_per_second"
"""The key, in the description of such a SavedModel, of what was measured when it was written."""
WORTH_SAYING = 2.0
"""How many times as fast another export must be to be named."""


def cpu() -> str:
    """Return the name of this machine's CPU, as far as the system says it."""
    file = Path("/proc/cpuinfo")
    lines = file.read_text("utf-8", "replace").splitlines() if file.exists() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, "") or platform.processor() or platform.machine()


def cores() -> int:
    """Return the number of cores that this process may use; not every system says which these are."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def runtime_of(path: Path) -> str:
    """Return the name of the runtime that translates with a model."""
    return "LiteRT" if is_litert(path) else "TensorFlow"


def faster_than(path: Path) -> str | None:
    """Return what is to be said of a faster export beside a model; None if none is known."""
    speeds = _speeds(path)
    if speeds.get("cpu") != cpu() or speeds["litert"] < WORTH_SAYING * speeds["saved_model"]:
        return None
    times = speeds["litert"] / speeds["saved_model"]
    return f"{path / LITERT_WITHIN}, the same model for LiteRT, was {times:.1f} times as fast on this CPU"


def _speeds(path: Path) -> dict[str, Any]:
    if not is_litert(path / LITERT_WITHIN):
        return {}
    try:
        speeds: dict[str, Any] = describe(path).get(SPEEDS, {})
    except InputError:  # another writer's SavedModel, or a damaged description, of which a server warns
        return {}
    return speeds
