"""Export to a folder of static files with which a browser translates: a page, its scripts, LiteRT and the model."""

import gzip
import hashlib
import json
import shutil
import typing
from pathlib import Path
from typing import Any

from tf_transformer.config import DecodingConfig
from tf_transformer.config.overrides import field_of, hint_of
from tf_transformer.export import litert, web_runtime
from tf_transformer.export.model_card import web_card
from tf_transformer.runs.descriptions import LITERT_MODEL, OF_LITERT
from tf_transformer.runs.directory import RunDirectory
from tf_transformer.storage.atomic import atomic_write, refuse_existing
from tf_transformer.tokenizers.normalization import INVISIBLE_CLASS

SCRIPTS = Path(__file__).parent / "page"
SHARED = Path(__file__).parents[1] / "serving" / "http" / "page"
"""The page of the server, which is that of this export too. It asks a translator by `ask.js`, of which each has one."""
RUNTIME = "runtime"
CONTENTS = "contents.js"
PAGE, PACKED = (".html", ".css", ".js"), ".gz"
BLANKS = INVISIBLE_CLASS.replace("\\x", "\\u")
"""The characters of a blank line, as JavaScript writes such a class."""
SETTINGS = (
    *("beam_size", "length_penalty", "length_penalty_offset", "coverage_penalty", "early_stopping", "likely_stopping"),
    *("max_source_length", "max_extra_length", "max_length", "min_length", "no_repeat_ngram", "ban_unknown"),
)
"""The settings of the search that act in a browser. Languages have options of their own there."""
TYPES = {bool: "boolean", int: "integer", float: "number"}


def export(
    run_dir: str | Path | RunDirectory,
    output: str | Path,
    decoding: DecodingConfig | None = None,
    quantize: str = "int8",
) -> Path:
    """Export the best checkpoint of a run for browsers. The export is written beside its place, then renamed.

    Any web server serves the folder, which needs nothing from elsewhere. docs/devices.md describes it.

    Args:
        run_dir: the path of the run, or its `RunDirectory`.
        output: a new folder.
        decoding: how to search; by default as the run does.
        quantize: as for `litert.export`.

    Raises:
        InputError: LiteRT.js is not installed; the output exists; the run directory is not ours or has no checkpoint;
            a search that samples; an activation that LiteRT does not have.
    """
    output = Path(output)
    refuse_existing(output)
    runtime = web_runtime.find()
    run = run_dir if isinstance(run_dir, RunDirectory) else RunDirectory(run_dir)
    with atomic_write(output) as beside:
        litert.save_run(run, beside, output.name, decoding, quantize)
        complete(beside, output.name, runtime)
    return output


def complete(folder: Path, name: str, runtime: Path) -> None:
    """Make a folder with an export for LiteRT one for browsers.

    Args:
        folder: the folder.
        name: what the page calls the model.
        runtime: the folder of LiteRT.js.
    """
    for scripts in (SHARED, SCRIPTS):
        shutil.copytree(scripts, folder, dirs_exist_ok=True)
    web_runtime.copy(runtime, folder / RUNTIME)
    description = _pack(folder, name)
    (folder / "README.md").write_text(web_card(description, OF_LITERT.as_posix()), "utf-8")
    (folder / CONTENTS).write_text(_contents(folder), "utf-8")


def _pack(folder: Path, name: str) -> dict[str, Any]:
    """Pack the model and its tokenizers by gzip, and return the description with what the scripts must know."""
    description: dict[str, Any] = json.loads((folder / OF_LITERT).read_text("utf-8"))
    tokenizers = set(description["litert"]["tokenizers"])
    for file in (LITERT_MODEL, *tokenizers):
        (folder / f"{file}{PACKED}").write_bytes(gzip.compress((folder / file).read_bytes(), mtime=0))
        (folder / file).unlink()
    packed = sorted(folder.rglob(f"*{PACKED}"))
    description["web"] = {
        "name": name,
        "blanks": BLANKS,
        "settings": {name: _range(name) for name in SETTINGS},
        "sizes": {file.relative_to(folder).as_posix(): file.stat().st_size for file in packed},
    }
    (folder / OF_LITERT).write_text(json.dumps(description, indent=1) + "\n", "utf-8")
    return description


def _range(name: str) -> dict[str, Any]:
    """Return what a setting of the search may be, as `settings.js` reads it."""
    hint = hint_of("decoding", name)
    kind, *others = typing.get_args(hint) or (hint,)
    return {"type": TYPES[kind], "or_null": bool(others), "bounds": field_of("decoding", name).metadata["bounds"]}


def _contents(folder: Path) -> str:
    """Return a script that names the files of the page, and a version which changes with any of them."""
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    version = hashlib.sha256()
    for file in files:
        version.update(f"{file.relative_to(folder)}\0{hashlib.sha256(file.read_bytes()).hexdigest()}\n".encode())
    # Nothing that a browser does not load: a web server that holds back README.md would make it keep none of them.
    needed = [file for file in files if file.suffix in (*PAGE, PACKED) or file.name == OF_LITERT.name]
    # A browser keeps the model when it loads it, and of LiteRT the one build that it loads.
    loaded = [file for file in needed if file.suffix == PACKED or file.parent.name == RUNTIME]
    page = [file for file in needed if file not in loaded]
    contents = {
        "version": version.hexdigest()[:16],
        "page": ["./", CONTENTS, *(file.relative_to(folder).as_posix() for file in page)],
        "loaded": [file.relative_to(folder).as_posix() for file in loaded],
    }
    return f"self.CONTENTS = {json.dumps(contents, indent=1)};\n"
