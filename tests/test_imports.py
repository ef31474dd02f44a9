"""Imports run one way, and the layers are pure Keras."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "tf_transformer"
ORDER = [
    {
        "errors",
        "registration",
        "config",
        "quiet",
        "checkpoints",
        "layers",
        "decoding",
        "descriptions",
        "evaluation",
        "corpus",
        "lock",
        "strings",
        "model_card",
        "whole",
    },
    {"model", "tokenizers", "settings", "serving"},
    {"data", "run_directory", "arguments", "search", "warm_up"},
    {"averaged_checkpoints", "weights"},
    {"translator", "averaging"},
    {"training", "export", "ctranslate2_export"},
    {"commands"},
    {"cli"},
    {"__main__"},
]
"""A part may import parts of the lines above it, and those of the first line each other where it is said below."""
MAY_IMPORT = {
    **{part: {"errors"} for part in ("config", "corpus", "evaluation", "lock")},
    **{part: {"errors", "whole"} for part in ("checkpoints", "descriptions")},
}
PURE_KERAS = {"keras", "math", "typing", "collections", "tf_transformer"}


def parts():
    for file in sorted(PACKAGE.rglob("*.py")):
        if file.parent != PACKAGE or file.name != "__init__.py":
            yield file.relative_to(PACKAGE).with_suffix("").parts[0], file


def imported(file):
    """The modules that a file imports anywhere."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative import"
            if node.module == "tf_transformer":
                yield from (f"tf_transformer.{alias.name}" for alias in node.names)
            else:
                yield node.module or ""


def test_every_part_has_its_place():
    assert {part for part, _ in parts()} == set().union(*ORDER)


@pytest.mark.parametrize(("part", "file"), list(parts()), ids=lambda x: x if isinstance(x, str) else x.name)
def test_imports_run_one_way(part, file):
    level = next(i for i, line in enumerate(ORDER) if part in line)
    allowed = set().union({part}, *ORDER[:level], MAY_IMPORT.get(part, set()))
    for module in imported(file):
        if module.startswith("tf_transformer."):
            name = module.split(".")[1]
            assert name in allowed or name == "__version__", f"{part} imports {name}"


@pytest.mark.parametrize("part", ["decoding", "tokenizers", "data"])
def test_search_tokenizers_and_data_know_no_model(part):
    for _, file in (pair for pair in parts() if pair[0] == part):
        model = ("tf_transformer.model", "tf_transformer.layers", "keras")
        assert not [module for module in imported(file) if module.startswith(model)]


@pytest.mark.parametrize("part", ["layers", "model"])
def test_layers_and_model_are_pure_keras(part):
    for _, file in (pair for pair in parts() if pair[0] == part):
        assert {module.split(".")[0] for module in imported(file)} <= PURE_KERAS
