"""A SavedModel in memory, as the functions that its signatures are."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_text  # noqa: F401  registers the ops of the tokenizers
from google.protobuf.json_format import MessageToDict
from tensorflow.core.protobuf.meta_graph_pb2 import SignatureDef
from tensorflow.core.protobuf.saved_model_pb2 import SavedModel

from tf_transformer.errors import InputError
from tf_transformer.runs.descriptions import LANGUAGES
from tf_transformer.serving.batching import Arrays, Sentence

DEFAULT = "serving_default"
"""The signature of a request that names none."""
COUNT = "count_tokens"
"""The signature by which an export counts the tokens of its `text`."""


class Signatures:
    """The signatures of a SavedModel. They may be called by many threads.

    Args:
        path: a SavedModel whose signatures take strings [B] and give tensors [B, ...].

    Raises:
        InputError: not such a SavedModel, or a damaged one.
    """

    def __init__(self, path: Path):
        try:
            saved = SavedModel.FromString((path / "saved_model.pb").read_bytes())
            definitions = saved.meta_graphs[0].signature_def
            self._model = tf.saved_model.load(os.fspath(path))
        except Exception as error:
            # Whatever TensorFlow and protobuf raise for bytes that are wrong: there are a dozen kinds.
            raise InputError(f"cannot load {path}: {error}") from error
        self.definitions: Mapping[str, SignatureDef] = {
            name: definition for name, definition in definitions.items() if name in self._model.signatures
        }
        self.inputs = {name: self._inputs(path, name) for name in self.definitions}
        if not self.inputs:
            raise InputError(f"{path} has no signature to call")
        self._specs = {name: self._model.signatures[name].structured_outputs for name in self.inputs}
        self.outputs = {name: tuple(sorted(specs)) for name, specs in self._specs.items()}
        self.regular = frozenset(
            name
            for name, specs in self._specs.items()
            if all(spec.shape[1:].is_fully_defined() for spec in specs.values())
        )
        """Those whose answer has the same width whatever the sentences are."""
        self._has_count = self._is_count()

    @property
    def metadata(self) -> dict[str, Any]:
        """The signatures as TensorFlow Serving's REST API shows them."""
        shown = {
            name: MessageToDict(definition, preserving_proto_field_name=True, always_print_fields_with_no_presence=True)
            for name, definition in self.definitions.items()
        }
        return {"signature_def": {"signature_def": shown}}

    def call(self, signature: str, sentences: Sequence[Sentence]) -> Arrays:
        """Call a signature with sentences [B]; gives for each of its outputs an array [B, ...]."""
        columns = {
            name: tf.constant([sentence[i] for sentence in sentences], tf.string)
            for i, name in enumerate(self.inputs[signature])
        }
        found = self._model.signatures[signature](**columns)
        return {name: tensor.numpy() for name, tensor in found.items()}

    def count(self, signature: str, sentences: Sequence[Sentence]) -> list[int]:
        """Return the tokens of sentences [B] for a signature: bytes, where the model does not count tokens.

        All inputs count together, but for those that name languages.
        """
        places = [i for i, name in enumerate(self.inputs[signature]) if name not in LANGUAGES]
        texts = [(sentence[i],) for sentence in sentences for i in places]
        if not self._has_count:
            counts = np.array([len(text) for (text,) in texts], int)
        else:
            (counts,) = self.call(COUNT, texts).values()
        return counts.reshape(len(sentences), len(places)).sum(axis=1).tolist()

    def _is_count(self) -> bool:
        specs = tuple(self._specs.get(COUNT, {}).values())
        is_number = len(specs) == 1 and specs[0].dtype.is_integer and specs[0].shape.rank == 1
        return is_number and self.inputs[COUNT] == ("text",)

    def _inputs(self, path: Path, signature: str) -> tuple[str, ...]:
        _, arguments = self._model.signatures[signature].structured_input_signature
        for name, spec in arguments.items():
            if spec.dtype != tf.string or spec.shape.rank != 1:
                raise InputError(
                    f"{path} is not a model of strings [batch]. Received: signature {signature}, input {name} {spec}"
                )
        return tuple(sorted(arguments))
