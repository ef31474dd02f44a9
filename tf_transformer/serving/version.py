"""A version of a model: its signatures, for many clients at once."""

import concurrent.futures
import logging
import os
import threading
from collections.abc import Callable, Iterable
from pathlib import Path

import tensorflow as tf
from google.protobuf.message import DecodeError
from tensorflow_serving.apis.prediction_log_pb2 import PredictionLog

from tf_transformer.errors import InputError, unknown
from tf_transformer.runs.descriptions import LANGUAGES, OF_EXPORT, OF_LITERT, WARM_UP, Described, is_litert
from tf_transformer.serving import litert, saved_model
from tf_transformer.serving.batching import Arrays, Batcher, Job, Sentence
from tf_transformer.serving.limits import Limits, Refused
from tf_transformer.serving.signatures import DEFAULT
from tf_transformer.serving.tensors import Columns, columns_of

log = logging.getLogger(__name__)


class Version:
    """A version of a model. Its methods may be called by many threads.

    Sentences of several calls are translated in one batch where all that a signature gives has a fixed shape for
    each sentence; otherwise the width of one client's answer would depend on the sentences of others.

    Args:
        path: a SavedModel whose signatures take strings [B] and give tensors [B, ...], or an export for LiteRT.
        number: what it is called.
        limits: of requests and batches.
        count: told the sentences of each batch that clients have asked for.

    Raises:
        InputError: not such a model, or a damaged one.
    """

    def __init__(self, path: Path, number: int, limits: Limits, count: Callable[[int], None]):
        self.number = number
        self.signatures = (litert if is_litert(path) else saved_model).load(path)
        self._path = path
        self._limits = limits
        self._batcher = Batcher(
            self.signatures.call,
            self.signatures.regular,
            max_tokens=limits.max_batch_tokens,
            wait=limits.batch_wait / 1000,
            count=count,
        )
        self._requests = self._requests_of(path / WARM_UP)
        self.direction, self.languages = self._languages(path)

    def run(self, signature: str, columns: Columns, over: threading.Event) -> Arrays:
        """Call a signature with sentences, and wait for its answer.

        Args:
            signature: one that there is.
            columns: for each of its inputs the sentences, [B].
            over: set by the caller when nobody waits any more: what has not begun is not begun then.

        Returns:
            For each of its outputs an array [B, ...].

        Raises:
            Refused: more than `max_tokens`; an unknown language; an answer that is too large; nobody waits.
        """
        self.check_languages(columns)
        sentences = self._sentences(signature, columns)
        tokens = self.signatures.count(signature, sentences)
        if sum(tokens) > self._limits.max_tokens:
            raise Refused(400, f"a request may have {self._limits.max_tokens} tokens. Received: {sum(tokens)}")
        job = Job(signature, sentences, tokens, over)
        self._batcher.submit(job)
        return job.result()

    def warm_up(self, signatures: Iterable[str]) -> None:
        """Call signatures with what the export has for it: the first call of each optimises its graph, on one core.

        Raises:
            InputError: one fails.
        """

        def call(signature: str) -> None:
            for columns in self._requests[signature]:
                self.signatures.call(signature, self._sentences(signature, columns))

        try:
            with concurrent.futures.ThreadPoolExecutor() as threads:
                list(threads.map(call, signatures))
        except tf.errors.OpError as error:
            raise InputError(f"{self._path} fails at a request that it was exported with: {error.message}") from error

    def close(self) -> None:
        """Free its thread, once all that was asked is answered."""
        self._batcher.close()

    def _sentences(self, signature: str, columns: Columns) -> list[Sentence]:
        return list(zip(*(columns[name] for name in self.signatures.inputs[signature]), strict=True))

    def check_languages(self, columns: Columns) -> None:
        """Raise Refused for a language that the model does not have; a batch with it would fail for all."""
        for name in LANGUAGES:
            for language in dict.fromkeys(columns.get(name, ())) if self.languages else ():
                if (text := language.decode("utf-8", "replace")) not in self.languages:
                    raise Refused(400, f"{name}: {unknown('language', text[:100], self.languages)}")

    def _languages(self, path: Path) -> tuple[tuple[str | None, str | None], tuple[str, ...]]:
        """Return the languages of source and target, as far as the export says them, and all that it has a token of."""
        if not (path / (OF_LITERT if is_litert(path) else OF_EXPORT)).exists():
            return (None, None), ()
        try:
            described = Described(path)
        except InputError as error:
            # It translates all the same; what it says of itself is for people.
            log.warning("version %d: %s", self.number, error)
            return (None, None), ()
        data, decoding = described.config.data, described.config.decoding
        direction = (decoding.source_language or data.source, decoding.target_language or data.target)
        return direction, described.languages

    def _requests_of(self, path: Path) -> dict[str, list[Columns]]:
        """Return for each signature the requests of a file that TensorFlow Serving would warm up with."""
        inputs = self.signatures.inputs
        requests: dict[str, list[Columns]] = {name: [] for name in inputs}
        try:
            for record in tf.data.TFRecordDataset(os.fspath(path)) if path.exists() else ():
                request = PredictionLog.FromString(record.numpy()).predict_log.request
                signature = request.model_spec.signature_name or DEFAULT
                requests[signature].append(columns_of(request.inputs, inputs[signature], self._limits))
        except (KeyError, DecodeError, Refused, tf.errors.OpError) as error:
            raise InputError(f"{path} is damaged, or of another model: {error}") from None
        return requests
