"""gRPC, by the client that TensorFlow Serving's users have."""

import asyncio
import logging
import threading

import grpc
import numpy as np
import pytest
import tensorflow as tf
from grpc_health.v1 import health_pb2, health_pb2_grpc
from tensorflow.core.framework.tensor_pb2 import TensorProto
from tensorflow.core.framework.types_pb2 import DT_STRING
from tensorflow_serving.apis import (
    classification_pb2,
    get_model_metadata_pb2,
    get_model_status_pb2,
    inference_pb2,
    model_service_pb2_grpc,
    predict_pb2,
    prediction_service_pb2_grpc,
    regression_pb2,
)

from tests.serving.conftest import SECONDS
from tf_transformer.serving.grpc_service import HEALTHY, make_server
from tf_transformer.serving.http.middleware import ACCESS
from tf_transformer.serving.keys import Keys
from tf_transformer.serving.limits import Limits
from tf_transformer.serving.metrics import Metrics
from tf_transformer.serving.model import ServedModel

SENTENCES = ["a b c", "g f e d", "", "h"]


@pytest.fixture(scope="module")
def channel(served):
    with grpc.insecure_channel(served.grpc) as channel:
        yield channel


@pytest.fixture(scope="module")
def stub(channel):
    return prediction_service_pb2_grpc.PredictionServiceStub(channel)


@pytest.fixture(scope="module")
def loaded(copy_export):
    return tf.saved_model.load(str(copy_export))


def request(served, text=SENTENCES, **spec):
    wanted = predict_pb2.PredictRequest()
    wanted.model_spec.name = served.name
    for key, value in spec.items():
        setattr(wanted.model_spec, key, value)
    wanted.inputs["text"].CopyFrom(text if isinstance(text, TensorProto) else tf.make_tensor_proto(text, tf.string))
    return wanted


def test_it_translates(served, stub, exported):
    answer = stub.Predict(request(served), timeout=60)
    assert answer.model_spec.name == served.name
    assert answer.model_spec.version.value == 1
    outputs = {name: tf.make_ndarray(tensor) for name, tensor in answer.outputs.items()}
    wanted = exported.translate_strings(SENTENCES)
    assert [text.decode() for text in outputs["translation"]] == wanted
    assert outputs["score"].dtype == np.float32
    assert outputs["is_truncated"].tolist() == [False] * 4


def test_outputs_may_be_chosen(served, stub):
    wanted = request(served, signature_name="translate_n_best")
    wanted.output_filter.append("scores")
    answer = stub.Predict(wanted, timeout=60)
    assert list(answer.outputs) == ["scores"]
    assert tf.make_ndarray(answer.outputs["scores"]).shape == (4, 4)


@pytest.mark.parametrize("text", [[b"\xff\xfe", b"a b"], [b"a\0b", b"a b"], []], ids=["UTF-8", "NUL", "empty"])
def test_any_bytes_are_translated(served, stub, text, loaded):
    found = tf.make_ndarray(stub.Predict(request(served, text), timeout=60).outputs["translation"])
    offline = loaded.signatures["serving_default"](text=tf.constant(text, tf.string))
    assert found.tolist() == offline["translation"].numpy().tolist()


def test_a_tensor_may_leave_out_what_repeats_or_be_packed(served, stub):
    """As TensorFlow's own clients in C++ write it."""
    packed = TensorProto(dtype=DT_STRING, tensor_content=b"\x03\x05" + b"a b" + b"c d e")
    packed.tensor_shape.dim.add(size=2)
    for text, same in ((claiming(3), ["a", "a", "a"]), (packed, ["a b", "c d e"])):
        found, wanted = (stub.Predict(request(served, t), timeout=60).outputs["translation"] for t in (text, same))
        assert tf.make_ndarray(found).tolist() == tf.make_ndarray(wanted).tolist()


def claiming(size: int, text: bytes = b"a") -> TensorProto:
    """One string, and so many that it stands for."""
    tensor = TensorProto(dtype=DT_STRING, string_val=[text])
    tensor.tensor_shape.dim.add(size=size)
    return tensor


