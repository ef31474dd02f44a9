"""A version of a model, which answers many clients at once."""

import concurrent.futures
import logging
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import tensorflow as tf
from google.protobuf.message import DecodeError
from tensorflow_serving.apis.prediction_log_pb2 import PredictionLog

from tf_transformer.errors import InputError
from tf_transformer.runs.descriptions import OF_EXPORT, OF_LITERT, WARM_UP, Described, is_litert
from tf_transformer.runs.runtimes import cores
from tf_transformer.runs.signatures import DEFAULT
from tf_transformer.serving import litert, saved_model
from tf_transformer.serving.admission import Admission
from tf_transformer.serving.batching import Batcher
from tf_transformer.serving.jobs import Arrays, Job, Sentence, Waiting
from tf_transformer.serving.limits import Limits, Refused
from tf_transformer.serving.tensors import Columns, columns_of
from tf_transformer.text.documents import codes_by, fits_by

LETTERS = 16
"""The letters of a token, at most: what has more than a sentence can have need not be counted to be cut."""
SMALL = 128
"""The tokens of a request, at most, that need not wait for the batches of larger ones."""

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
        self.signatures = litert.load(path, limits.max_batch_tokens) if is_litert(path) else saved_model.load(path)
        self._path = path
        self._limits = limits
        self._batcher = Batcher(
            self.signatures.call,
            self.signatures.regular,
            max_tokens=limits.max_batch_tokens,
            wait=limits.batch_wait / 1000,
            count=count,
            is_ready=lambda signature: signature not in self.cold,
            small=SMALL,
        )
        self._requests = self._requests_of(path / WARM_UP)
        self.cold = {name for name, requests in self._requests.items() if requests}
        """The signatures that are yet to be warmed up. A request for one of them waits until it is."""
        described = self._described(path)
        self.admission = Admission(self.signatures, limits, described)
        """Counts what requests ask for, and refuses what is too much."""
        self.direction: tuple[str | None, str | None] = (None, None)
        """The source and the target language, as far as the export names them."""
        self.fits: Callable[[str], bool] = lambda text: True
        """Says whether the model takes all of a sentence, as far as the export shows it."""
        self.is_code: Callable[[str], bool] = lambda text: False
        """Says whether the model reads a code such as `>>de<<`, as far as the export shows it."""
        if described:
            data, decoding = described.config.data, described.config.decoding
            self.direction = (decoding.source_language or data.source, decoding.target_language or data.target)
            if self.signatures.has_count:
                fits, most = fits_by(self._count, described.most_source), LETTERS * described.most_source
                self.fits = lambda text: len(text) <= most and fits(text)
                self.is_code = codes_by(self._count)

    def run(self, signature: str, columns: Columns, over: Waiting) -> Arrays:
        """Call a signature with sentences, and wait for its answer.

        Args:
            signature: the name of one of the signatures.
            columns: for each input of the signature, the sentences [B].
            over: is set by the caller when nobody waits any more. Sentences that have not begun by then never do, and
                a batch is cancelled in which there are no others.

        Returns:
            For each output of the signature, an array [B, ...].

        Raises:
            Refused: as `Admission`; the answer is too large, or nobody waits.
        """
        self.admission.check(columns)
        job = Job(signature, self._sentences(signature, columns), self.admission.tokens(columns), over)
        if signature in self.cold:
            over.reason = f"the server still prepares the signature {signature} (see /readyz): try again later"
        self._batcher.submit(job)
        try:
            return job.result()
        finally:
            self._batcher.notify()

    def warm_up(self, signatures: Iterable[str], *, gives_way: bool = False) -> None:
        """Call signatures with the warm-up requests of the export. The first call optimises a graph, on one core.

        Args:
            signatures: their names.
            gives_way: whether clients are served meanwhile, who come first.

        Raises:
            InputError: a request fails.
        """

        def call(signature: str) -> None:
            try:
                for columns in self._requests[signature]:
                    self.signatures.call(signature, self._sentences(signature, columns))
            finally:
                self.cold.discard(signature)  # if it fails, its clients are told why
                self._batcher.notify()

        begin = _give_way if gives_way else None
        try:
            with concurrent.futures.ThreadPoolExecutor(cores(), "warm_up", begin) as threads:
                list(threads.map(call, signatures))
        except tf.errors.OpError as error:
            raise InputError(f"{self._path} fails at a request that it was exported with: {error.message}") from error

    def close(self) -> None:
        """End the thread of the version once all requests are answered."""
        self._batcher.close()

    def _sentences(self, signature: str, columns: Columns) -> list[Sentence]:
        return list(zip(*(columns[name] for name in self.signatures.inputs[signature]), strict=True))

    def _count(self, texts: list[str]) -> list[int]:
        return self.signatures.count([text.encode() for text in texts])

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


def _give_way() -> None:
    """Let the other threads of this process run first, where a thread has a priority of its own."""
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, 0, 10)
