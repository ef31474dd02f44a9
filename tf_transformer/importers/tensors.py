"""Reading the weights of a model folder one by one."""

import contextlib
import functools
import importlib.metadata
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import h5py
import ml_dtypes  # noqa: F401 - gives NumPy the type bfloat16
import numpy as np
from safetensors import SafetensorError, safe_open

from tf_transformer.errors import InputError
from tf_transformer.importers import adapter
from tf_transformer.importers.folder import read_object, shown

INDEX = "model.safetensors.index.json"
SAFETENSORS = "model.safetensors"
KERAS = "tf_model.h5"
TORCH = "pytorch_model.bin"
TORCH_INDEX = "pytorch_model.bin.index.json"
NAMES_IN_KERAS = {"kernel": "weight", "bias": "bias", "gamma": "weight", "beta": "bias", "embeddings": "weight"}
"""The last part of a name in Keras's format, and the same in PyTorch's. A kernel is transposed between them."""
SAFE_TORCH = (2, 10)
"""The first safe version of PyTorch. Up to 2.9, a file could run code in spite of `weights_only` (CVE-2026-24747)."""
DAMAGED = (SafetensorError, OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error)
"""The exceptions that reading a damaged file raises."""
DAMAGED_KERAS = (RuntimeError, TypeError, KeyError, AttributeError)
"""The further exceptions that h5py raises."""


class Tensors:
    """Named arrays, with a record of which have been taken.

    Args:
        where: their file or folder, for errors.
        read: for each name, a function that reads its array.
        adapted: the names of those that an adapter has changed.
    """

    def __init__(self, where: Path, read: Mapping[str, Callable[[], np.ndarray]], adapted: Collection[str] = ()):
        self.where = where
        self._read = dict(read)
        self._adapted = adapted
        self._taken: set[str] = set()

    def __contains__(self, name: str) -> bool:
        return name in self._read

    def take(self, name: str, *shape: int) -> np.ndarray:
        """Return an array as float32.

        Raises:
            InputError: there is no array of that name, it has another shape, or it cannot be read.
        """
        if name not in self._read:
            raise InputError(f"{self.where} has no tensor {name!r}: it is incomplete, or has another architecture")
        array = self._array(name)
        if array.shape != shape:
            raise InputError(f"{self.where}: {name} must be of shape {[*shape]}. Received: {[*array.shape]}")
        if array.dtype.kind in "iub":
            raise InputError(
                f"{self.where} is quantised: import the model that it was made of, and quantise the export. {name} is "
                f"of {array.dtype}"
            )
        return array.astype(np.float32, copy=False)

    def take_bytes(self, name: str) -> bytes:
        """Return an array of bytes, of any length; otherwise as `take`."""
        if name not in self._read:
            raise InputError(f"{self.where} has no array {name!r}: it is incomplete, or not a model of Marian")
        return self._array(name).tobytes()

    def _array(self, name: str) -> np.ndarray:
        try:
            array = self._read[name]()
        except (*DAMAGED, *DAMAGED_KERAS) as error:
            raise InputError(f"{self.where} is damaged: {name} cannot be read: {error}") from None
        self._taken.add(name)
        return array

    def pass_over(self, *names: str) -> None:
        """Mark those of the arrays that exist as taken, because their values are known otherwise.

        Raises:
            InputError: an adapter has changed one of them, which would then have other values.
        """
        for name in names:
            if name in self._adapted:
                raise InputError(
                    f"{self.where}: the adapter beside it changes {name}, which is one with other weights of this "
                    "model, and not these: an import cannot do it. Train an adapter without it"
                )
        self._taken.update(name for name in names if name in self._read)

    def check_all_taken(self) -> None:
        """Raise InputError if arrays were not taken, because our model would then lack parts."""
        left = sorted(self._read.keys() - self._taken)
        if left:
            shown = ", ".join(left[:3]) + (f" and {len(left) - 3} more" if len(left) > 3 else "")
            raise InputError(f"{self.where} has tensors that have no place in this architecture: {shown}")


@contextlib.contextmanager
def open_tensors(folder: Path) -> Iterator[Tensors]:
    """Open the weights of a folder as transformers writes it: safetensors, or else Keras's or PyTorch's format.

    Raises:
        InputError: there are no weights, a file is damaged, or PyTorch's format is found but torch is not installed.
    """
    with contextlib.ExitStack() as stack:
        where, read = _reader_of(folder, stack)
        if (folder / adapter.CONFIG).exists():
            beside = folder / adapter.WEIGHTS
            if not beside.exists():
                raise InputError(f"{folder} has {adapter.CONFIG}, but no {adapter.WEIGHTS}: save the adapter again")
            adapted = adapter.merged(folder, read, _safetensors([beside], stack))
            yield Tensors(where, read | adapted, adapted.keys())
        else:
            yield Tensors(where, read)


Read = dict[str, Callable[[], np.ndarray]]
"""For each name, a function that reads its array."""


