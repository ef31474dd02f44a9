"""A server from its start to its end, and what it goes through between."""

import asyncio
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from types import SimpleNamespace

import grpc
import pytest
import tensorflow as tf
from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc
from tensorflow_serving.apis.prediction_log_pb2 import PredictionLog

from tests.serving.conftest import SECONDS, in_parallel, wait_for
from tf_transformer.cli import main
from tf_transformer.config import DecodingConfig
from tf_transformer.errors import InputError
from tf_transformer.export import ExportedTranslator, export
from tf_transformer.serving.limits import Limits
from tf_transformer.serving.metrics import Metrics
from tf_transformer.serving.model import Model
from tf_transformer.serving.ports import Ports

SENTENCES = [" ".join("abcdefgh"[: 1 + (3 * i) % 8]) for i in range(40)]


def translate(served, sentences):
    body = json.dumps({"inputs": sentences}).encode()
    with urllib.request.urlopen(f"{served.url}/v1/models/{served.name}:predict", body, timeout=120) as response:
        return json.load(response)["outputs"]["translation"]


def metric(served, name):
    with urllib.request.urlopen(f"{served.url}/metrics", timeout=60) as response:
        return next(float(line.split()[1]) for line in response.read().decode().splitlines() if line.startswith(name))


def test_clients_are_answered_together_and_each_gets_its_own(served, copy_export):
    before = metric(served, "tf_transformer_batches ")
    found = in_parallel(lambda sentence: translate(served, [sentence])[0], SENTENCES, workers=20)
    assert found == ExportedTranslator(copy_export).translate_strings(SENTENCES)
    assert metric(served, "tf_transformer_batches ") - before < len(SENTENCES) / 2


@pytest.mark.long
def test_a_new_version_takes_over_and_no_request_fails(start_server, copy_run, copy_export, tmp_path):
    models = tmp_path / "copy"
    shutil.copytree(copy_export, models / "1")
    served = start_server(models, "--poll-seconds", "0.2")
    old = ExportedTranslator(copy_export).translate_strings(SENTENCES[:3])
    stop, failures, answers = threading.Event(), [], []

    def ask() -> None:
        while not stop.is_set():
            try:
                answers.append(translate(served, SENTENCES[:3]))
            except Exception as error:
                failures.append(error)

    clients = [threading.Thread(target=ask) for _ in range(3)]
    for client in clients:
        client.start()
    # What is no model is passed over, with one line in the log; what comes after it is served.
    (models / "2").mkdir()
    (models / "2" / "saved_model.pb").write_bytes(b"damaged")
    wait_for(lambda: "version 1 stays: cannot load" in served.log.read_text())
    # Another search, so that each answer shows which version gave it.
    third = export(copy_run, models / "3", DecodingConfig(max_length=2))
    new = ExportedTranslator(third).translate_strings(SENTENCES[:3])
    assert new != old
    wait_for(lambda: new in answers)
    assert metric(served, "tf_transformer_version") == 3
    assert served.log.read_text().count("version 1 stays") == metric(served, "tf_transformer_failed_loads_total") == 1
    stop.set()
    for client in clients:
        client.join()
    assert failures == []
    taken_over = answers.index(new)
    assert taken_over > 0
    assert all(answer in (old, new) for answer in answers)
    assert answers[taken_over:].count(old) <= 2  # those that the other two clients waited for
    # Back to the one before: what is taken away is no longer served.
    shutil.rmtree(models / "3")
    shutil.rmtree(models / "2")
    wait_for(lambda: metric(served, "tf_transformer_version") == 1)
    assert translate(served, SENTENCES[:3]) == old


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_what_is_in_flight_is_finished_before_the_end(start_server, copy_export, number):
    served = start_server(copy_export.parent)
    many = SENTENCES * 25
    running = threading.Thread(target=lambda: answers.append(translate(served, many)))
    answers = []
    with grpc.insecure_channel(served.grpc) as channel:
        stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
        request = predict_pb2.PredictRequest()
        request.model_spec.name = served.name
        request.inputs["text"].CopyFrom(tf.make_tensor_proto(many))
        stub.Predict(request, timeout=120)
        running.start()
        future = stub.Predict.future(request, timeout=120)
        wait_for(lambda: metric(served, "tf_transformer_running") == 2)
        served.process.send_signal(number)
        assert len(tf.make_ndarray(future.result().outputs["translation"])) == len(many)
    running.join()
    assert len(answers[0]) == len(many)
    assert served.process.wait(60) == 0, served.log.read_text()
    with pytest.raises(urllib.error.URLError):
        translate(served, ["a"])


@pytest.mark.long
def test_a_second_signal_does_not_wait(start_server, copy_export):
    served = start_server(copy_export.parent)

    def ask() -> None:
        with pytest.raises((OSError, http.client.HTTPException)):
            translate(served, SENTENCES * 25)

    running = threading.Thread(target=ask)
    running.start()
    wait_for(lambda: metric(served, "tf_transformer_running") == 1)
    served.process.send_signal(signal.SIGTERM)
    time.sleep(0.2)
    assert served.process.poll() is None
    served.process.send_signal(signal.SIGTERM)
    assert served.process.wait(10) == 128 + signal.SIGTERM
    running.join()


