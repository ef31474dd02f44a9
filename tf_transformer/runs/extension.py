"""Whether a run can be extended; without TensorFlow."""

import re
from collections.abc import Mapping
from pathlib import Path

from tf_transformer.errors import InputError, unknown
from tf_transformer.runs.directory import RunDirectory


def check_extension(run: RunDirectory, output: str | Path, languages: Mapping[str, str]) -> None:
    """Check that a run can be extended, and get languages, each of which starts as another.

    Raises:
        InputError: the output exists; the run has no checkpoint or no tokens of languages; a new language is there, or
            is no name; the other one is not there.
    """
    if Path(output).exists():
        raise InputError(f"{output} exists: give another --output, or remove it")
    if languages and not run.languages:
        raise InputError(f"{run.path} translates in one direction, without tokens of languages: none can be added")
    run.best_checkpoint()
    for new, old in languages.items():
        if new in run.languages or not re.fullmatch(r"[\w-]+", new):
            raise InputError(f"a new language must be a name that {run.path} does not have. Received: {new!r}")
        if old not in run.languages:
            raise unknown("language", old, run.languages)
