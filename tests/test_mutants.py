"""The wrong versions of the core that scripts/mutants.py tries, which takes hours, fit the code as it is."""

import importlib.util
import tomllib
from pathlib import Path

SCRIPT = Path(__file__).parents[1] / "scripts" / "mutants.py"


def test_every_mutant_changes_code_that_is_there_and_is_tested():
    spec = importlib.util.spec_from_file_location("mutants", SCRIPT)
    mutants = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(mutants)
    areas = tomllib.loads(SCRIPT.with_suffix(".toml").read_text("utf-8"))["areas"]
    mutants.check(areas)
    tests = [test for area in areas for test in area["tests"]]
    assert [test for test in tests if not (SCRIPT.parents[1] / test).exists()] == []
