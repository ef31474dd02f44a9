"""A SavedModel in memory."""

import os
from pathlib import Path
from typing import Any

import tensorflow as tf
import tensorflow_text  # noqa: F401  registers the ops of the tokenizers
from tensorflow.core.protobuf.saved_model_pb2 import SavedModel
from tensorflow.python.eager import context, execute
from tensorflow.python.eager.cancellation import CancellationManager

from tf_transformer.errors import InputError
from tf_transformer.serving.jobs import Arrays
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

    def function(signature: str, columns: Columns, cancellation: CancellationManager) -> Arrays:
        tensors = {name: tf.constant(column, tf.string) for name, column in columns.items()}
        return {
            name: tensor.numpy() for name, tensor in _called(model.signatures[signature], tensors, cancellation).items()
        }

    own = {name: definition for name, definition in definitions.items() if name in model.signatures}
    return Signatures(path, own, function)


def _called(function: Any, tensors: dict[str, tf.Tensor], cancellation: CancellationManager) -> dict[str, tf.Tensor]:
    """Call a signature. TensorFlow looks between two steps of a loop whether the call has been cancelled.

    `CancellationManager.get_cancelable_function` would do so too, but for the calls of other threads as well.
    """
    here = context.context()
    outputs = execute.execute_with_cancellation(
        function.name,
        num_outputs=len(function.outputs),
        inputs=[*(tensors[name] for name in function._arg_keywords), *function.captured_inputs],
        attrs=("executor_type", "", "config_proto", here.function_call_options.config_proto_serialized),
        ctx=here,
        cancellation_manager=cancellation,
    )
    return tf.nest.pack_sequence_as(function.structured_outputs, outputs)
