"""Imports run one way, and the layers are pure Keras."""

import ast
import importlib
import re
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "tf_transformer"
PURE_KERAS = {"keras", "collections", "functools", "itertools", "math", "typing", "tf_transformer"}


def table():
    """The parts in the table of CONTRIBUTING.md, each with what it imports, from the top to the bottom."""
    for line in (PACKAGE.parent / "CONTRIBUTING.md").read_text("utf-8").splitlines():
        row = re.fullmatch(r"\| `([\w./]+)` \| .+ \| ?((?:`[\w./]+`(?:, )?)*) ?\|", line)
        if row and (PACKAGE / row[1]).exists():
            yield row[1].removesuffix("/").removesuffix(".py"), re.findall(r"`(.+?)`", row[2])


TABLE = dict(table())


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


def test_every_part_has_its_row():
    assert {part for part, _ in parts()} == set(TABLE)


@pytest.mark.parametrize("part", TABLE)
def test_imports_run_one_way_and_are_those_of_the_table(part):
    below = [*TABLE][[*TABLE].index(part) + 1 :]
    assert {name.partition("/")[0] for name in TABLE[part]} <= set(below)
    used = set()
    for file in (file for owner, file in parts() if owner == part):
        for module in imported(file):
            assert module != "tf_transformer", f"{file} imports the root, which stands above all"
            path = module.replace(".", "/").partition("tf_transformer/")[2]
            if path and path.split("/")[0] != part:
                row = [name for name in TABLE[part] if f"{path}/".startswith(f"{name}/")]
                assert row, f"{file} imports {module}, which is not in its row of CONTRIBUTING.md"
                used.update(row)
    assert used == set(TABLE[part]), "the row names what is not imported"


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
