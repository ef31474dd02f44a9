"""A worker process, which runs the functions that another process sends it: `python -m` this module."""

import os
import pickle
import signal
import sys
import traceback
from typing import Any

from tf_transformer.errors import InputError


def main() -> None:
    """Read pairs of a function and its argument from standard input, and answer each on standard output.

    An answer is also a pair: what the function returned and None, or None and the error.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that started this one handles it
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what a library prints must not mix with answers
    while True:
        try:
            function, argument = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        answer: Any = None
        error: Exception | None = None
        try:
            answer = function(argument)
        except (InputError, OSError) as raised:
            error = raised
        except Exception:
            error = RuntimeError(traceback.format_exc())
        pickle.dump((answer, error), answers, pickle.HIGHEST_PROTOCOL)
        answers.flush()


if __name__ == "__main__":
    main()
