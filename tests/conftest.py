"""What several tests share."""

import contextlib
import fcntl
import gc
import io
import os
import shutil
import subprocess
import sys
import tarfile
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import hypothesis
import pytest
from playwright.sync_api import expect, sync_playwright

from tests.forks import Fork
from tf_transformer.commands.main import main

# As `tf-transformer train` sets them before it imports TensorFlow, which the tests import first.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")

# The same examples each time, so that what passes passes again; `search` looks for new ones.
hypothesis.settings.register_profile("suite", derandomize=True, deadline=None)
hypothesis.settings.register_profile("search", max_examples=5000, deadline=None)
hypothesis.settings.load_profile("suite")

MILLISECONDS = 60_000
"""More than anything takes that a test waits for."""
MULTI30K = Path(__file__).parents[2] / "shared" / "data" / "multi30k"


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Iterator[None]:
    """Mark as long all cases but the first of what is marked `long_but_first`, before pytest chooses by marks.

    Then put the files that need `copy_run` first: of two test processes, the one that begins with them trains it, while
    the other one has something else to do.
    """
    seen = set()
    for item in items:
        if item.get_closest_marker("long_but_first"):
            function = item.nodeid.partition("[")[0]
            if function in seen:
                item.add_marker(pytest.mark.long)
            seen.add(function)
    yield
    needing = {item.path for item in items if "copy_run" in getattr(item, "fixturenames", ())}
    items.sort(key=lambda item: item.path not in needing)


def pytest_collection_finish() -> None:
    """Let Python look for garbage less often, and not among what imports have made: that took 5% of the time.

    TensorFlow keeps the graphs that tests have traced, and each search for garbage goes through all of them.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


def unpack(archive: Path, folder: Path) -> None:
    """Unpack a sample."""
    with tarfile.open(archive) as members:
        # An argument would do, if Python 3.11.2 knew it, which Debian 12 has.
        members.extraction_filter = getattr(tarfile, "data_filter", None)
        members.extractall(folder)


@pytest.fixture(scope="session")
def multi30k() -> Path:
    """The folder of real parallel text."""
    if not MULTI30K.is_dir():
        pytest.skip("no Multi30k beside the repository")
    return MULTI30K


@pytest.fixture(scope="session")
def made_once(tmp_path_factory):
    """Makes a folder, or waits until another test process has made it.

    The processes of one session share what is made; those of several do if MADE_ONCE names a folder for it. To run
    tests again and again, set it in your shell, and empty the folder when what is made there must change.
    """

    def get(name: str, make: Callable[[Path], None]) -> Path:
        root = tmp_path_factory.getbasetemp()
        if "MADE_ONCE" in os.environ:
            root = Path(os.environ["MADE_ONCE"])
        elif "PYTEST_XDIST_WORKER" in os.environ:
            root = root.parent  # that of all processes
        with (root / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (root / f"{name}.done").exists():
                # What is said meanwhile is not of the test that happens to need it first.
                with contextlib.redirect_stdout(io.TextIOWrapper(io.BytesIO())):
                    make(root / name)
                (root / f"{name}.done").touch()
        return root / name

    return get


@pytest.fixture(scope="session")
def copy_run(made_once) -> Path:
    """A run that has learned to copy, trained by the command line as a user would."""

    def train(run: Path) -> None:
        config = Path(__file__).parents[1] / "scripts" / "copy.toml"
        assert main(["train", "--data", "copy", "--config", str(config), "--run-dir", str(run)]) == 0

    return made_once("copy_run", train)


@pytest.fixture(scope="session")
def copy_export(copy_run, made_once) -> Path:
    """Its SavedModel."""

    def export(output: Path) -> None:
        assert main(["export", "--run-dir", str(copy_run), "--output", str(output / "1")]) == 0

    return made_once("copy_export", export) / "1"


@pytest.fixture(scope="session")
def copy_litert(copy_run, made_once) -> Callable[[str], Path]:
    """Its exports for LiteRT, by what their weights are held in."""

    def get(quantize: str) -> Path:
        def export(output: Path) -> None:
            kind = ["--format", "litert", "--quantize", quantize]
            assert main(["export", *kind, "--run-dir", str(copy_run), "--output", str(output / "1")]) == 0

        return made_once(f"copy_litert_{quantize}", export) / "1"

    return get


@pytest.fixture(scope="session")
def in_fresh_process():
    """Runs Python code in a process that has imported nothing, which must succeed; gives what it printed."""

    def run(code: str, timeout: float = 300, cwd: Path | None = None, **environment: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(code)],
            capture_output=True,
            text=True,
            env=os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"} | environment,
            check=False,
            timeout=timeout,
            cwd=cwd,
        )
        assert done.returncode == 0, done.stderr[-5000:]
        return done.stdout

    return run


@pytest.fixture(scope="session")
def in_fork():
    """Runs Python code in a process that has imported TensorFlow already, which must succeed; gives what it printed."""

    def run(code: str, cwd: Path | None = None, **environment: str) -> str:
        fork = Fork(code, cwd=cwd, **environment)
        assert fork.wait() == 0, fork.errors.read_text()[-5000:]
        return fork.output.read_text("utf-8")

    return run


@pytest.fixture(scope="module")  # as long as there is one, no test of its process can run an event loop of its own
def browser():
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("there is no chromium: apt-get install chromium")
    with sync_playwright() as playwright:
        # Without its sandbox it runs as root too, as in a container.
        browser = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-gpu"], timeout=MILLISECONDS
        )
        expect.set_options(timeout=MILLISECONDS)  # five seconds are too few on a busy machine
        yield browser
        browser.close()


@pytest.fixture
def context(browser):
    """Of one test: its pages are as large as a phone's, and wait for what they do as long as tests do."""
    context = browser.new_context(viewport={"width": 360, "height": 740})
    context.set_default_timeout(MILLISECONDS)
    yield context
    context.close()
