"""A SavedModel in memory."""

import os
from pathlib import Path

import tensorflow as tf
import tensorflow_text  # noqa: F401  registers the ops of the tokenizers
from tensorflow.core.protobuf.saved_model_pb2 import SavedModel

from tf_transformer.errors import InputError
from tf_transformer.serving.batching import Arrays
from tf_transformer.serving.signatures import Signatures
from tf_transformer.serving.tensors import Columns


def load(path: Path) -> Signatures:
    """Return the signatures of a SavedModel.

    Raises:
        InputError: the SavedModel is damaged, or its signatures do not take strings.
    """
    try:
        saved = SavedModel.FromString((path / "saved_model.pb").read_bytes())
        definitions = saved.meta_graphs[0].signature_def
        model = tf.saved_model.load(os.fspath(path))
    except Exception as error:
        # TensorFlow and protobuf raise a dozen kinds of errors for wrong bytes.
        raise InputError(f"cannot load {path}: {error}") from error

    def function(signature: str, columns: Columns) -> Arrays:
        tensors = {name: tf.constant(column, tf.string) for name, column in columns.items()}
        return {name: tensor.numpy() for name, tensor in model.signatures[signature](**tensors).items()}

    own = {name: definition for name, definition in definitions.items() if name in model.signatures}
    return Signatures(path, own, function)
