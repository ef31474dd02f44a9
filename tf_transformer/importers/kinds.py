"""Folders that look like a model that can be imported, and hold something else."""

import re
from pathlib import Path
from typing import Any

from tf_transformer.errors import InputError
from tf_transformer.importers.folder import optional_object, shown

TOKENIZERS = {
    "marian": ("MarianTokenizer",),
    "m2m_100": ("M2M100Tokenizer", "NllbTokenizer", "NllbTokenizerFast"),
}
"""The tokenizers of each model_type. Another one reads text in another way."""
ANY_FAST = ("PreTrainedTokenizerFast", "TokenizersBackend")
"""The classes of transformers 4 and 5 that do what tokenizer.json says."""


LFS = b"version https://git-lfs"
"""How the files begin that a clone has in the place of large ones."""
LFS_SIZE = 1024
"""More bytes than such a file has."""


def check_files(folder: Path) -> None:
    """Check that a folder has the files of a model, and not those of another program.

    Raises:
        InputError: it has pointers of Git LFS, or what was converted for CTranslate2; its text is cut by subword-nmt;
            or the model is in a folder within it.
    """
    files = sorted(folder.iterdir())
    for file in files:
        if file.is_file() and file.stat().st_size < LFS_SIZE and file.read_bytes().startswith(LFS):
            raise InputError(f"{file} is only a pointer of Git LFS: run git lfs pull in {folder}")
    if (folder / "model.bin").exists() and not (folder / "model.safetensors").exists():
        raise InputError(f"{folder} is a model for CTranslate2: import the model that it was converted from")
    if (folder / "source.bpe").exists() and not (folder / "source.spm").exists():
        raise InputError(f"{folder} cannot be imported: its text is cut by source.bpe, and not by SentencePiece")
    descriptions = ("config.json", "adapter_config.json", "decoder.yml")
    if not any((folder / name).exists() for name in descriptions):
        for within in files:
            if any((within / name).exists() for name in descriptions):
                raise InputError(f"{folder} has no config.json, but {within.name} in it has: give {within}")


def check_kind(folder: Path, config: dict[str, Any]) -> None:
    """Check that a folder holds a model whose layers and tokenizer are those that its model_type promises.

    Raises:
        InputError: the model is quantised, or reads or writes text in another way.
    """
    file, kind = folder / "config.json", config["model_type"]
    if (quantised := config.get("quantization_config")) is not None:
        method = quantised.get("quant_method") if isinstance(quantised, dict) else quantised
        raise InputError(
            f"{folder} is quantised ({shown(method)}): import the model that it was made of, and quantise the export. "
            f"{file} has quantization_config"
        )
    named = optional_object(folder / "tokenizer_config.json").get("tokenizer_class") or config.get("tokenizer_class")
    if is_small100(folder, config, named):
        raise InputError(
            f"{folder} is SMaLL-100, which reads the target language before the text and not before the translation: "
            "it cannot be imported"
        )
    if named is not None and named not in (*TOKENIZERS[kind], *ANY_FAST):
        raise InputError(
            f"{folder}: tokenizer_class must be one of {', '.join(TOKENIZERS[kind])}. Received: {shown(named)}"
        )
    heads = config.get("architectures")
    if isinstance(heads, list) and any(str(head).endswith("CausalLM") for head in heads):
        raise InputError(f"{file}: architectures must be of encoder and decoder. Received: {shown(heads)}")


def is_small100(folder: Path, config: dict[str, Any], tokenizer: Any) -> bool:
    """Say whether a folder holds SMaLL-100: the layers of M2M100, with a tokenizer of its own."""
    names = (tokenizer, config.get("_name_or_path"), folder.name)
    return config["model_type"] == "m2m_100" and (
        (folder / "tokenization_small100.py").exists()
        or any(re.search(r"small-?100(?![0-9k])", str(name).lower()) for name in names)
    )
