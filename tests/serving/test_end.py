"""How a server ends."""

import asyncio
import http.client
import json
import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

import grpc
import pytest
import tensorflow as tf
from grpc_health.v1 import health_pb2, health_pb2_grpc
from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc

from tests.serving.conftest import SECONDS, SENTENCES, metric, translate, wait_for
from tf_transformer.serving import server
from tf_transformer.serving.keys import Keys
from tf_transformer.serving.limits import Limits
from tf_transformer.serving.metrics import Metrics
from tf_transformer.serving.model import ServedModel
from tf_transformer.serving.ports import Ports


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_what_is_in_flight_is_finished_before_the_end(start_server, soon_warm, number):
    served = start_server(soon_warm.parent)
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
def test_a_second_signal_does_not_wait(start_server, soon_warm):
    served = start_server(soon_warm.parent)

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


class Ending:
    """A server in this process, that a client ends."""

    def __init__(self, model, monkeypatch):
        self.model = model
        self.ports = Ports("127.0.0.1", 0, 0)
        self._log: queue.Queue = queue.Queue()
        self._has_ended = False
        monkeypatch.setattr(server.log, "info", lambda form, *values: self._log.put(form % values))

    def serve(self, client) -> None:
        """Serve until a client, given the addresses, has ended it and has gone."""
        errors = []

        def run() -> None:
            try:
                client(*re.search(r"http://(\S+), gRPC (\S+)", self._log.get(timeout=SECONDS)).groups())
            except BaseException as error:
                errors.append(error)
                self.end()

        thread = threading.Thread(target=run)
        thread.start()
        app = server.LastAnswers(server.make_app(self.model))
        asyncio.run(asyncio.wait_for(server._serve(self.model, self.ports, app, 60.0, Keys()), SECONDS))
        thread.join(SECONDS)
        if errors:
            raise errors[0]

    def end(self) -> None:
        """Give the signal, once: a second one ends this process."""
        if not self._has_ended:
            self._has_ended = True
            os.kill(os.getpid(), signal.SIGTERM)


@pytest.fixture
def ending(soon_warm, monkeypatch):
    # A client who waits for ever would keep it from its end for as long as this.
    model = ServedModel(soon_warm, "copy", Limits(timeout=10 * SECONDS), Metrics())
    return Ending(model, monkeypatch)


def test_who_is_connected_is_answered_once_more(ending, monkeypatch):
    monkeypatch.setattr(server, "LAST_SECONDS", SECONDS)

    def ask(connection) -> http.client.HTTPResponse:
        connection.request("POST", "/v1/models/copy:predict", json.dumps({"inputs": ["a b"]}))
        response = connection.getresponse()
        assert response.status == 200
        response.read()
        return response

    def client(address, _) -> None:
        connections = [http.client.HTTPConnection(address, timeout=SECONDS) for _ in range(3)]
        for connection in connections:
            assert ask(connection).getheader("Connection") is None
        ending.end()
        wait_for(lambda: is_closed(address))
        for connection in connections:
            assert ask(connection).getheader("Connection") == "close"

    ending.serve(client)


def is_closed(address) -> bool:
    try:
        http.client.HTTPConnection(address, timeout=SECONDS).connect()
    except ConnectionRefusedError:
        return True
    return False


def test_who_watches_the_health_hears_of_the_end_and_does_not_keep_it_off(ending):
    def client(_, address) -> None:
        with grpc.insecure_channel(address) as channel:
            watched = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest())
            states = (answer.status for answer in watched)
            assert next(states) == health_pb2.HealthCheckResponse.SERVING
            ending.end()
            assert next(states) == health_pb2.HealthCheckResponse.NOT_SERVING
            with pytest.raises(grpc.RpcError):
                next(states)

    ending.serve(client)


STUCK = """
import threading
from tf_transformer.serving import batching, model, ports, server
from tf_transformer.serving import server
from tf_transformer.serving.limits import Limits

server.log.info = lambda form, *values: print(form % values, flush=True)
stuck = lambda *_: threading.Event().wait()
model.ServedModel._warm_up_others = stuck
batching.Batcher._translate = stuck
server.serve({path!r}, ports.Ports("127.0.0.1", 0, 0), name="copy", limits=Limits(timeout=0.5))
"""


@pytest.mark.long
def test_the_end_waits_for_nobodys_work(soon_warm):
    """Neither for a version that is warmed up, nor for a batch of which nobody wants to know any more."""
    command = [sys.executable, "-c", STUCK.format(path=str(soon_warm))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            url = re.search(r"(http://\S+),", process.stdout.readline())[1]
            with pytest.raises(urllib.error.HTTPError, match="504"):
                urllib.request.urlopen(f"{url}/v1/models/copy:predict", b'{"inputs": ["a"]}', timeout=SECONDS)
            process.send_signal(signal.SIGTERM)
            assert process.wait(SECONDS) == 0
        finally:
            process.kill()
