"""A version of a model, which answers many clients at once."""

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
from tf_transformer.runs.signatures import COUNT, DEFAULT
from tf_transformer.serving import litert, saved_model
from tf_transformer.serving.batching import Arrays, Batcher, Job, Sentence
from tf_transformer.serving.limits import Limits, Refused
from tf_transformer.serving.tensors import Columns, columns_of
from tf_transformer.text.documents import fits_by

log = logging.getLogger(__name__)


class Version:
    """A version of a model. Many threads may call its methods.

    Sentences of several calls share a batch only if all outputs of the signature have a fixed shape for each sentence.
    Otherwise the width of one client's answer would depend on the sentences of others.

    Args:
        path: a SavedModel whose signatures take strings [B] and return tensors [B, ...], or an export for LiteRT.
        number: the number of the version.
        limits: the limits of requests and batches.
        count: is called with the number of sentences of each batch that clients have asked for.

    Raises:
        InputError: there is no such model, or it is damaged.
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
        described = self._described(path)
        self.direction: tuple[str | None, str | None] = (None, None)
        """The source and the target language, as far as the export names them."""
        self.languages: tuple[str, ...] = ()
        """All languages with a token; () if the model has one direction."""
        self.fits: Callable[[str], bool] = lambda text: True
        """Says whether the model takes all of a sentence, as far as the export shows it."""
        if described:
            data, decoding = described.config.data, described.config.decoding
            self.direction = (decoding.source_language or data.source, decoding.target_language or data.target)
            self.languages = described.languages
            if self.signatures.has_count:
                self.fits = fits_by(self._count, described.most_source)

    def run(self, signature: str, columns: Columns, over: threading.Event) -> Arrays:
        """Call a signature with sentences, and wait for its answer.

        Args:
            signature: the name of one of the signatures.
            columns: for each input of the signature, the sentences [B].
            over: is set by the caller when nobody waits any more. Sentences that have not begun by then never do.

        Returns:
            For each output of the signature, an array [B, ...].

        Raises:
            Refused: there are more than `max_tokens`, a language is unknown, the answer is too large, or nobody waits.
        """
        self.check_languages(columns)
        sentences = self._sentences(signature, columns)
        tokens = self.signatures.count(signature, sentences)
        if sum(tokens) > self._limits.max_tokens:
            raise Refused(400, f"a request may have at most {self._limits.max_tokens} tokens. Received: {sum(tokens)}")
        job = Job(signature, sentences, tokens, over)
        self._batcher.submit(job)
        return job.result()

    def warm_up(self, signatures: Iterable[str]) -> None:
        """Call signatures with the warm-up requests of the export. The first call optimises a graph, on one core.

        Raises:
            InputError: a request fails.
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
        """End the thread of the version once all requests are answered."""
        self._batcher.close()

    def _sentences(self, signature: str, columns: Columns) -> list[Sentence]:
        return list(zip(*(columns[name] for name in self.signatures.inputs[signature]), strict=True))

    def check_languages(self, columns: Columns) -> None:
        """Raise Refused for a language that the model does not have. A batch with it would fail for all its clients."""
        for name in LANGUAGES:
            for language in dict.fromkeys(columns.get(name, ())) if self.languages else ():
                if (text := language.decode("utf-8", "replace")) not in self.languages:
                    raise Refused(400, f"{name}: {unknown('language', text[:100], self.languages)}")

    def _count(self, texts: list[str]) -> list[int]:
        return self.signatures.count(COUNT, [(text.encode(),) for text in texts])

    def _described(self, path: Path) -> Described | None:
        """Return the description of an export, if it has one."""
        if not (path / (OF_LITERT if is_litert(path) else OF_EXPORT)).exists():
            return None
        try:
            described = Described(path)
            _ = described.most_source  # raises InputError too
            return described
        except InputError as error:
            # The model translates without its description, which is for people.
            log.warning("version %d: %s", self.number, error)
            return None

    def _requests_of(self, path: Path) -> dict[str, list[Columns]]:
        """Return, for each signature, its requests in a file of warm-up requests of TensorFlow Serving."""
        inputs = self.signatures.inputs
        requests: dict[str, list[Columns]] = {name: [] for name in inputs}
        try:
            for record in tf.data.TFRecordDataset(os.fspath(path)) if path.exists() else ():
                request = PredictionLog.FromString(record.numpy()).predict_log.request
                signature = request.model_spec.signature_name or DEFAULT
                requests[signature].append(columns_of(request.inputs, inputs[signature], self._limits))
        except (KeyError, DecodeError, Refused, tf.errors.OpError) as error:
            raise InputError(f"{path} is damaged, or belongs to another model: {error}") from None
        return requests