@pytest.mark.parametrize(
    ("text", "spec", "code", "message"),
    [
        (
            tf.make_tensor_proto([1, 2]),
            {},
            "INVALID_ARGUMENT",
            r"must be strings of shape \[batch\]. Received: DT_INT32",
        ),
        (tf.make_tensor_proto([["a"]]), {}, "INVALID_ARGUMENT", r"Received: DT_STRING of shape \[1, 1\]"),
        (claiming(10**12), {}, "INVALID_ARGUMENT", "may have at most 1024 sentences. Received: 1000000000000"),
        (claiming(-1), {}, "INVALID_ARGUMENT", r"Received: DT_STRING of shape \[-1\]"),
        (["a"], {"name": "other"}, "NOT_FOUND", "Servable not found"),
        (["a"], {"version_label": "x"}, "NOT_FOUND", "version labels are not supported"),
        (["a"], {"signature_name": "x"}, "INVALID_ARGUMENT", "there is no signature 'x'"),
        (["a"] * 1025, {}, "INVALID_ARGUMENT", "may have at most 1024 sentences"),
        (["a " * 500] * 66, {}, "INVALID_ARGUMENT", "may have at most 32768 tokens. Received: 33066"),
        (
            claiming(1024, b"a" * 1025),
            {},
            "INVALID_ARGUMENT",
            "input 'text' may have at most 1048576 bytes. Received: 1049600",
        ),
        (["a" * 2_000_000], {}, "RESOURCE_EXHAUSTED", "larger than max"),
    ],
)
def test_bad_input_is_refused(served, stub, text, spec, code, message):
    with pytest.raises(grpc.RpcError, match=message) as caught:
        stub.Predict(request(served, text, **spec), timeout=60)
    assert caught.value.code().name == code
    assert stub.Predict(request(served), timeout=60).outputs


@pytest.fixture(scope="module")
def model(soon_warm) -> ServedModel:
    return ServedModel(soon_warm, "copy", Limits(max_batch_tokens=2 * 16), Metrics())


def of_model(model, talk, keys: Keys | None = None) -> None:
    """Talk to a server in this process, by a stub."""

    async def serve() -> None:
        server, port, _ = make_server(model, "127.0.0.1:0", keys or Keys())
        await server.start()
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            await talk(prediction_service_pb2_grpc.PredictionServiceStub(channel))
        await server.stop(None)

    asyncio.run(serve())


def test_a_server_may_want_a_key(model, tmp_path):
    (tmp_path / "keys").write_text("secret")

    async def ask(stub) -> None:
        for metadata in ((), [("authorization", "Bearer other")]):
            with pytest.raises(grpc.aio.AioRpcError, match="API key") as caught:
                await stub.Predict(request(model), metadata=metadata)
            assert caught.value.code() == grpc.StatusCode.PERMISSION_DENIED
        assert (await stub.Predict(request(model), metadata=[("authorization", "Bearer secret")])).outputs

    of_model(model, ask, Keys(tmp_path / "keys"))


def test_a_client_that_goes_is_given_up(model, held_back):
    gate = held_back(model.version)
    wanted = request(model)

    async def leave(stub) -> None:
        call = stub.Predict(wanted)
        asking = asyncio.ensure_future(call)
        assert len(await asyncio.to_thread(gate.begun)) == 2
        call.cancel()
        await asyncio.wait([asking])
        while model.running:
            await asyncio.sleep(0.01)
        gate.go_on(2)
        answer = await stub.Predict(request(model, ["b c"]))
        assert gate.begun() == [(b"b c",)]  # not the other two sentences of the one that has gone
        assert tf.make_ndarray(answer.outputs["translation"]).shape == (1,)

    of_model(model, leave)


def test_answers_are_made_beside_the_event_loop(model, monkeypatch):
    threads = []
    make = tf.make_tensor_proto
    wanted = request(model)

    def seen(*arguments):
        threads.append(threading.current_thread().name)
        return make(*arguments)

    monkeypatch.setattr(tf, "make_tensor_proto", seen)

    async def ask(stub) -> None:
        await stub.Predict(wanted)

    of_model(model, ask)
    assert len(threads) == 3
    assert all(name.startswith("predict") for name in threads)


def test_an_unknown_output_is_refused_before_the_search(model, held_back):
    gate = held_back(model.version)
    wanted = request(model)
    wanted.output_filter.extend(["score", "x"])

    async def ask(stub) -> None:
        with pytest.raises(
            grpc.RpcError, match=r"output_filter names outputs that the signature does not have: \['x'\]"
        ):
            await stub.Predict(wanted)

    of_model(model, ask)
    assert not gate.unseen


