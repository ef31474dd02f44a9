"""Start-up: the seconds and the memory of whole processes, one after the other."""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.decode import FORCED, PEERS, random_base
from benchmarks.peer import ENVIRONMENT, Row

TRANSLATE = """
import sys, tensorflow as tf, tensorflow_text
translate = tf.saved_model.load(sys.argv[1]).signatures["serving_default"]
"""
FIRST = TRANSLATE + 'translate(text=tf.constant(["abc"]))["translation"].numpy()'
CTRANSLATE2 = """
import sys, ctranslate2
translator = ctranslate2.Translator(sys.argv[1], compute_type=sys.argv[2], intra_threads=int(sys.argv[3]))
"""
CTRANSLATE2_FIRST = (
    CTRANSLATE2 + f'translator.translate_batch([["abc"]], beam_size=4, max_decoding_length={FORCED["target"]})'
)
LITERT = """
import sys
from tf_transformer.litert import Translator
translator = Translator.load(sys.argv[1], threads=int(sys.argv[2]))
"""
LITERT_FIRST = LITERT + 'translator.translate_strings(["abc"])'
LITERT_EXPORT = "ours, LiteRT int8"


def measure(options: argparse.Namespace) -> Iterator[Row]:
    """Yield a row for imports, for the command line, for loading a `base` model and for its first translation."""
    imports = ("tf_transformer", "tensorflow", "keras_hub", "torch", "ctranslate2")
    yield _row("import", {name: _python(f"import {name}") for name in imports}, options.rounds)
    yield command_line("--help", options.rounds)
    yield command_line("--version", options.rounds)
    searches, litert = {"ours": {"max_length": FORCED["target"]}}, {LITERT_EXPORT: "int8"}
    with random_base(options.threads, searches, litert) as (spec, _):
        place = (f"{spec['folder']}/{LITERT_EXPORT}", str(options.threads))
        load = _commands(spec, PEERS, TRANSLATE, CTRANSLATE2) | {LITERT_EXPORT: _python(LITERT, *place)}
        yield _row("load base", load, options.rounds)
        first = _commands(spec, PEERS, FIRST, CTRANSLATE2_FIRST) | {LITERT_EXPORT: _python(LITERT_FIRST, *place)}
        yield from _rows("base, a first sentence", first, options.rounds)


def command_line(word: str, rounds: int) -> Row:
    """Return the row of `tf-transformer` with one argument."""
    command = str(Path(sys.executable).with_name("tf-transformer"))
    return _row(f"tf-transformer {word}", {"ours": [command, word]}, rounds)


def first_sentence(spec: dict[str, Any], names: Iterable[str], rounds: int) -> Row:
    """Return the row of loading a model of `random_base` and translating, for the peers of decoding that are named."""
    return _row("base, a first sentence", _commands(spec, names, FIRST, CTRANSLATE2_FIRST), rounds)


def _commands(spec: dict[str, Any], names: Iterable[str], ours: str, ctranslate2: str) -> dict[str, list[str]]:
    """Return the commands that run the code of each peer with the model for a beam of 4."""
    model, threads = f"{spec['folder']}/ctranslate2", str(spec["threads"])
    peers = {name: _python(ctranslate2, model, PEERS[name], threads) for name in names}
    return {"ours": _python(ours, f"{spec['folder']}/ours 4")} | peers


def _python(code: str, *arguments: str) -> list[str]:
    return [sys.executable, "-c", code, *arguments]


def _row(work: str, commands: dict[str, list[str]], rounds: int) -> Row:
    return next(_rows(work, commands, rounds))


def _rows(work: str, commands: dict[str, list[str]], rounds: int) -> Iterator[Row]:
    """Yield the row of the seconds that commands take, and the row of their peak memory."""
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    memory: dict[str, list[float]] = {name: [] for name in commands}
    for i in range(rounds + 1):
        for name, command in commands.items():
            start = time.perf_counter()
            with subprocess.Popen(
                command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=ENVIRONMENT
            ) as process:
                _, status, usage = os.wait4(process.pid, 0)
                process.returncode = os.waitstatus_to_exitcode(status)
            if process.returncode:
                raise subprocess.CalledProcessError(process.returncode, command)
            if i:  # once to read the files
                seconds[name].append(time.perf_counter() - start)
                memory[name].append(usage.ru_maxrss / 1024)  # of Linux, in KB
    yield Row(f"start-up: {work}", "seconds", seconds, {})
    yield Row(f"memory: {work}", "MB", memory, {})
