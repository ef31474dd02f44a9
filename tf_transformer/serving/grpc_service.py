"""TensorFlow Serving's gRPC services for a model."""

import asyncio
import functools
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any

import grpc
import tensorflow as tf
from grpc_health.v1 import health, health_pb2_grpc  # type: ignore[import-untyped]
from tensorflow_serving.apis import (
    get_model_metadata_pb2,
    get_model_status_pb2,
    model_pb2,
    model_service_pb2_grpc,
    predict_pb2,
    prediction_service_pb2_grpc,
)

from tf_transformer.runs.signatures import DEFAULT
from tf_transformer.serving.http.middleware import access
from tf_transformer.serving.jobs import Arrays
from tf_transformer.serving.keys import Keys
from tf_transformer.serving.limits import Refused
from tf_transformer.serving.model import ServedModel
from tf_transformer.serving.tensors import columns_of

CODES = {
    400: grpc.StatusCode.INVALID_ARGUMENT,
    403: grpc.StatusCode.PERMISSION_DENIED,
    404: grpc.StatusCode.NOT_FOUND,
    429: grpc.StatusCode.RESOURCE_EXHAUSTED,
    500: grpc.StatusCode.INTERNAL,
    504: grpc.StatusCode.DEADLINE_EXCEEDED,
}
"""The gRPC codes of HTTP statuses."""


HEALTHY = ("tensorflow.serving.PredictionService", "tensorflow.serving.ModelService")
"""The services whose health is asked for by name. They are well once all signatures are warm."""

Method = Callable[[Any, Any], Awaitable[Any]]

log = logging.getLogger(__name__)


def answered(method: Method) -> Any:
    """Return a method that tells the client why a request is refused, and that is counted and logged."""

    @functools.wraps(method)
    async def answer(self: Any, request: Any, context: Any) -> Any:
        started = time.perf_counter()
        status = 500
        try:
            if method.__name__ == "Predict":
                self.keys.check_headers(dict(context.invocation_metadata() or ()))
            response = await method(self, request)
            status = 200
            return response
        except Refused as refused:
            status = refused.status
            await context.abort(CODES[refused.status], str(refused))
        except asyncio.CancelledError:
            status = 499  # the client has disconnected, or its deadline has passed
            raise
        except Exception:
            log.exception("the server failed at %s", method.__name__)
            await context.abort(grpc.StatusCode.INTERNAL, "the server failed; its log says why")
        finally:
            seconds = time.perf_counter() - started
            self.model.metrics.count_answer("grpc", status, seconds)
            signature = ascii(request.model_spec.signature_name[:100])[1:-1] or "-"
            access.info("grpc %s %s %d %.1f ms", method.__name__, signature, status, 1000 * seconds)

    return answer


async def unimplemented(_: Any, request: Any, context: Any) -> None:
    """Answer a method that this server does not have."""
    asked = type(request).__name__.removesuffix("Request")
    await context.abort(grpc.StatusCode.UNIMPLEMENTED, f"this server has no {asked}: call Predict")


class Predictions(prediction_service_pb2_grpc.PredictionServiceServicer):
    """`Predict` and `GetModelMetadata`."""

    def __init__(self, model: ServedModel, keys: Keys):
        self.model, self.keys = model, keys

    Classify = Regress = MultiInference = unimplemented

    @answered
    async def Predict(self, request: Any) -> Any:  # noqa: N802
        """Call a signature."""
        spec = request.model_spec
        signature = spec.signature_name or DEFAULT
        version = self.model.find(spec.name, _number(spec))
        self.model.check_signature(version, signature)
        if unknown := set(request.output_filter) - set(version.signatures.outputs[signature]):
            raise Refused(400, f"output_filter names outputs that the signature does not have: {sorted(unknown)}"[:500])
        columns = columns_of(request.inputs, version.signatures.inputs[signature], self.model.limits)

        def answer(outputs: Arrays) -> Any:
            response = predict_pb2.PredictResponse()
            _fill(response.model_spec, self.model, version, signature)
            for name in request.output_filter or outputs:
                response.outputs[name].CopyFrom(tf.make_tensor_proto(outputs[name]))
            return response

        return await self.model.predict(version, signature, columns, answer)

    @answered
    async def GetModelMetadata(self, request: Any) -> Any:  # noqa: N802
        """Return the signatures."""
        version = self.model.find(request.model_spec.name, _number(request.model_spec))
        if wrong := set(request.metadata_field) - {"signature_def"}:
            raise Refused(400, f"metadata_field must be signature_def. Received: {sorted(wrong)}"[:500])
        answer = get_model_metadata_pb2.GetModelMetadataResponse()
        _fill(answer.model_spec, self.model, version)
        signatures = get_model_metadata_pb2.SignatureDefMap()
        for name, definition in version.signatures.definitions.items():
            signatures.signature_def[name].CopyFrom(definition)
        answer.metadata["signature_def"].Pack(signatures)
        return answer


class Status(model_service_pb2_grpc.ModelServiceServicer):
    """`GetModelStatus`."""

    def __init__(self, model: ServedModel):
        self.model = model

    HandleReloadConfigRequest = unimplemented

    @answered
    async def GetModelStatus(self, request: Any) -> Any:  # noqa: N802
        """Return which version is served."""
        version = self.model.find(request.model_spec.name, _number(request.model_spec))
        state = get_model_status_pb2.ModelVersionStatus(version=version.number, state="AVAILABLE")
        return get_model_status_pb2.GetModelStatusResponse(model_version_status=[state])


def make_server(model: ServedModel, address: str, keys: Keys) -> tuple[grpc.aio.Server, int, health.aio.HealthServicer]:
    """Return a server that is not started yet, its port, and its health service.

    Args:
        model: the model.
        address: where to listen.
        keys: the keys of clients that may call `Predict`.

    Raises:
        RuntimeError: the server cannot listen at `address`.
    """
    options = [
        ("grpc.max_receive_message_length", model.limits.max_body),
        # Otherwise a second server could take the same port, and get some of the requests.
        ("grpc.so_reuseport", 0),
    ]
    server = grpc.aio.server(options=options)
    prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(Predictions(model, keys), server)
    model_service_pb2_grpc.add_ModelServiceServicer_to_server(Status(model), server)
    servicer = health.aio.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(servicer, server)
    # The empty name stands for the server, which is well from its start.
    return server, server.add_insecure_port(address), servicer


def _number(spec: Any) -> int | None:
    if spec.WhichOneof("version_choice") == "version_label":
        raise Refused(404, f"version labels are not supported: give a number. Received: {spec.version_label}")
    return spec.version.value if spec.HasField("version") else None


def _fill(spec: model_pb2.ModelSpec, model: ServedModel, version: Any, signature: str = "") -> None:
    spec.name, spec.signature_name = model.name, signature
    spec.version.value = version.number
