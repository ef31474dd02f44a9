"""Processes that begin at once: forks of one that has imported TensorFlow, and has not used it."""

import multiprocessing
import os
import signal
import tempfile
import textwrap
from pathlib import Path

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(
    [
        *("tensorflow_text", "tf_transformer.commands.main", "tf_transformer.data.corpora.folder"),
        *("tf_transformer.export.saved_model", "tf_transformer.runs.averaging", "tf_transformer.training.fit"),
    ]
)


class Fork:
    """A process that runs Python code.

    Args:
        code: the code.
        log: the file at whose end it writes what it prints, errors included; by default, two files of its own.
        cwd: where it runs; by default here.
        **environment: variables that are not those of this process. They come too late for what reads them when
            TensorFlow is imported.
    """

    def __init__(self, code: str, log: Path | None = None, cwd: Path | None = None, **environment: str):
        self.folder = tempfile.TemporaryDirectory()
        self.output, self.errors = (log or Path(self.folder.name, name) for name in ("output", "errors"))
        for file in (self.output, self.errors):
            file.touch()  # whoever reads them need not know whether the process has come so far
        place = (str(self.output), str(self.errors)), str(cwd or Path.cwd()), dict(os.environ) | environment
        # What a failed test leaves is ended with the process of the tests, which would wait for it otherwise.
        self.process = CONTEXT.Process(target=_run, args=(textwrap.dedent(code), *place), daemon=True)
        self.process.start()

    def wait(self, timeout: float = 300) -> int:
        """Wait for its end, and return its exit code, or minus the number of the signal that ended it."""
        self.process.join(timeout)
        if self.process.exitcode is None:
            raise TimeoutError(f"it still runs after {timeout} seconds: {self.errors.read_text()}")
        return self.process.exitcode

    def has_ended(self) -> bool:
        """Whether it has ended."""
        return self.process.exitcode is not None

    def send(self, number: signal.Signals) -> None:
        """Send a signal."""
        os.kill(self.process.pid, number)

    def kill(self) -> None:
        """End it, if it has not ended."""
        self.process.kill()
        self.process.join()


def _run(code: str, files: tuple[str, str], cwd: str, environment: dict[str, str]) -> None:
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(cwd)
    for number, file in enumerate(files, start=1):
        os.dup2(os.open(file, os.O_WRONLY | os.O_APPEND), number)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # as a shell does for what runs in the foreground
    exec(code, {"__name__": "__main__"})