def _reader_of(folder: Path, stack: contextlib.ExitStack) -> tuple[Path, Read]:
    """Return the file or folder of the weights, and what reads them until `stack` is closed."""
    # Whole files before parts, as in transformers: a folder that is saved to again keeps the index of its old parts.
    if (folder / SAFETENSORS).exists():
        return folder / SAFETENSORS, _safetensors([folder / SAFETENSORS], stack)
    if (folder / INDEX).exists():
        return folder, _safetensors(_parts(folder / INDEX), stack)
    torch = next((folder / name for name in (TORCH, TORCH_INDEX) if (folder / name).exists()), None)
    if (folder / KERAS).exists() and not (torch and reads_torch()):
        # Some Keras files on the Hub are older than the PyTorch files beside them, and lack the bias of the logits.
        return folder / KERAS, stack.enter_context(_keras(folder / KERAS))
    if torch is None:
        raise InputError(f"{folder} has no weights: it must have {SAFETENSORS}, {KERAS} or {TORCH}")
    files = _parts(torch) if torch.name == TORCH_INDEX else [torch]
    return torch, {name: read for file in files for name, read in _torch(file).items()}


def _parts(index: Path) -> list[Path]:
    """Return the files that an index names."""
    names = read_object(index).get("weight_map")
    if not isinstance(names, dict) or not names or not all(isinstance(name, str) for name in names.values()):
        raise InputError(f"{index} is damaged: weight_map must name the file of each tensor")
    files = sorted(set(names.values()))
    if elsewhere := [name for name in files if Path(name).name in ("", "..") or Path(name).name != name]:
        raise InputError(f"{index}: weight_map must name files beside it. Received: {shown(elsewhere[0])}")
    return [index.with_name(name) for name in files]


@contextlib.contextmanager
def open_npz(file: Path) -> Iterator[Tensors]:
    """Open an .npz file.

    Raises:
        InputError: the file is missing or damaged.
    """
    try:
        opened = np.load(file)
        names = opened.files
    except FileNotFoundError:
        raise InputError(f"{file}: there is no such file") from None
    except (*DAMAGED, AttributeError) as error:
        raise InputError(f"{file} is not a complete .npz file: {error}") from None
    with opened:
        yield Tensors(file, {name: functools.partial(opened.__getitem__, name) for name in names})


def _safetensors(files: list[Path], stack: contextlib.ExitStack) -> Read:
    read: Read = {}
    for file in files:
        try:
            opened = stack.enter_context(safe_open(file, "numpy"))
        except DAMAGED as error:
            raise InputError(f"{file} is missing or damaged: {error}") from None
        names = opened.keys()  # `opened` is not a mapping
        read |= {name: functools.partial(opened.get_tensor, name) for name in names}
    return read


@contextlib.contextmanager
def _keras(file: Path) -> Iterator[Read]:
    """Read Keras's format, as transformers wrote it until version 5, under the names of PyTorch's format."""
    datasets: list[h5py.Dataset] = []
    try:
        with h5py.File(file) as opened:
            opened.visititems(lambda _, item: datasets.append(item) if isinstance(item, h5py.Dataset) else None)
            yield {_name_of(dataset.name): functools.partial(_array_of, dataset) for dataset in datasets}
    except InputError:
        raise
    except (*DAMAGED, *DAMAGED_KERAS) as error:
        raise InputError(f"{file} is damaged: {error}") from None


def _name_of(path: str) -> str:
    """Return the name in PyTorch's format of `/model/tf_marian_mt_model/model/encoder/layers.0/fc1/kernel:0`."""
    *parts, last = path.removesuffix(":0").split("/")
    side = next((i for i, part in enumerate(parts) if part in ("encoder", "decoder")), None)
    if side is not None:
        return ".".join(["model", *parts[side:], NAMES_IN_KERAS.get(last, last)])
    # `/model/model.shared/model.shared/embeddings:0` and `/final_logits_bias/final_logits_bias:0`
    # and, in older files, `/model/model.shared/weight:0`
    return f"{parts[-1]}.{NAMES_IN_KERAS.get(last, last)}" if last in (*NAMES_IN_KERAS, "weight") else last


def _array_of(dataset: Any) -> np.ndarray:
    array = np.asarray(dataset)
    return array.T if dataset.name.endswith("/kernel:0") else array


def reads_torch() -> bool:
    """Say whether PyTorch is installed, in a version that reads its format safely."""
    try:
        return tuple(int(part) for part in importlib.metadata.version("torch").split(".")[:2]) >= SAFE_TORCH
    except importlib.metadata.PackageNotFoundError:
        return False


def _torch(file: Path) -> Read:
    """Read PyTorch's format, a pickle, which could run any code without `weights_only`."""
    try:
        import torch
    except ImportError:
        raise InputError(
            f"{file} can be read only with PyTorch: run pip install torch, or save the model again with transformers, "
            f"which writes {SAFETENSORS}"
        ) from None
    if not reads_torch():
        raise InputError(
            f"{file} can be read only with PyTorch 2.10 or later: upgrade it. Received: {torch.__version__}"
        )
    is_zip = zipfile.is_zipfile(file)  # those of versions before 1.6 are not, and cannot be mapped
    try:
        tensors = torch.load(file, map_location="cpu", weights_only=True, mmap=is_zip)
    except Exception as error:
        reason = next(iter(str(error).splitlines()), "")
        raise InputError(f"{file} is damaged, or holds more than weights: {reason}") from None

    def reader(tensor: Any) -> Callable[[], np.ndarray]:
        return lambda: tensor.float().numpy()

    if not (isinstance(tensors, dict) and all(isinstance(tensor, torch.Tensor) for tensor in tensors.values())):
        raise InputError(f"{file} holds more than weights")
    return {name: reader(tensor) for name, tensor in tensors.items()}
