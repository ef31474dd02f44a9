"""Seconds from nothing: whole processes, one after the other."""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.decode import FORCED, make
from benchmarks.peer import ENVIRONMENT, Row

TRANSLATE = """
import sys, tensorflow as tf, tensorflow_text
translate = tf.saved_model.load(sys.argv[1]).signatures["serving_default"]
"""
CTRANSLATE2 = """
import sys, ctranslate2
translator = ctranslate2.Translator(sys.argv[1], intra_threads=int(sys.argv[2]))
"""


def measure(options: argparse.Namespace) -> Iterator[Row]:
    """Yield a row for imports, for the command line, for loading a `base` model and for its first translation."""

    def python(code: str, *arguments: str) -> list[str]:
        return [sys.executable, "-c", code, *arguments]

    imports = ("tf_transformer", "tensorflow", "keras_hub", "torch", "ctranslate2")
    yield _row("import", {name: python(f"import {name}") for name in imports}, options.rounds)
    command = str(Path(sys.executable).with_name("tf-transformer"))
    yield _row(
        "command line", {f"tf-transformer {word}": [command, word] for word in ("--help", "--version")}, options.rounds
    )
    with tempfile.TemporaryDirectory() as folder:
        spec = FORCED | {"folder": folder, "threads": options.threads, "preset": "base"}
        make(spec, {"ours": {"max_length": FORCED["target"]}})
        export, converted = f"{folder}/ours 4", f"{folder}/ctranslate2"
        threads = str(options.threads)
        loading = {"ours": python(TRANSLATE, export), "CTranslate2": python(CTRANSLATE2, converted, threads)}
        yield _row("load base from nothing", loading, options.rounds)
        length = FORCED["target"]
        first = {
            "ours": python(TRANSLATE + 'translate(text=tf.constant(["abc"]))["translation"].numpy()', export),
            "CTranslate2": python(
                CTRANSLATE2 + f'translator.translate_batch([["abc"]], beam_size=4, max_decoding_length={length})',
                converted,
                threads,
            ),
        }
        yield _row("load base and translate a first sentence, beam 4", first, options.rounds)


def _row(work: str, commands: dict[str, list[str]], rounds: int) -> Row:
    figures: dict[str, list[float]] = {name: [] for name in commands}
    for i in range(rounds + 1):
        for name, command in commands.items():
            start = time.perf_counter()
            subprocess.run(command, check=True, capture_output=True, env=ENVIRONMENT)
            if i:  # once to read the files
                figures[name].append(time.perf_counter() - start)
    return Row(f"start-up: {work}", "seconds", figures, {})