def test_requests_are_logged_and_counted(model, caplog):
    caplog.set_level(logging.INFO, ACCESS)

    async def ask(stub) -> None:
        await stub.Predict(request(model, signature_name="translate_n_best"))
        with pytest.raises(grpc.RpcError):
            await stub.Predict(request(model, signature_name="a\nb"))

    of_model(model, ask)
    lines = [record.getMessage().rsplit(" ", 2) for record in caplog.records if record.name == ACCESS]
    assert [line[0] for line in lines] == ["grpc Predict translate_n_best 200", "grpc Predict a\\nb 400"]
    assert all(float(line[1]) > 0 and line[2] == "ms" for line in lines)
    assert b'tf_transformer_requests_total{api="grpc",status="400"}' in model.metrics.text()


@pytest.mark.parametrize(
    ("method", "asked"),
    [
        ("Classify", classification_pb2.ClassificationRequest()),
        ("Regress", regression_pb2.RegressionRequest()),
        ("MultiInference", inference_pb2.MultiInferenceRequest()),
    ],
)
def test_what_it_does_not_have_is_unimplemented(model, caplog, method, asked):
    async def ask(stub) -> None:
        with pytest.raises(grpc.RpcError, match=r"this server has no \w+: call Predict") as caught:
            await getattr(stub, method)(asked)
        assert caught.value.code() == grpc.StatusCode.UNIMPLEMENTED

    of_model(model, ask)
    # No traceback; asyncio may tell of gRPC's own thread, which looked at the loop of an earlier test.
    assert [record for record in caplog.records if record.name != "asyncio"] == []


def test_what_goes_wrong_inside_is_internal(model, monkeypatch):
    monkeypatch.setattr(model, "find", lambda *_: {}["a"])

    async def ask(stub) -> None:
        with pytest.raises(grpc.RpcError, match="the server failed; its log says why") as caught:
            await stub.Predict(request(model))
        assert caught.value.code() == grpc.StatusCode.INTERNAL

    of_model(model, ask)


@pytest.mark.parametrize("content", [b"\xff" * 9, b"\x05ab", b""])
def test_content_that_is_no_strings_is_refused_in_our_words(served, stub, content):
    tensor = TensorProto(dtype=DT_STRING, tensor_content=content)
    tensor.tensor_shape.dim.add(size=2)
    asked = request(served)
    asked.inputs["text"].CopyFrom(tensor)
    if not content:  # nothing given stands for empty strings, in TensorFlow's form
        assert tf.make_ndarray(stub.Predict(asked, timeout=60).outputs["translation"]).tolist() == [b"", b""]
        return
    with pytest.raises(grpc.RpcError, match="the content of input 'text' is not that of 2 strings") as caught:
        stub.Predict(asked, timeout=60)
    assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT


@pytest.mark.parametrize("name", HEALTHY)
def test_each_service_is_well_once_all_signatures_are_warm(channel, name):
    stub = health_pb2_grpc.HealthStub(channel)
    asked = health_pb2.HealthCheckRequest(service=name)
    states = (answer.status for answer in stub.Watch(asked, timeout=SECONDS))
    assert health_pb2.HealthCheckResponse.SERVING in states
    assert stub.Check(asked, timeout=SECONDS).status == health_pb2.HealthCheckResponse.SERVING


def test_it_says_that_it_is_well(channel):
    """By the protocol of Kubernetes's probes and of gRPC's own clients."""
    stub = health_pb2_grpc.HealthStub(channel)
    assert stub.Check(health_pb2.HealthCheckRequest(), timeout=60).status == health_pb2.HealthCheckResponse.SERVING
    with pytest.raises(grpc.RpcError) as caught:
        stub.Check(health_pb2.HealthCheckRequest(service="other"), timeout=60)
    assert caught.value.code() == grpc.StatusCode.NOT_FOUND


def test_it_says_what_it_serves(served, stub, channel):
    wanted = get_model_metadata_pb2.GetModelMetadataRequest(metadata_field=["signature_def"])
    wanted.model_spec.name = served.name
    packed = stub.GetModelMetadata(wanted, timeout=60).metadata["signature_def"]
    signatures = get_model_metadata_pb2.SignatureDefMap()
    assert packed.Unpack(signatures)
    assert signatures.signature_def["serving_default"].inputs["text"].dtype == DT_STRING
    status = get_model_status_pb2.GetModelStatusRequest()
    status.model_spec.name = served.name
    (state,) = model_service_pb2_grpc.ModelServiceStub(channel).GetModelStatus(status, timeout=60).model_version_status
    assert (state.version, state.State.Name(state.state)) == (1, "AVAILABLE")
