"""Asks whether the tests notice wrong versions of the core, which scripts/mutants.toml lists.

    python scripts/mutants.py [--area NAME]

Each mutant is put into a copy of the repository, and the tests of its area run there until one fails: first the quick
ones, then the long ones. Those that no test fails are listed at the end: each needs a law, or a reason.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[1]
PACKAGE = "tf_transformer"
NO_TEST = 5
"""What pytest ends with if it finds none."""
SECONDS = {"not long": 600, "long": 1800}
"""More than the tests of an area take: a mutant that loops for ever is noticed, too."""


def main() -> None:
    """Run the tests of each area as they are, and then for each of its mutants."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--area", help="the only area to try")
    only = parser.parse_args().area
    areas = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))["areas"]
    chosen = [area for area in areas if only in (None, area["name"])]
    if not chosen:
        sys.exit(f"there is no area {only!r}: choose one of {', '.join(area['name'] for area in areas)}")
    check(chosen)
    survivors = []
    with tempfile.TemporaryDirectory() as folder:
        copy = copied(Path(folder))
        for area in chosen:
            started = time.monotonic()
            if not passes(copy, area["tests"], "not long"):
                sys.exit(f"the tests of {area['name']} fail without any mutant")
            print(f"{area['name']}: {len(area['mutants'])} mutants; {time.monotonic() - started:.0f} s without one")
            survivors += [name for mutant in area["mutants"] if (name := survives(copy, area["tests"], mutant))]
    total = sum(len(area["mutants"]) for area in chosen)
    print(f"{total - len(survivors)} of {total} mutants were noticed", *survivors, sep="\n")


def check(areas: list[dict[str, Any]]) -> None:
    """End with an error if the code that a mutant changes is no longer there, or there more than once."""
    for area in areas:
        for mutant in area["mutants"]:
            if (count := (REPOSITORY / PACKAGE / mutant["file"]).read_text("utf-8").count(mutant["old"])) != 1:
                sys.exit(f"{mutant['file']} has {count} times what a mutant replaces: {mutant['old']}")


def copied(folder: Path) -> Path:
    """Return a copy of the files of the repository, in a folder."""
    files = subprocess.run(["git", "ls-files"], cwd=REPOSITORY, check=True, capture_output=True, text=True)
    for name in files.stdout.splitlines():
        place = folder / "repository" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(REPOSITORY / name, place)
    return folder / "repository"


def passes(copy: Path, tests: list[str], kind: str) -> bool:
    """Say whether all tests of a kind, "long" or "not long", pass in time."""
    seconds, environment = SECONDS[kind], os.environ | {"PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-m", kind, *tests]
    try:
        done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        return False
    if done.returncode == NO_TEST:
        return True
    if done.returncode > 2:  # neither failures nor errors of collection
        sys.exit(done.stdout.decode() + done.stderr.decode())
    return done.returncode == 0


def survives(copy: Path, tests: list[str], mutant: dict[str, str]) -> str | None:
    """Return the name of a mutant that no test notices."""
    place = copy / PACKAGE / mutant["file"]
    before = place.read_text("utf-8")
    place.write_text(before.replace(mutant["old"], mutant["new"]), "utf-8")
    started = time.monotonic()
    try:
        survived = passes(copy, tests, "not long") and passes(copy, tests, "long")
    finally:
        place.write_text(before, "utf-8")
    name = f"{mutant['file']}: {mutant['old']!r} -> {mutant['new']!r}"
    print(f"  {time.monotonic() - started:4.0f} s {'SURVIVES' if survived else 'noticed'} {name}", flush=True)
    return name if survived else None


if __name__ == "__main__":
    main()
