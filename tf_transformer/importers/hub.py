"""Models by their names on the Hugging Face Hub; needs the extra hub."""

import re
from collections.abc import Sequence
from pathlib import Path

from tf_transformer.errors import InputError
from tf_transformer.importers.tensors import INDEX, KERAS, SAFETENSORS, TORCH, reads_torch

NAME = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)
"""How models are called there: OWNER/NAME."""
BESIDE = ("README.md", "*.json", "*.spm", "*.model")
"""What is taken besides the weights."""


def is_name(model: Path) -> bool:
    """Say whether this may be the name of a model there: nothing of the kind is here."""
    return not model.exists() and NAME.fullmatch(str(model)) is not None


def download(name: str) -> Path:
    """Return the folder in huggingface_hub's cache of a model; what is missing there is downloaded.

    Of the weights one format is taken, safetensors if there are such. huggingface_hub's own environment variables, such
    as HF_HOME, HF_TOKEN, HF_ENDPOINT and HF_HUB_OFFLINE, have their meaning.

    Raises:
        InputError: huggingface_hub is missing; there is no such model, or no way to it.
    """
    try:
        import huggingface_hub
        from huggingface_hub.constants import HF_HUB_OFFLINE
        from huggingface_hub.errors import RepositoryNotFoundError
    except ImportError:
        raise InputError(
            f"{name}: there is no such folder. To download a model of that name from the Hugging Face Hub, "
            "pip install 'tf-transformer[hub]'"
        ) from None
    try:
        if HF_HUB_OFFLINE:
            return Path(huggingface_hub.snapshot_download(name, allow_patterns=BESIDE))
        weights = _weights(huggingface_hub.HfApi().list_repo_files(name))
        return Path(huggingface_hub.snapshot_download(name, allow_patterns=[*BESIDE, *weights]))
    except RepositoryNotFoundError:
        raise InputError(
            f"{name}: no such folder, and no such model on the Hugging Face Hub; one that is not public needs HF_TOKEN"
        ) from None
    except Exception as error:
        # Of the network, of the Hub, of the cache: there are a dozen kinds.
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise InputError(f"{name}: no such folder, and the Hugging Face Hub does not give it: {reason}") from None


def _weights(files: Sequence[str]) -> list[str]:
    """Return the files of the weights that are read, of all that a model has."""
    older = ((TORCH, TORCH), (KERAS, KERAS)) if reads_torch() else ((KERAS, KERAS), (TORCH, TORCH))
    for first, pattern in ((INDEX, "model-*.safetensors"), (SAFETENSORS, SAFETENSORS), *older):
        if first in files:
            return [pattern]
    return []
