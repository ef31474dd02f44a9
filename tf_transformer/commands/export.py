"""`tf-transformer export`."""

import argparse
import importlib
import importlib.util
from pathlib import Path
from typing import NamedTuple

from tf_transformer import config
from tf_transformer.commands.common.checks import check_place
from tf_transformer.commands.common.chosen_model import add_search, search_given
from tf_transformer.commands.common.quiet_tensorflow import import_tensorflow
from tf_transformer.commands.common.resolve import warn_of_idle
from tf_transformer.errors import InputError, missing_extra
from tf_transformer.runs.descriptions import is_export, is_web
from tf_transformer.storage.atomic import refuse_existing, refuse_inside

SUMMARY = "Write a run as a SavedModel from strings to strings, or for LiteRT, browsers or CTranslate2."
EXAMPLE = "tf-transformer export --run-dir runs/toy --output saved_models/toy/1"


class Format(NamedTuple):
    """What a run can be written as, by `export` in the module of `tf_transformer.export` that is called like it."""

    runtime: str
    """what reads it"""
    package: str | None = None
    """what must be installed for writing it, besides TensorFlow, by the extra that is called like the format"""
    no_search: str | None = None
    """why it takes no settings of the search, where it takes none"""
    no_dtype: str | None = None
    """why it takes no other type than float32, where it takes none"""
    no_xla: str | None = None
    """why it takes no `--jit-compile`, where it takes none"""
    quantizes: bool = False
    """whether it has weights of fewer bits, by `--quantize`"""
    extra: str | None = None
    """the extra that installs the package, where it is not called like the format"""
    found_by: str | None = None
    """the module beside it that finds what else must be installed, or refuses"""


QUANTIZED = ("int8", "float16", "float32")
FORMATS = {
    "saved_model": Format("TensorFlow"),
    "ctranslate2": Format(
        "CTranslate2",
        package="ctranslate2",
        no_search="CTranslate2 is told how to search when it is called, not when the model is written",
        no_dtype="CTranslate2 chooses its type when it loads a model (compute_type)",
    ),
    "litert": Format(
        "LiteRT, on phones, small boards and CPUs",
        package="ai_edge_litert",
        no_dtype="LiteRT takes --quantize instead",
        no_xla="LiteRT has no XLA, which --jit-compile is for",
        quantizes=True,
    ),
    "web": Format(
        "browsers, as a page that translates without a server",
        package="ai_edge_litert",
        no_dtype="LiteRT takes --quantize instead",
        no_xla="LiteRT has no XLA, which --jit-compile is for",
        quantizes=True,
        extra="litert",
        found_by="web_runtime",
    ),
    "all": Format(
        "TensorFlow and LiteRT, side by side in one version",
        package="ai_edge_litert",
        quantizes=True,
        extra="litert",
    ),
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    parser.add_argument(
        "--run-dir",
        required=True,
        action="append",
        metavar="DIR",
        help="a trained run; several, by --run-dir A --run-dir B, become one SavedModel that translates as an ensemble",
    )
    parser.add_argument("--output", required=True, metavar="DIR", help="a new folder, such as saved_models/NAME/1")
    runtimes = ", or ".join(
        form.runtime + (f" (needs the extra {form.extra or name})" if form.package else "")
        for name, form in FORMATS.items()
    )
    parser.add_argument(
        "--format",
        choices=tuple(FORMATS),
        default="saved_model",
        help=f"the runtime of the export: {runtimes} (default: saved_model)",
    )
    parser.add_argument(
        "--dtype",
        choices=("float32", "bfloat16"),
        default="float32",
        help="type of the weights and of the computation; bfloat16 is half as large, and faster on CPUs that have it, "
        "but its translations are not quite the same (default: float32)",
    )
    parser.add_argument(
        "--quantize",
        choices=QUANTIZED,
        help="type of the weights for LiteRT, with --format litert, web or all; int8 is the fastest, and a quarter "
        f"of the size (default: {QUANTIZED[0]})",
    )
    add_search(parser, "of the export, which cannot be changed later in a SavedModel")


def run(options: argparse.Namespace) -> None:
    """Write a run in the form that a runtime reads."""
    output = Path(options.output)
    refuse_existing(output)
    check_place("--output", options.output)
    if is_export(output.parent):
        raise InputError(
            f"{output.parent} is an export, so it takes no versions. Give another --output, or move it to "
            f"{output.parent}/1 first"
        )
    if is_web(output.parent):
        raise InputError(f"{output.parent} is an export for browsers, which holds no other: give another --output")
    from tf_transformer.runs.directory import RunDirectory  # NumPy takes a while

    runs = [RunDirectory(folder) for folder in options.run_dir]
    for run in runs:
        refuse_inside(run.path, [("--output", options.output)], "it would go with the run. Give a folder outside")
        run.best_checkpoint()  # refused before TensorFlow is imported
    trained = runs[0]
    given = search_given(options)
    form = FORMATS[options.format]
    if given and form.no_search:
        raise InputError(f"{form.no_search}. Received: {', '.join(sorted(given))}")
    if options.dtype != "float32" and form.no_dtype:
        raise InputError(f"{form.no_dtype}. Received: --dtype {options.dtype}")
    compiled = [name for name, layer in given.items() if layer["decoding"].get("jit_compile")]
    if compiled and form.no_xla:
        raise InputError(f"{form.no_xla}. Received: {compiled[0]} with --format {options.format}")
    if len(runs) > 1 and options.format != "saved_model":
        raise InputError(f"only a SavedModel holds an ensemble: give one --run-dir. Received: {len(runs)}")
    if options.quantize and not form.quantizes:
        raise InputError(f"--quantize is for --format litert, web and all. Received: --format {options.format}")
    if form.package and importlib.util.find_spec(form.package) is None:
        raise missing_extra(f"--format {options.format}", form.extra or options.format)
    if form.found_by:
        importlib.import_module(f"tf_transformer.export.{form.found_by}").find()
    resolved = config.override(trained.config, *given.values())
    warn_of_idle(resolved, given.values())
    decoding = resolved.decoding
    decoding.check_languages(trained.languages)
    if not form.no_search:
        decoding.check_directed(trained.languages)
    import_tensorflow()
    writer = importlib.import_module(f"tf_transformer.export.{options.format}")
    kind = {} if form.no_dtype else {"dtype": options.dtype}
    if form.quantizes:
        kind["quantize"] = options.quantize or QUANTIZED[0]
    source = runs if len(runs) > 1 else trained
    print(f"exported: {writer.export(source, options.output, decoding, **kind)}")
