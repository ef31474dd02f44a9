"""The encoder and the steps of the decoder, as LiteRT runs them."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from ai_edge_litert.interpreter import Interpreter

from tf_transformer.errors import InputError
from tf_transformer.litert.search import Predicted
from tf_transformer.runs.descriptions import LITERT_MODEL
from tf_transformer.runs.runtimes import cores

ENCODE, DECODE = "encode", "decode"
"""The signatures. That of the step is alphabetically the first, and therefore the one that needs no copies."""
MASK, MEMORY = "mask", ("memory_key_{}", "memory_value_{}")
"""What `encode` gives and `decode` takes: the mask [B, S], and for each layer keys [B, H, S, d_k] and values
[B, H, S, d_v]."""
CACHE, NEW = ("key_{}", "value_{}"), ("new_key_{}", "new_value_{}")
"""The cache of each layer that `decode` takes, keys [R, H, L, d_k] and values [R, H, L, d_v], and the new position that
it gives."""
FIRST_CAPACITY = 16
"""Positions that a cache has room for at first; the room doubles when it is full."""


Check = Callable[[], object]
"""Raises an error if nobody wants the result any more."""


def go_on() -> None:
    """Raise nothing."""


class EncoderOutput(NamedTuple):
    """What the decoder reads of B sentences."""

    mask: np.ndarray
    """[B, S], boolean, True = attend"""
    memory: dict[str, np.ndarray]
    """keys and values of every layer, by the names of `MEMORY`"""

    def take(self, sentences: np.ndarray) -> "EncoderOutput":
        """Return the part of some of the sentences."""
        return EncoderOutput(self.mask[sentences], {name: array[sentences] for name, array in self.memory.items()})


class LiteRTModel:
    """A .tflite file that `export --format litert` wrote. Only one thread may use it at a time.

    Args:
        folder: the folder of the file.
        layers: the number of decoder layers.
        threads: the number of threads that LiteRT uses; one for each core that the process may use by default.

    Raises:
        InputError: the file is missing, damaged, or was not written by us.
    """

    def __init__(self, folder: Path, layers: int, threads: int | None = None):
        path = folder / LITERT_MODEL
        if not path.is_file():
            raise InputError(f"{folder} has no {LITERT_MODEL}: export the run again")
        try:
            self._interpreter = Interpreter(os.fspath(path), num_threads=threads or cores())
            signatures = self._interpreter.get_signature_list()
        except (ValueError, RuntimeError) as error:
            raise InputError(f"{path} is damaged or not a LiteRT model: {str(error).splitlines()[0]}") from None
        self.names = [name.format(i) for i in range(layers) for name in CACHE]
        self.new_names = [name.format(i) for i in range(layers) for name in NEW]
        self.memory_names = [name.format(i) for i in range(layers) for name in MEMORY]
        wanted = {
            ENCODE: ({"ids"}, {MASK, *self.memory_names}),
            DECODE: (
                {"ids", "position", "forbidden", "count", MASK, *self.memory_names, *self.names},
                {"tokens", "token_logits", "normalizers", "logits", "attention", *self.new_names},
            ),
        }
        if {name: tuple(map(set, sides.values())) for name, sides in signatures.items()} != wanted:
            raise InputError(f"{path} is not our export: its signatures are {', '.join(sorted(signatures)) or 'none'}")
        runner = self._interpreter.get_signature_runner(DECODE)
        self.inputs = {name: each["index"] for name, each in runner.get_input_details().items()}
        outputs = {name: each["index"] for name, each in runner.get_output_details().items()}
        self._views = {name: self._interpreter.tensor(index) for name, index in (self.inputs | outputs).items()}
        self.vocabulary = int(runner.get_input_details()["forbidden"]["shape"][0])
        del runner  # it holds the interpreter, which would then not give access to its memory

    def encode(self, ids: np.ndarray) -> EncoderOutput:
        """Encode ids [B, S], int32, padded with 0."""
        found = self._interpreter.get_signature_runner(ENCODE)(ids=ids)
        return EncoderOutput(found.pop(MASK), found)

    def steps(self, encoded: EncoderOutput, width: int, check: Check) -> "CachedSteps":
        """Return the steps of the decoder, before the first one, with `width` rows for each sentence."""
        return CachedSteps(self, encoded, width, check)

    def resize(self, shapes: dict[str, tuple[int, ...]]) -> None:
        """Give inputs of the step other shapes. All inputs lose their content, and caches become zero."""
        for name, shape in shapes.items():
            self._interpreter.resize_tensor_input(self.inputs[name], shape)
        self._interpreter.allocate_tensors()
        for name in self.names:
            self.view(name)[...] = 0

    def view(self, name: str) -> np.ndarray:
        """Return the memory of an input or an output of the step; it must be released before the next step."""
        return self._views[name]()

    def invoke(self, position: int, count: int) -> None:
        """Run a step."""
        self._interpreter.set_tensor(self.inputs["position"], np.int32(position))
        self._interpreter.set_tensor(self.inputs["count"], np.int32(count))
        self._interpreter.invoke()


class CachedSteps:
    """The steps of a model's decoder, as `Steps` describes. A model serves only one at a time: it holds the cache.

    Args:
        model: the model, which holds the cache.
        encoded: the sentences.
        width: the number of rows for each sentence, K.
        check: is called before each step.
    """

    def __init__(self, model: LiteRTModel, encoded: EncoderOutput, width: int, check: Check):
        self.vocabulary = model.vocabulary
        self._model = model
        self._encoded = encoded
        self._width = width
        self._check = check
        self._length = 0
        self._capacity = FIRST_CAPACITY
        self._forbidden: np.ndarray | None = None
        """what the input of that name holds; None if nothing yet"""
        self._resize()

    def step(self, ids: np.ndarray, forbidden: np.ndarray, count: int) -> Predicted:
        """Read a token [R] in every row, and predict the next one."""
        self._check()
        model = self._model
        if self._length == self._capacity:
            kept = self._cached(slice(None))
            self._capacity *= 2
            self._resize(kept)
        model.view("ids")[...] = ids
        if forbidden is not self._forbidden:
            model.view("forbidden")[...] = self._forbidden = forbidden
        model.invoke(self._length, count)
        for name, new in zip(model.names, model.new_names, strict=True):
            model.view(name)[:, :, self._length] = model.view(new)[:, :, 0]
        self._length += 1
        return Predicted(*(model.view(name).copy() for name in ("tokens", "token_logits", "normalizers")))

    def logits(self) -> np.ndarray:
        """Return the logits [R, V] of the last step."""
        return self._model.view("logits").copy()

    def attention(self) -> np.ndarray:
        """Return how much each row attended to the source in the last step, [R, S]."""
        return self._model.view("attention").copy()

    def take(self, sentences: np.ndarray, rows: np.ndarray) -> None:
        """Continue with some of the sentences, by their numbers [b'], and with rows, by theirs [b' * K]."""
        if len(sentences) < len(self._encoded.mask):
            kept = self._cached(rows)
            self._encoded = self._encoded.take(sentences)
            self._resize(kept)
            return
        changed = np.flatnonzero(rows != np.arange(len(rows)))
        if not len(changed):
            return
        for name in self._model.names:
            cache = self._model.view(name)
            cache[changed, :, : self._length] = cache[rows[changed], :, : self._length]

    def _cached(self, rows: Any) -> list[np.ndarray]:
        """Return copies of the cached positions of rows."""
        return [self._model.view(name)[rows, :, : self._length].copy() for name in self._model.names]

    def _resize(self, kept: list[np.ndarray] | None = None) -> None:
        """Make room for the sentences, and put back what was cached."""
        model, (mask, memory) = self._model, self._encoded
        rows = len(mask) * self._width
        shapes = {"ids": (rows,), MASK: mask.shape} | {name: array.shape for name, array in memory.items()}
        for name, of_memory in zip(model.names, model.memory_names, strict=True):
            _, heads, _, width = memory[of_memory].shape
            shapes[name] = (rows, heads, self._capacity, width)
        model.resize(shapes)
        self._forbidden = None
        for name, array in {MASK: mask, **memory}.items():
            model.view(name)[...] = array
        for name, array in zip(model.names, kept or [], strict=bool(kept)):
            model.view(name)[:, :, : self._length] = array
