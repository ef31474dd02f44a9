"""A server of the export that copies, as a user starts it; the same in this process; and what tests do with them."""

import contextlib
import json
import os
import queue
import re
import shutil
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
import tensorflow as tf
from playwright.sync_api import expect
from starlette.testclient import TestClient
from tensorflow_serving.apis.prediction_log_pb2 import PredictionLog

from tests.conftest import MILLISECONDS, unpack
from tf_transformer.commands.main import main
from tf_transformer.commands.serve import KINDS
from tf_transformer.runs.descriptions import WARM_UP
from tf_transformer.runs.signatures import DEFAULT
from tf_transformer.serving.http.files import FileKinds
from tf_transformer.serving.http.rest import make_app
from tf_transformer.serving.limits import Limits
from tf_transformer.serving.metrics import Metrics
from tf_transformer.serving.model import ServedModel
from tf_transformer.translation.exported import ExportedTranslator

SENTENCES = [" ".join("abcdefgh"[: 1 + (3 * i) % 8]) for i in range(40)]
TEXT = "a b c"
LIMITS = Limits(max_sentences=20, max_tokens=300, max_sentence_bytes=1000, max_body=2000, max_batch_tokens=8 * 16)
SECONDS = MILLISECONDS // 1000


@pytest.hookimpl(trylast=True)  # after pytest has chosen by marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put what asks `served` first and what has `model` last, so that of two test processes each loads one of them."""

    def of(item: pytest.Item) -> int:
        names = getattr(item, "fixturenames", ())
        return ("model" in names) - ("served" in names)

    if all(Path(__file__).parent in item.path.parents for item in items):
        items.sort(key=of)


class Served:
    """A running `tf-transformer serve`."""

    def __init__(self, folder: Path, log: Path, *options: str):
        command = [sys.executable, "-m", "tf_transformer", "serve", str(folder), "--port", "0", "--grpc-port", "0"]
        self.log = log
        # What the tests have set for themselves is not set for a user's server.
        environment = {name: value for name, value in os.environ.items() if name != "TF_ENABLE_ONEDNN_OPTS"}
        started = time.monotonic()
        with log.open("w") as output:
            self.process = subprocess.Popen([*command, *options], stdout=output, stderr=output, env=environment)
        found = None
        while found is None:
            if self.process.poll() is not None or time.monotonic() > started + 120:
                self.process.kill()
                pytest.fail(f"the server did not start: {log.read_text()}")
            time.sleep(0.05)
            found = re.search(r"serving (\S+), version \d+: (\S+), gRPC (\S+)\n", log.read_text())
        self.seconds = time.monotonic() - started
        self.name, self.url, self.grpc = found.groups()

    @property
    def memory(self) -> int:
        """Its resident memory, bytes."""
        return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@contextlib.contextmanager
def servers(tmp_path_factory):
    """Starts servers, and ends them at its end."""
    with contextlib.ExitStack() as stack:

        def start(folder: Path, *options: str) -> Served:
            served = Served(folder, tmp_path_factory.mktemp("served") / "log", *options)
            stack.callback(served.process.wait)
            stack.callback(served.process.kill)
            return served

        yield start


@pytest.fixture(scope="module")
def start_server(tmp_path_factory):
    """Starts servers, and ends them with the module."""
    with servers(tmp_path_factory) as start:
        yield start


def warm_up_default_alone(export: Path) -> Path:
    """Take the requests for the other signatures from those of an export: whoever serves it is soon done with them."""
    with tf.io.TFRecordWriter(str(export / "beside")) as writer:
        for record in tf.data.TFRecordDataset(str(export / WARM_UP)).as_numpy_iterator():
            if PredictionLog.FromString(record).predict_log.request.model_spec.signature_name == DEFAULT:
                writer.write(record)
    (export / "beside").replace(export / WARM_UP)
    return export


@pytest.fixture(scope="session")
def soon_warm(copy_export, made_once) -> Path:
    """The export that copies, for servers of which one test asks little."""

    def make(folder: Path) -> None:
        warm_up_default_alone(shutil.copytree(copy_export, folder / "copy" / "1"))

    return made_once("soon_warm", make) / "copy" / "1"


@pytest.fixture(scope="session")
def served(tmp_path_factory, copy_export):
    """A server that many tests ask, and none ends: what they count, they count from before on."""
    with servers(tmp_path_factory) as start:
        yield start(copy_export.parent)


