"""Packages whose names are imported when they are first used."""

import importlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any


def lazily(package: str, homes: Mapping[str, Iterable[str]]) -> Callable[[str], Any]:
    """Return the `__getattr__` of a package.

    TensorFlow takes seconds to import, and much that stands beside what needs it does without.

    Args:
        package: the name of the package.
        homes: the names to import, by the modules that define them.
    """
    module_of = {name: module for module, names in homes.items() for name in names}

    def get(name: str) -> Any:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(module_of[name]), name)

    return get