@pytest.fixture
def no_tensorflow(monkeypatch):
    """What fails needs none."""

    def imported(**_):
        pytest.fail("it imports TensorFlow first")

    monkeypatch.setattr("tf_transformer.commands.serving.import_tensorflow", imported)


def test_a_port_that_is_taken_is_named_before_anything_is_loaded(served, tmp_path, capsys, no_tensorflow):
    grpc_port, port = served.grpc.rpartition(":")[2], served.url.rpartition(":")[2]
    for options, option in ((["0", "--grpc-port", grpc_port], "--grpc-port"), ([port], "--port")):
        assert main(["serve", str(tmp_path), "--port", *options]) == 2
        assert f"Address already in use: give another {option}, or --host" in capsys.readouterr().err
    assert main(["serve", str(tmp_path), "--port", "8500"]) == 2
    assert "REST and gRPC need a port each: give another --port. Received: 8500 for both" in capsys.readouterr().err
    assert main(["serve", str(tmp_path), "--host", "256.0.0.1"]) == 2
    assert "cannot listen at 256.0.0.1:8501, Name or service not known" in capsys.readouterr().err


def test_a_run_is_to_be_exported_first(copy_run, capsys, no_tensorflow):
    assert main(["serve", str(copy_run)]) == 2
    command = f"tf-transformer export --run-dir {copy_run} --output saved_models/copy_run/1"
    assert capsys.readouterr().err == (
        f"tf-transformer: error: {copy_run} is a run directory, and exports are served: first {command}\n"
    )


def test_a_port_is_held_until_it_is_opened():
    first = Ports("127.0.0.1", 0, 0)
    port = first.open_rest().getsockname()[1]
    with pytest.raises(InputError, match=f"cannot listen at 127.0.0.1:{port}, Address already in use: give another"):
        Ports("127.0.0.1", 0, port)
    with pytest.raises(InputError, match="give another --port"):
        Ports("127.0.0.1", port, 0)
    assert first.release_grpc() == "127.0.0.1:0"


def test_bad_clients_harm_nobody(served):
    address = served.url.removeprefix("http://").split(":")
    address = address[0], int(address[1])
    head = f"POST /v1/models/{served.name}:predict HTTP/1.1\r\nHost: x\r\nContent-Length: ".encode()
    slow = socket.create_connection(address)
    slow.sendall(head + b"100\r\n\r\n{")  # and never more
    for sent in (
        head + b"100\r\n\r\n{",
        head,
        b"\x16\x03\x01\x00",
        head + b"-1\r\n\r\n",
        b"GET /%ff%00 HTTP/1.1\r\n\r\n",
    ):
        with socket.create_connection(address) as gone:
            gone.sendall(sent)
    with socket.create_connection(address) as gone:
        body = json.dumps({"inputs": SENTENCES}).encode()
        gone.sendall(head + str(len(body)).encode() + b"\r\n\r\n" + body)  # and does not wait for the answer
    with socket.create_connection(address) as large:
        large.sendall(head + b"10000000\r\n\r\n")
        assert b" 413 " in large.recv(1000)
    assert translate(served, ["a b c"])
    wait_for(lambda: metric(served, "tf_transformer_running") == 0)
    slow.close()


@pytest.mark.long
def test_a_killed_server_starts_again(start_server, copy_export):
    first = start_server(copy_export)
    assert first.name == copy_export.parent.name  # that of the folder above the number
    first.process.kill()
    again = start_server(copy_export)
    assert translate(again, ["a b c"])


def test_what_is_no_model_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"is no SavedModel, and has no version folder"):
        Model(tmp_path, None, Limits(), Metrics())
    tf.saved_model.save(tf.Module(), str(tmp_path / "1"))
    with pytest.raises(InputError, match="has no signature to call"):
        Model(tmp_path, None, Limits(), Metrics())
    numbers = tf.Module()
    numbers.f = tf.function(lambda x: {"y": x}, input_signature=[tf.TensorSpec([None], tf.float32, name="x")])
    tf.saved_model.save(numbers, str(tmp_path / "2"), signatures=numbers.f)
    with pytest.raises(InputError, match=r"is not a model of strings \[batch\]\. Received: signature serving_default"):
        Model(tmp_path, None, Limits(), Metrics())


def test_requests_of_another_model_are_refused(copy_export, tmp_path):
    shutil.copytree(copy_export, tmp_path / "1")
    file = tmp_path / "1" / "assets.extra" / "tf_serving_warmup_requests"
    with tf.io.TFRecordWriter(str(file)) as writer:
        log = PredictionLog()
        log.predict_log.request.inputs["other"].CopyFrom(tf.make_tensor_proto(["a"]))
        writer.write(log.SerializeToString())
    with pytest.raises(InputError, match="is damaged, or of another model: the signature takes text. Received: other"):
        Model(tmp_path, None, Limits(), Metrics())
    file.write_bytes(b"damaged" * 10)
    with pytest.raises(InputError, match="is damaged, or of another model"):
        Model(tmp_path, None, Limits(), Metrics())


