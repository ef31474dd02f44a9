"""The command `tf-transformer`: parse, call, print what went wrong."""

import argparse
import logging
import os
import sys

from tf_transformer.commands import (
    average,
    evaluate,
    export,
    import_model,
    info,
    prepare,
    score,
    serve,
    train,
    translate,
)
from tf_transformer.commands.options import Parser
from tf_transformer.errors import InputError
from tf_transformer.version import __version__

COMMANDS = {
    "prepare": prepare,
    "train": train,
    "translate": translate,
    "evaluate": evaluate,
    "export": export,
    "score": score,
    "average": average,
    "import": import_model,
    "info": info,
    "serve": serve,
}


def parser() -> argparse.ArgumentParser:
    """Return the parser; the parsed options hold as `run` what runs their command."""
    parser = Parser(
        prog="tf-transformer",
        description="Train a Transformer on parallel text, translate with it, and export it.",
    )
    parser.add_argument("--version", action="version", version=f"tf-transformer {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for name, command in COMMANDS.items():
        summary = command.SUMMARY
        shape = argparse.RawDescriptionHelpFormatter
        sub = commands.add_parser(name, help=summary, description=summary, formatter_class=shape)
        command.add_options(sub)
        sub.set_defaults(run=command.run)
    return parser


def main(arguments: list[str] | None = None) -> int:
    """Run the command and return its exit code: 0, or 2 for input that the user can mend."""
    return run_command(parser().parse_args(arguments))


def run_command(options: argparse.Namespace) -> int:
    """Run what `options.run` is, and return the exit code."""
    logging.basicConfig(level=logging.WARNING, format="%(message)s", stream=sys.stderr)
    logging.getLogger("tf_transformer").setLevel(logging.INFO)  # others tell of every request they make
    logging.getLogger("absl").setLevel(logging.ERROR)
    try:
        options.run(options)
        sys.stdout.flush()
    except InputError as error:
        return _fail(str(error))
    except BrokenPipeError:
        # The reader has gone, as `head` does.
        _discard_output()
    except OSError as error:
        # No space, no permission: named by the system, with the file.
        _discard_output()
        reason = error.strerror or str(error)
        return _fail(f"{error.filename}: {reason}" if error.filename else reason)
    except KeyboardInterrupt:
        return 130
    return 0


def _fail(message: str) -> int:
    print(f"tf-transformer: error: {' '.join(message.splitlines())}", file=sys.stderr)
    return 2


def _discard_output() -> None:
    """Send what standard output cannot take nowhere: Python would complain when it flushes its buffer at the end."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