@pytest.fixture(scope="session")
def languages_export(made_once) -> Path:
    """A model of several languages."""

    def make(folder):
        folder.mkdir()
        unpack(Path(__file__).parents[1] / "importers" / "nllb.tar.xz", folder)
        assert main(["import", str(folder / "nllb"), "--run-dir", str(folder / "run")]) == 0
        given = ["--source-language", "eng_Latn", "--target-language", "deu_Latn", "--beam-size", "2"]
        output = folder / "nllb_toy" / "1"
        assert main(["export", "--run-dir", str(folder / "run"), "--output", str(output), *given]) == 0

    return made_once("nllb_export", make) / "nllb_toy" / "1"


@pytest.fixture(scope="session")
def languages_served(tmp_path_factory, languages_export):
    """Its server."""
    with servers(tmp_path_factory) as start:
        yield start(languages_export.parent)


class Gate:
    """Holds work back: what begins is seen, and waits until it is let go."""

    def __init__(self):
        self._begun: queue.Queue = queue.Queue()
        self._go = threading.Semaphore(0)

    def wait(self, what) -> None:
        """Called by the work."""
        self._begun.put(what)
        assert self._go.acquire(timeout=SECONDS), "it was never let go"

    def begun(self):
        """What begins next."""
        return self._begun.get(timeout=SECONDS)

    def go_on(self, times: int = 1) -> None:
        self._go.release(times)

    @property
    def unseen(self) -> int:
        """How many have begun that `begun` has not given."""
        return self._begun.qsize()


@pytest.fixture
def gate():
    gate = Gate()
    yield gate
    gate.go_on(10_000)


@pytest.fixture
def held_back(gate, monkeypatch):
    """Holds back the batches of a version: the gate sees the sentences of each."""

    def hold(version) -> Gate:
        batcher = version._batcher
        call = batcher._call

        def held(signature, sentences, cancellation):
            gate.wait(sentences)
            return call(signature, sentences, cancellation)

        monkeypatch.setattr(batcher, "_call", held)
        return gate

    return hold


def wait_for(condition, seconds: float = 2 * SECONDS) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)


def in_parallel(work, items, workers: int) -> list:
    """The results of work on items, by so many threads; the first error is raised."""
    results, errors = [None] * len(items), []
    left = iter(range(len(items)))
    lock = threading.Lock()

    def run() -> None:
        while not errors:
            with lock:
                i = next(left, None)
            if i is None:
                return
            try:
                results[i] = work(items[i])
            except Exception as error:
                errors.append(error)

    threads = [threading.Thread(target=run) for _ in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return results


@pytest.fixture(scope="session")
def model(copy_export) -> ServedModel:
    """For many tests, as `served` is."""
    model = ServedModel(copy_export, "copy", LIMITS, Metrics())
    model.prepared.result()  # what is counted after this, clients did
    return model


@pytest.fixture(scope="session")
def client(model):
    """Of a server that refuses files."""
    kinds = FileKinds(*KINDS)._replace(endings=())
    with TestClient(make_app(model, kinds=kinds), raise_server_exceptions=False) as client:
        yield client


@pytest.fixture(scope="session")
def exported(copy_export) -> ExportedTranslator:
    return ExportedTranslator(copy_export)


def predict(client, body, path="/v1/models/copy:predict"):
    response = client.post(path, content=body if isinstance(body, bytes) else json.dumps(body))
    assert response.headers["content-type"] == "application/json"
    return response.status_code, response.json()


def translate(served, sentences):
    body = json.dumps({"inputs": sentences}).encode()
    with urllib.request.urlopen(f"{served.url}/v1/models/{served.name}:predict", body, timeout=120) as response:
        return json.load(response)["outputs"]["translation"]


def metric(served, name):
    with urllib.request.urlopen(f"{served.url}/metrics", timeout=60) as response:
        return next(float(line.split()[1]) for line in response.read().decode().splitlines() if line.startswith(name))


@pytest.fixture
def page(context, served):
    page = context.new_page()
    page.asked, page.said = [], []
    page.on("request", lambda request: page.asked.append(request.url))
    page.on("console", lambda message: page.said.append(message.text))
    page.on("pageerror", lambda error: page.said.append(str(error)))
    # So that what a test routes later is routed at once: of the first route, a page hears after the next key, at times.
    page.route("**/routed", lambda route: route.abort())
    page.goto(served.url)
    expect(page.locator("#text")).to_be_focused()  # what is typed before is lost, on a busy machine
    return page
