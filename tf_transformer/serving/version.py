"""A SavedModel in memory: its signatures, batched across the threads that call them."""

import concurrent.futures
import itertools
import math
import os
import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_text  # noqa: F401  registers the ops of the tokenizers
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import DecodeError
from tensorflow.core.protobuf.meta_graph_pb2 import SignatureDef
from tensorflow.core.protobuf.saved_model_pb2 import SavedModel
from tensorflow_serving.apis.prediction_log_pb2 import PredictionLog

from tf_transformer.errors import InputError
from tf_transformer.serving.limits import Limits, Refused
from tf_transformer.serving.tensors import Columns, columns_of

WARM_UP = Path("assets.extra", "tf_serving_warmup_requests")
"""Where TensorFlow Serving looks for requests to run before it serves a version."""


DEFAULT = "serving_default"
"""The signature of a request that names none."""


MOST_VALUES = 1 << 20
"""Numbers and strings of an answer whose width depends on its sentences: [B, T, S] of many long ones has no bound."""

_names = itertools.count()


class Version:
    """A version of a model. Its methods may be called by many threads.

    Sentences of several calls are translated in one batch where all that a signature gives has a fixed shape for
    each sentence; otherwise the width of one client's answer would depend on the sentences of others.

    Args:
        path: a SavedModel whose signatures take strings [B] and give tensors [B, ...].
        number: what it is called.
        limits: of requests and batches.

    Raises:
        InputError: not such a SavedModel, or a damaged one.
    """

    def __init__(self, path: Path, number: int, limits: Limits):
        self.number = number
        self._path = path
        self._limits = limits
        self._one_at_a_time = threading.Lock()
        self._count = tf.Variable(0, dtype=tf.int64)
        self._warming = 0
        self._counting = threading.Lock()
        self._name = f"{number}_{next(_names)}"
        try:
            saved = SavedModel.FromString((path / "saved_model.pb").read_bytes())
            definitions = saved.meta_graphs[0].signature_def
            self._model = tf.saved_model.load(os.fspath(path))
        except Exception as error:
            # Whatever TensorFlow and protobuf raise for bytes that are wrong: there are a dozen kinds.
            raise InputError(f"cannot load {path}: {error}") from error
        self.signature_defs: Mapping[str, SignatureDef] = {
            name: definition for name, definition in definitions.items() if name in self._model.signatures
        }
        self.inputs = {name: self._inputs(path, name) for name in self.signature_defs}
        if not self.inputs:
            raise InputError(f"{path} has no signature to call")
        functions = [function for graph in saved.meta_graphs for function in graph.graph_def.library.function]
        sizes = list(range(1, limits.max_batch + 1))
        if any(function.attr["_XlaMustCompile"].b for function in functions):
            # Each size would be compiled for itself.
            sizes = sorted({min(1 << i, limits.max_batch) for i in range(limits.max_batch.bit_length() + 1)})
        self._batched = {name: self._batch(name, sizes) for name in self.inputs if self._is_regular(name)}
        self._requests = self._requests_of(path / WARM_UP)

    @property
    def batches(self) -> int:
        """How many batches have been translated for clients."""
        return int(self._count.numpy()) - self._warming

    @property
    def metadata(self) -> dict[str, Any]:
        """The signatures as TensorFlow Serving's REST API shows them."""
        shown = {
            name: MessageToDict(definition, preserving_proto_field_name=True, always_print_fields_with_no_presence=True)
            for name, definition in self.signature_defs.items()
        }
        return {"signature_def": {"signature_def": shown}}

    def run(self, signature: str, columns: Columns, given_up: threading.Event) -> dict[str, np.ndarray]:
        """Call a signature with sentences, and wait for its answer.

        Args:
            signature: one of `inputs`.
            columns: for each of its inputs the sentences, [B].
            given_up: set when nobody waits any more: what has not begun need not.

        Returns:
            For each of its outputs an array [B, ...].

        Raises:
            Refused: an answer of more than `MOST_VALUES`; nobody waits.
        """
        sentences = list(zip(*(columns[name] for name in self.inputs[signature]), strict=True))
        # Of a request that is split, sentences of like lengths go together.
        order = sorted(range(len(sentences)), key=lambda i: sum(map(len, sentences[i])))
        texts = [tf.constant([sentences[i][k] for i in order], tf.string) for k in range(len(columns))]
        if signature in self._batched:
            found = {name: tensor.numpy() for name, tensor in self._batched[signature](*texts).items()}
        else:
            with self._one_at_a_time:
                found = self._in_parts(signature, texts, given_up)
        back = np.argsort(np.array(order, int))
        return {name: array[back] for name, array in found.items()}

    def warm_up(self, signatures: Iterable[str]) -> None:
        """Call signatures with what the export has for it: the first call of each optimises its graph, on one core.

        Raises:
            InputError: one fails.
        """

        def call(signature: str) -> None:
            for columns in self._requests[signature]:
                self.run(signature, columns, threading.Event())
                sentences = len(next(iter(columns.values())))
                with self._counting:
                    self._warming += max(1, math.ceil(sentences / self._limits.max_batch))

        try:
            with concurrent.futures.ThreadPoolExecutor() as threads:
                list(threads.map(call, signatures))
        except tf.errors.OpError as error:
            raise InputError(f"{self._path} fails at a request that it was exported with: {error.message}") from error

    def _inputs(self, path: Path, signature: str) -> tuple[str, ...]:
        _, arguments = self._model.signatures[signature].structured_input_signature
        for name, spec in arguments.items():
            if spec.dtype != tf.string or spec.shape.rank != 1:
                raise InputError(
                    f"{path} is not a model of strings [batch]. Received: signature {signature}, input {name} {spec}"
                )
        return tuple(sorted(arguments))

    def _is_regular(self, signature: str) -> bool:
        outputs = self._model.signatures[signature].structured_outputs.values()
        return all(tensor.shape[1:].is_fully_defined() for tensor in outputs)

    def _batch(self, signature: str, sizes: list[int]) -> Callable[..., dict[str, tf.Tensor]]:
        limits, function = self._limits, self._model.signatures[signature]
        names, inputs = sorted(function.structured_outputs), self.inputs[signature]

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string)] * len(inputs))
        def counted(*texts: tf.Tensor) -> list[tf.Tensor]:
            self._count.assign_add(1)
            found = function(**dict(zip(inputs, texts, strict=True)))
            return [found[name] for name in names]

        body = counted.get_concrete_function()

        def call(*texts: tf.Tensor) -> dict[str, tf.Tensor]:
            # The op of `tf.nondifferentiable_batch_function`, without the function around it, whose graph TensorFlow
            # would optimise with all that is in it, twice as long.
            found = tf.raw_ops.BatchFunction(
                in_tensors=texts,
                captured_tensors=body.captured_inputs,
                f=body,
                num_batch_threads=1,
                max_batch_size=max(limits.max_sentences, limits.max_batch),
                batch_timeout_micros=round(limits.batch_wait * 1000),
                allowed_batch_sizes=sizes,
                # No request is refused here: max_queue has done that.
                max_enqueued_batches=limits.max_queue * math.ceil(limits.max_sentences / limits.max_batch) + 1,
                # TensorFlow keeps the queue under this name: two versions must not share one.
                shared_name=f"{signature}_{self._name}",
                enable_large_batch_splitting=True,
                Tout=[output.dtype for output in body.outputs],
            )
            return dict(zip(names, found, strict=True))

        return call

    def _in_parts(self, signature: str, texts: list[tf.Tensor], given_up: threading.Event) -> dict[str, np.ndarray]:
        function, most = self._model.signatures[signature], self._limits.max_batch
        parts: list[dict[str, np.ndarray]] = []
        for start in range(0, max(1, len(texts[0])), most):
            if given_up.is_set():
                raise Refused(504, "nobody waits for the answer")
            of_part = {
                name: text[start : start + most] for name, text in zip(self.inputs[signature], texts, strict=True)
            }
            self._count.assign_add(1)
            # The widest are in the last part: sentences come in the order of their lengths.
            part = {name: tensor.numpy() for name, tensor in function(**of_part).items()}
            parts.append(part)
            values = sum(len(texts[0]) * math.prod(array.shape[1:]) for array in part.values())
            if values > MOST_VALUES:
                raise Refused(400, f"the answer would have {values} values, and may have {MOST_VALUES}: send less")
        return {name: _padded([part[name] for part in parts]) for name in parts[0]}

    def _requests_of(self, path: Path) -> dict[str, list[Columns]]:
        """Return for each signature the requests of a file that TensorFlow Serving would warm up with."""
        requests: dict[str, list[Columns]] = {name: [] for name in self.inputs}
        most = self._limits.max_sentences
        try:
            for record in tf.data.TFRecordDataset(os.fspath(path)) if path.exists() else ():
                request = PredictionLog.FromString(record.numpy()).predict_log.request
                signature = request.model_spec.signature_name or DEFAULT
                requests[signature].append(columns_of(request.inputs, self.inputs[signature], most))
        except (KeyError, DecodeError, Refused, tf.errors.OpError) as error:
            raise InputError(f"{path} is damaged, or of another model: {error}") from None
        return requests


def _padded(arrays: list[np.ndarray]) -> np.ndarray:
    """Put arrays [b, ...] of different widths one after the other, [B, ...]: zeros and empty strings fill them up."""
    widths = np.max([array.shape[1:] for array in arrays], axis=0).astype(int)
    fill = b"" if arrays[0].dtype == object else 0
    result = np.full((sum(map(len, arrays)), *widths), fill, arrays[0].dtype)
    start = 0
    for array in arrays:
        result[(slice(start, start + len(array)), *(slice(0, size) for size in array.shape[1:]))] = array
        start += len(array)
    return result
