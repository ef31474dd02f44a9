"""Requests that TensorFlow Serving runs before it serves a version, so that the first client does not wait."""

import os
from collections.abc import Mapping
from pathlib import Path

import tensorflow as tf
from tensorflow_serving.apis.predict_pb2 import PredictRequest
from tensorflow_serving.apis.prediction_log_pb2 import PredictionLog, PredictLog

from tf_transformer.runs.descriptions import WARM_UP
from tf_transformer.runs.signatures import Signature
from tf_transformer.tokenizers import END, SPACE_MARK, Tokenizer

WORDS = 12
"""Words of the sentence, about as many as a sentence of news text has tokens."""
BATCHES = (1, 8)
"""The numbers of sentences in the requests."""


def write_requests(
    model: Path, signatures: Mapping[str, Signature], tokenizer: Tokenizer, known: Mapping[str, str | None]
) -> None:
    """Write requests beside a SavedModel.

    Args:
        model: the folder of the SavedModel.
        signatures: its signatures, by name.
        tokenizer: of the source language; the sentence consists of words that it has.
        known: values for the inputs that are not given the sentence, such as languages and a prefix.
    """
    sentence = sentence_of(tokenizer)
    (model / WARM_UP).parent.mkdir(exist_ok=True)
    with tf.io.TFRecordWriter(os.fspath(model / WARM_UP)) as writer:
        for name, signature in signatures.items():
            for size in BATCHES:
                request = PredictRequest()
                request.model_spec.signature_name = name
                for given in signature.takes:
                    request.inputs[given].CopyFrom(tf.make_tensor_proto([known.get(given, sentence)] * size))
                writer.write(PredictionLog(predict_log=PredictLog(request=request)).SerializeToString())


def sentence_of(tokenizer: Tokenizer) -> str:
    """Return a sentence of words that a tokenizer has."""
    words = [piece.removeprefix(SPACE_MARK) for piece in tokenizer.pieces[END + 1 :] if piece.startswith(SPACE_MARK)]
    return " ".join([word for word in words if word][:WORDS]) or "a"
