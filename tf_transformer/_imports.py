"""Imports that wait until they are needed: names of packages, and our classes in Keras's files.

TensorFlow takes seconds to import, and much that stands beside what needs it does without. Keras looks for the classes
of a `.keras` file among those registered, and imports no foreign module. So a stand-in is registered under each name:
asked for an object, it imports the class.
"""

import importlib
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

MODULES = {
    "tf_transformer.model": (
        "Decoder",
        "DecoderLayer",
        "Encoder",
        "EncoderLayer",
        "FeedForward",
        "MultiHeadAttention",
        "Transformer",
    ),
    "tf_transformer.model.layer_norm": ("LayerNorm",),
    "tf_transformer.model.linear": ("Linear",),
    "tf_transformer.model.embeddings": ("PositionalEmbedding", "TokenEmbedding"),
    "tf_transformer.model.residual": ("Residual",),
    "tf_transformer.training": (
        *("Adam", "Muon", "NoamSchedule", "Perplexity", "SmoothedCrossEntropy", "TokenAccuracy", "TokenLoss"),
    ),
    "tf_transformer.training.schedule": ("ScaledSchedule", "LinearWarmup"),
}


def lazily(package: str, homes: Mapping[str, Iterable[str]]) -> Callable[[str], Any]:
    """Return the `__getattr__` of a package.

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


def register() -> None:
    """Register the stand-ins now, or as soon as Keras is imported."""
    if "keras" in sys.modules:
        _register()
    else:
        sys.meta_path.insert(0, _AfterKeras)


def _register() -> None:
    known = sys.modules["keras"].saving.get_custom_objects()
    for module, names in MODULES.items():
        for name in names:
            known.setdefault(f"tf_transformer>{name}", _stand_in(module, name))


def _stand_in(module: str, name: str) -> type:
    def from_config(config: dict[str, Any]) -> Any:
        return getattr(importlib.import_module(module), name).from_config(config)

    return type(name, (), {"from_config": staticmethod(from_config)})


class _AfterKeras:
    """An import hook that acts when Keras has been imported. It imports nothing, so it waits for no lock."""

    @classmethod
    def find_spec(cls, name: str, path: Any = None, target: Any = None) -> Any:
        if name != "keras":
            return None
        for finder in sys.meta_path:
            if finder is cls:
                continue
            spec = finder.find_spec(name, path, target)
            if spec is not None and spec.loader is not None:
                run = spec.loader.exec_module

                def run_and_register(module: Any, run: Any = run) -> None:
                    run(module)
                    _register()
                    if cls in sys.meta_path:
                        sys.meta_path.remove(cls)

                spec.loader.exec_module = run_and_register  # type: ignore[method-assign]
                return spec
        return None
