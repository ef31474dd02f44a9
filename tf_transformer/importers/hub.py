"""Downloading models by their names on the Hugging Face Hub, which needs the extra hub."""

import re
from collections.abc import Sequence
from pathlib import Path

from tf_transformer.errors import InputError, missing_extra
from tf_transformer.importers.tensors import INDEX, KERAS, SAFETENSORS, TORCH, TORCH_INDEX, reads_torch

NAME = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)
"""The form of the names of models on the Hub: OWNER/NAME."""
BESIDE = ("README.md", "*.json", "*.spm", "*.model", "adapter_model.safetensors")
"""The files that are downloaded besides the weights."""


def is_name(model: Path) -> bool:
    """Say whether this may be the name of a model on the Hub: it has the form of one and is no path on this machine."""
    return not model.exists() and NAME.fullmatch(str(model)) is not None


def download(name: str) -> Path:
    """Return the folder of a model in huggingface_hub's cache, after downloading what is missing there.

    Only one format of the weights is downloaded, safetensors if available. The environment variables of
    huggingface_hub, such as HF_HOME, HF_TOKEN, HF_ENDPOINT and HF_HUB_OFFLINE, have their usual meaning.

    Raises:
        InputError: huggingface_hub is not installed, there is no such model, or it cannot be downloaded.
    """
    try:
        import huggingface_hub
        from huggingface_hub.constants import HF_HUB_OFFLINE
        from huggingface_hub.errors import RepositoryNotFoundError
    except ImportError as error:
        raise missing_extra(
            f"{name}: there is no such folder, and downloading a model of that name from the Hugging Face Hub",
            "hub",
            error,
        ) from None
    try:
        if HF_HUB_OFFLINE:
            return Path(huggingface_hub.snapshot_download(name, allow_patterns=BESIDE))
        weights = _weights(huggingface_hub.HfApi().list_repo_files(name))
        return Path(huggingface_hub.snapshot_download(name, allow_patterns=[*BESIDE, *weights]))
    except RepositoryNotFoundError:
        raise InputError(
            f"{name}: no such folder, and no such model on the Hugging Face Hub. A private model needs HF_TOKEN"
        ) from None
    except Exception as error:
        # The network, the Hub and the cache raise a dozen kinds of errors.
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise InputError(
            f"{name}: no such folder, and the download from the Hugging Face Hub failed: {reason}"
        ) from None


def _weights(files: Sequence[str]) -> list[str]:
    """Return the patterns of the weight files to download, given all files of a model."""
    torch = ((TORCH, TORCH), (TORCH_INDEX, "pytorch_model-*.bin"))
    older = (*torch, (KERAS, KERAS)) if reads_torch() else ((KERAS, KERAS), *torch)
    for first, pattern in ((SAFETENSORS, SAFETENSORS), (INDEX, "model-*.safetensors"), *older):
        if first in files:
            return [pattern]
    return []
