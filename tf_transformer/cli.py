"""The command `tf-transformer`: parse, call, print what went wrong."""

import logging
import os
import sys

from tf_transformer.arguments import parser
from tf_transformer.commands import models, serving, training, translation
from tf_transformer.errors import InputError


def main(arguments: list[str] | None = None) -> int:
    """Run the command and return its exit code: 0, or 2 for input that the user can mend."""
    commands = {
        "train": training.train,
        "translate": translation.translate,
        "evaluate": translation.evaluate,
        "export": models.export,
        "average": training.average,
        "score": translation.score,
        "info": models.info,
        "serve": serving.serve,
    }
    options = parser(commands).parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
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
