"""The command `tf-transformer`: parse, call, print what went wrong."""

import argparse
import logging
import os
import select
import sys
from types import ModuleType

from tf_transformer.commands import (
    average,
    evaluate,
    export,
    extend,
    import_model,
    info,
    plot,
    prepare,
    score,
    serve,
    train,
    translate,
)
from tf_transformer.commands.common.options import Parser, example_of, with_examples
from tf_transformer.errors import InputError
from tf_transformer.version import __version__

LONGEST = 2000
"""The characters of an error that are printed."""
WORK: dict[str, dict[str, ModuleType]] = {
    "get a model": {
        "train": train,
        "prepare": prepare,
        "average": average,
        "import": import_model,
        "extend": extend,
    },
    "use it": {"translate": translate, "evaluate": evaluate, "score": score},
    "pass it on": {"export": export, "serve": serve},
    "look inside": {"info": info, "plot": plot},
}
"""The commands by what they are for, in the order of the work."""
COMMANDS = {name: command for commands in WORK.values() for name, command in commands.items()}


def parser() -> argparse.ArgumentParser:
    """Return the parser; the parsed options hold as `run` what runs their command."""
    parser = Parser(
        prog="tf-transformer",
        usage="tf-transformer COMMAND ...",
        description="Train a Transformer on parallel text, translate with it, and serve it.\n\n"
        + "\n\n".join(f"{what}:\n{with_examples(commands, 10)}" for what, commands in WORK.items()),
        epilog="Each command explains its options: tf-transformer COMMAND --help",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"tf-transformer {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", help=argparse.SUPPRESS, prog="tf-transformer")
    parser.set_defaults(run=lambda options: parser.print_help(), parser=parser)
    for name, command in COMMANDS.items():
        summary = command.SUMMARY
        shape = argparse.RawDescriptionHelpFormatter
        sub = commands.add_parser(name, description=summary, formatter_class=shape)
        command.add_options(sub)
        sub.epilog = example_of(command) + (f"\n\n{sub.epilog}" if sub.epilog else "")
        sub.set_defaults(run=command.run, parser=sub)
    return parser


def main(arguments: list[str] | None = None) -> int:
    """Run the command and return its exit code: 0, or 2 for input that the user can mend."""
    options, unknown = parser().parse_known_args(arguments)
    if unknown:
        options.parser.refuse(unknown)
    return run_command(options)


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
    except OSError as error:
        is_read = not (isinstance(error, BrokenPipeError) and _reader_has_gone())
        _discard_output()
        if not is_read:  # as `head` goes
            return 0
        # No space, no permission: named by the system, with the file.
        reason = error.strerror or str(error)
        return _fail(f"{error.filename}: {reason}" if error.filename else reason)
    except KeyboardInterrupt:
        if sys.stderr.isatty():
            print(file=sys.stderr)  # after the terminal's ^C
        return 130
    return 0


def _fail(message: str) -> int:
    message = " ".join(message.splitlines())
    if len(message) > LONGEST:  # it shows what a file has, which may be anything
        message = f"{message[: LONGEST // 2]} … {message[-LONGEST // 2 :]}"
    print(f"tf-transformer: error: {message}", file=sys.stderr)
    return 2


def _reader_has_gone() -> bool:
    """Say whether nobody reads standard output, or what is said of errors, any more."""
    watched = select.poll()
    for descriptor in (1, 2):
        watched.register(descriptor, 0)
    return bool(watched.poll(0))


def _discard_output() -> None:
    """Send what standard output cannot take nowhere: Python would complain when it flushes its buffer at the end."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
