"""A server from its start on, and what it goes through."""

import json
import socket
import urllib.error
import urllib.request

import pytest

from tests.serving.conftest import SECONDS, SENTENCES, in_parallel, metric, translate, wait_for
from tf_transformer.commands.main import main
from tf_transformer.errors import InputError
from tf_transformer.serving.limits import Limits
from tf_transformer.serving.metrics import Metrics
from tf_transformer.serving.model import ServedModel
from tf_transformer.serving.ports import Ports


def test_clients_are_answered_together_and_each_gets_its_own(served, exported):
    before = metric(served, "tf_transformer_batches ")
    found = in_parallel(lambda sentence: translate(served, [sentence])[0], SENTENCES, workers=20)
    assert found == exported.translate_strings(SENTENCES)
    assert metric(served, "tf_transformer_batches ") - before < len(SENTENCES) / 2


@pytest.fixture
def no_tensorflow(monkeypatch):
    """What fails needs none."""

    def imported(**_):
        pytest.fail("it imports TensorFlow first")

    monkeypatch.setattr("tf_transformer.commands.serve.import_tensorflow", imported)


def test_a_port_that_is_taken_is_named_before_anything_is_loaded(served, tmp_path, capsys, no_tensorflow):
    grpc_port, port = served.grpc.rpartition(":")[2], served.url.rpartition(":")[2]
    for options, option in ((["0", "--grpc-port", grpc_port], "--grpc-port"), ([port], "--port")):
        assert main(["serve", str(tmp_path), "--port", *options]) == 2
        assert f"(Address already in use): give another {option}, or --host" in capsys.readouterr().err
    assert main(["serve", str(tmp_path), "--port", "8500"]) == 2
    assert "REST and gRPC need different ports: give another --port. Received: 8500 for both" in capsys.readouterr().err
    assert main(["serve", str(tmp_path), "--host", "256.0.0.1"]) == 2
    assert "cannot listen at 256.0.0.1:8501 (Name or service not known)" in capsys.readouterr().err


def test_a_run_is_to_be_exported_first(copy_run, capsys, no_tensorflow):
    assert main(["serve", str(copy_run)]) == 2
    command = f"tf-transformer export --run-dir {copy_run} --output saved_models/copy_run/1"
    assert capsys.readouterr().err == (
        f"tf-transformer: error: {copy_run} is a run directory, and exports are served: first {command}\n"
    )


def test_a_port_is_held_until_it_is_opened():
    first = Ports("127.0.0.1", 0, 0)
    port = first.open_rest().getsockname()[1]
    with pytest.raises(
        InputError, match=rf"cannot listen at 127.0.0.1:{port} \(Address already in use\): give another"
    ):
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
def test_a_killed_server_starts_again(start_server, soon_warm):
    first = start_server(soon_warm)
    assert first.name == soon_warm.parent.name  # that of the folder above the number
    first.process.kill()
    again = start_server(soon_warm)
    assert translate(again, ["a b c"])


def test_a_name_that_no_address_can_have_is_refused(soon_warm):
    with pytest.raises(InputError, match=r"must not have a slash\. Received: a/b"):
        ServedModel(soon_warm, "a/b", Limits(), Metrics())


@pytest.mark.long
def test_a_log_of_requests_and_origins_are_options(start_server, soon_warm):
    served = start_server(soon_warm.parent, "--access-log", "--allow-origin", "https://app.example")
    translate(served, ["a"])
    wait_for(lambda: f"rest POST /v1/models/{served.name}:predict 200 " in served.log.read_text())
    asked = urllib.request.Request(f"{served.url}/v1/models/{served.name}", headers={"Origin": "https://app.example"})
    with urllib.request.urlopen(asked, timeout=SECONDS) as response:
        assert response.headers["Access-Control-Allow-Origin"] == "https://app.example"


def test_a_body_that_grpc_cannot_hold_is_refused():
    with pytest.raises(InputError, match=r"max_body must be below 2\*\*31\. Received: 2147483648"):
        Limits(max_body=2**31)


@pytest.mark.parametrize(
    "name", ["max_sentences", "max_tokens", "max_sentence_bytes", "max_queue", "max_batch_tokens", "timeout"]
)
def test_limits_that_let_nothing_through_are_refused(name):
    with pytest.raises(InputError, match=f"{name} must be .* Received: 0"):
        Limits(**{name: 0})
