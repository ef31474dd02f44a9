"""Imports run one way, and the layers are pure Keras."""

import ast
import importlib
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "tf_transformer"
ORDER = [
    {"_imports", "errors", "version"},
    {"config", "decoding", "evaluation", "progress", "storage"},
    {"model", "plotting", "tokenizers"},
    {"text"},
    {"data", "runs"},
    {"litert"},
    {"translation"},
    {"export", "importers", "serving", "training"},
    {"commands"},
    {"beam"},
    {"__main__"},
]
"""A part may import itself and parts of the lines above it."""
SERVING_MAY_IMPORT = {
    "decoding.search_tree",
    "errors",
    "litert",
    "runs.descriptions",
    "runs.signatures",
    "serving",
    "storage.atomic",
    "text.alignment",
    "text.batching",
    "text.documents",
    "text.glossary",
    "version",
}
"""Serving knows no model: what it serves is an export."""
PURE_KERAS = {"keras", "collections", "functools", "itertools", "math", "typing", "tf_transformer"}


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
    allowed = {part}.union(*ORDER[:level])
    for module in imported(file):
        assert module != "tf_transformer", f"{file} imports the root, which stands above all"
        if module.startswith("tf_transformer."):
            assert module.split(".")[1] in allowed, f"{part} imports {module}"


def test_serving_imports_no_model_code():
    for _, file in (pair for pair in parts() if pair[0] == "serving"):
        for module in imported(file):
            ours, _, name = module.partition(".")
            if ours == "tf_transformer":
                assert name in SERVING_MAY_IMPORT or name.split(".")[0] in SERVING_MAY_IMPORT, f"{file} imports {name}"


@pytest.mark.parametrize("part", ["decoding", "tokenizers", "data"])
def test_search_tokenizers_and_data_know_no_model(part):
    for _, file in (pair for pair in parts() if pair[0] == part):
        assert not [module for module in imported(file) if module.startswith(("tf_transformer.model", "keras"))]


def test_the_model_is_pure_keras():
    for _, file in (pair for pair in parts() if pair[0] == "model"):
        assert {module.split(".")[0] for module in imported(file)} <= PURE_KERAS


@pytest.mark.parametrize("package", ["", ".data", ".decoding", ".evaluation", ".tokenizers"])
def test_no_module_hides_a_name_that_is_imported_when_it_is_used(package):
    """The import system sets a module as an attribute of its package, over what `__getattr__` would give."""
    folder = PACKAGE / package.removeprefix(".")
    names = importlib.import_module(f"tf_transformer{package}").__all__
    assert not {path.stem for path in folder.iterdir()} & set(names)