def test_a_name_that_no_address_can_have_is_refused(copy_export):
    with pytest.raises(InputError, match=r"has no slash\. Received: a/b"):
        Model(copy_export, "a/b", Limits(), Metrics())


def test_warming_up_is_no_batch_of_a_client(copy_export):
    metrics = Metrics()
    Model(copy_export, None, Limits(), metrics).prepared.result()
    assert b"\ntf_transformer_batches 0.0\n" in metrics.text()
    assert b"\ntf_transformer_sentences_total 0.0\n" in metrics.text()


STUCK = """
import threading
from tf_transformer.serving import batching, model, ports, server
from tf_transformer.serving.limits import Limits

server.log.info = lambda form, *values: print(form % values, flush=True)
stuck = lambda *_: threading.Event().wait()
model.Model._warm_up_others = stuck
batching.Batcher._translate = stuck
server.serve({path!r}, ports.Ports("127.0.0.1", 0, 0), name="copy", limits=Limits(timeout=0.5))
"""


@pytest.mark.long
def test_the_end_waits_for_nobodys_work(copy_export):
    """Neither for a version that is warmed up, nor for a batch of which nobody wants to know any more."""
    command = [sys.executable, "-c", STUCK.format(path=str(copy_export))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            url = re.search(r"(http://\S+),", process.stdout.readline())[1]
            with pytest.raises(urllib.error.HTTPError, match="504"):
                urllib.request.urlopen(f"{url}/v1/models/copy:predict", b'{"inputs": ["a"]}', timeout=SECONDS)
            process.send_signal(signal.SIGTERM)
            assert process.wait(SECONDS) == 0
        finally:
            process.kill()


class FakeVersion:
    """A version whose SavedModel is a word: what it is called, or "bad"."""

    def __init__(self, folder, number, limits, count):
        self.word = (folder / "saved_model.pb").read_text()
        if self.word == "bad":
            raise InputError(f"{folder.name} is bad")
        self.number = number
        self.signatures = SimpleNamespace(inputs={})
        self.is_closed = False

    def warm_up(self, signatures):
        pass

    def close(self):
        self.is_closed = True


@pytest.fixture
def versions(tmp_path, monkeypatch):
    """Writes a version; None takes it away."""
    monkeypatch.setattr("tf_transformer.serving.model.Version", FakeVersion)

    def write(number: int, word: str | None) -> None:
        folder = tmp_path / str(number)
        if word is None:
            shutil.rmtree(folder)
            return
        folder.mkdir(exist_ok=True)
        (folder / "saved_model.pb").write_text(word)
        files = len(list(tmp_path.iterdir()))
        os.utime(folder / "saved_model.pb", (number, files + len(word)))  # a time of its own, however fast this is

    return write


def test_a_broken_newest_version_leaves_the_one_below(versions, tmp_path, caplog):
    for number, word in ((1, "one"), (2, "bad"), (3, "bad")):
        versions(number, word)
    model = Model(tmp_path, "copy", Limits(), Metrics())
    assert model.version.word == "one"
    errors = [record.getMessage() for record in caplog.records]
    assert errors == ["version 3 is passed over: 3 is bad", "version 2 is passed over: 2 is bad"]
    asyncio.run(model.refresh())
    assert len(caplog.records) == 2  # they are not tried again as they are
    first = model.version
    versions(2, "two")
    asyncio.run(model.refresh())
    assert model.version.word == "two" and first.is_closed
    versions(3, "three")
    asyncio.run(model.refresh())
    assert model.version.word == "three"
    versions(4, "bad")
    asyncio.run(model.refresh())
    assert caplog.records[-1].getMessage() == "version 3 stays: 4 is bad"
    # Back to the one before.
    versions(3, None)
    asyncio.run(model.refresh())
    assert model.version.word == "two"
    versions(3, "three")
    asyncio.run(model.refresh())
    assert model.version.word == "three" and not model.version.is_closed


def test_where_none_can_be_loaded_the_newest_says_why(versions, tmp_path, caplog):
    for number in (9, 10, 8):
        versions(number, "bad")
    with pytest.raises(InputError, match="10 is bad"):
        Model(tmp_path, "copy", Limits(), Metrics())
    assert [record.getMessage()[:9] for record in caplog.records] == ["version 9", "version 8"]


def test_a_body_that_grpc_cannot_hold_is_refused():
    with pytest.raises(InputError, match=r"max_body must be below 2\*\*31\. Received: 2147483648"):
        Limits(max_body=2**31)


@pytest.mark.parametrize("name", ["max_sentences", "max_tokens", "max_queue", "max_batch_tokens", "timeout"])
def test_limits_that_let_nothing_through_are_refused(name):
    with pytest.raises(InputError, match=f"{name} must be .* Received: 0"):
        Limits(**{name: 0})
