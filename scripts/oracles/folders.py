"""Models in the kinds of folders that transformers writes, and what it makes of them: what imports are compared with.

    python scripts/oracles/folders.py --models FOLDER --text FOLDER --output FOLDER

It needs torch, transformers (4.57 and 5.24 write different folders, so run it with each), sentencepiece, protobuf and
peft. `--models` has the folders marian, m2m100 and nllb that marian.py and m2m100.py of this folder made; it is changed
for version 4. `--text` has test.en and test.de. Each kind of folder gets an `expected.json` as theirs, found by what
transformers reads from it.
"""

import argparse
import json
import logging
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import transformers
from peft import LoraConfig, get_peft_model
from training import SEARCH, found_by
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer, NllbTokenizer

VERSION = int(transformers.__version__.partition(".")[0])
PIECES = "sentencepiece.bpe.model"
CODES = ["eng_Latn", "deu_Latn"]
DIRECTIONS = {
    "marian": [("en", "de")],
    "m2m100": [("en", "de"), ("de", "en")],
    "nllb": [("eng_Latn", "deu_Latn"), ("deu_Latn", "eng_Latn")],
}

Parts = tuple[Any, Any]
"""A model and its tokenizer."""


def main() -> None:
    """Write each kind of folder, read it again, and write down what is found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("models", "text", "output"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--only", nargs="+", help="kinds (default: all)")
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    torch.manual_seed(1)
    text = {language: (options.text / f"test.{language}").read_text("utf-8").split("\n") for language in ("en", "de")}
    if VERSION == 4:
        _in_terms_of_version_4(options.models)
    for name, write in KINDS.items():
        folder = options.output / f"{name}_v{VERSION}"
        if options.only and name not in options.only:
            continue
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        write(options.models, folder)
        expected = _expected(folder, name.partition("_")[0], text)
        (folder / "expected.json").write_text(json.dumps(expected), "utf-8")
        print(folder.name, flush=True)


def _in_terms_of_version_4(models: Path) -> None:
    """Rename the list of special tokens in the folders, which version 5 has written."""
    for file in models.glob("*/tokenizer_config.json"):
        settings = json.loads(file.read_text("utf-8"))
        if isinstance(tokens := settings.pop("extra_special_tokens", None), list):
            file.write_text(json.dumps(settings | {"additional_special_tokens": tokens}))


def _expected(folder: Path, kind: str, text: dict[str, list[str]]) -> dict[str, Any]:
    model = AutoModelForSeq2SeqLM.from_pretrained(folder, torch_dtype=torch.float32).eval()
    if (folder / "adapter_config.json").exists():
        model = _with_adapter(folder)
    slow = {} if VERSION > 4 or (folder / "tokenizer.json").exists() else {"use_fast": False}
    tokenizer = AutoTokenizer.from_pretrained(folder, **slow)
    found: dict[str, Any] = {"search": SEARCH, "directions": []}
    for source, target in DIRECTIONS[kind]:
        sentences, forced = text[source[:2]], {}
        if kind != "marian":
            tokenizer.src_lang = source
            code = f"__{target}__" if kind == "m2m100" else target
            forced = {"forced_bos_token_id": tokenizer.convert_tokens_to_ids(code)}
        found["directions"].append(
            {
                "source_language": source,
                "target_language": target,
                "sentences": sentences,
                "ids": [tokenizer(sentence)["input_ids"] for sentence in sentences],
                "greedy": found_by(model, tokenizer, sentences, 1, **forced),
                "beam": found_by(model, tokenizer, sentences, SEARCH["num_beams"], **forced),
            }
        )
    return found


def _with_adapter(folder: Path) -> Any:
    """Read base and adapter of one folder: transformers itself would look for the base elsewhere."""
    from peft import PeftModel

    with tempfile.TemporaryDirectory() as place:
        for file in folder.iterdir():
            if not file.name.startswith("adapter_"):
                shutil.copy(file, place)
        base = AutoModelForSeq2SeqLM.from_pretrained(place)
    return PeftModel.from_pretrained(base, folder).eval()


def _read(folder: Path) -> Parts:
    model = AutoModelForSeq2SeqLM.from_pretrained(folder, torch_dtype=torch.float32)
    return model, AutoTokenizer.from_pretrained(folder)


def _save(parts: Parts, folder: Path, **how: Any) -> None:
    for part in parts:
        part.save_pretrained(folder, **(how if part is parts[0] else {}))


def plain(kind: str, **how: Any) -> Callable[[Path, Path], None]:
    """A model as it is saved without further ado."""
    return lambda models, folder: _save(_read(models / kind), folder, **how)


def padded(kind: str) -> Callable[[Path, Path], None]:
    """A table of embeddings that is larger than the vocabulary."""

    def write(models: Path, folder: Path) -> None:
        model, tokenizer = _read(models / kind)
        # Not by `pad_to_multiple_of`, which leaves the bias of Marian's logits as it was.
        model.resize_token_embeddings(model.config.vocab_size // 64 * 64 + 64)
        _save((model, tokenizer), folder)

    return write


def with_words(kind: str) -> Callable[[Path, Path], None]:
    """A word that was added."""

    def write(models: Path, folder: Path) -> None:
        model, tokenizer = _read(models / kind)
        tokenizer.add_tokens(["zebra"])
        model.resize_token_embeddings(max(tokenizer.get_vocab().values()) + 1)
        _save((model, tokenizer), folder)

    return write


def half(models: Path, folder: Path) -> None:
    """Weights of half the bits."""
    model, tokenizer = _read(models / "marian")
    _save((model.half(), tokenizer), folder)


def untied(models: Path, folder: Path) -> None:
    """An output that is not the table of the embeddings."""
    model, tokenizer = _read(models / "marian")
    state = {name: value.clone() for name, value in model.state_dict().items()}
    config = type(model.config)(**(model.config.to_dict() | {"tie_word_embeddings": False}))
    other = type(model)(config)
    other.load_state_dict(state)
    with torch.no_grad():
        other.lm_head.weight += 0.05 * torch.randn_like(other.lm_head.weight)
    other.generation_config = model.generation_config
    _save((other, tokenizer), folder)


def slow_nllb(mask_last: bool = False, added: bool = False) -> Callable[[Path, Path], None]:
    """NLLB by the slow tokenizer of transformers 4; the mask behind the languages, as published; one more language."""

    def write(models: Path, folder: Path) -> None:
        model, _ = _read(models / "nllb")
        with tempfile.TemporaryDirectory() as place:
            shutil.copy(models / "nllb" / PIECES, place)
            first = model.config.vocab_size - 3
            if mask_last:
                tokens = [*CODES, "<mask>"]
                with torch.no_grad():
                    table = model.model.shared.weight
                    table[first:] = table[[first + 1, first + 2, first]].clone()
                ids = {str(first + i): {"content": token, "special": True} for i, token in enumerate(tokens)}
                (Path(place) / "tokenizer_config.json").write_text(json.dumps({"added_tokens_decoder": ids}))
            tokenizer = NllbTokenizer.from_pretrained(place, additional_special_tokens=CODES, src_lang=CODES[0])
            if added:
                tokenizer.save_pretrained(place)
                tokenizer = NllbTokenizer.from_pretrained(place, additional_special_tokens=["tyv_Cyrl"])
                model.resize_token_embeddings(len(tokenizer))
            tokenizer.save_pretrained(folder)
        model.save_pretrained(folder)

    return write


def added_language(models: Path, folder: Path) -> None:
    """NLLB by the fast tokenizer with one more language."""
    model = AutoModelForSeq2SeqLM.from_pretrained(models / "nllb")
    tokenizer = AutoTokenizer.from_pretrained(models / "nllb", additional_special_tokens=["tyv_Cyrl"])
    model.resize_token_embeddings(len(tokenizer))
    _save((model, tokenizer), folder)


def without_sentencepiece(kind: str) -> Callable[[Path, Path], None]:
    """Only tokenizer.json, as transformers 5 saves NLLB."""

    def write(models: Path, folder: Path) -> None:
        plain(kind)(models, folder)
        for name in (PIECES, "source.spm", "target.spm"):
            (folder / name).unlink(missing_ok=True)

    return write


def adapter(kind: str) -> Callable[[Path, Path], None]:
    """A LoRA adapter of PEFT beside its model."""

    def write(models: Path, folder: Path) -> None:
        model, tokenizer = _read(models / kind)
        _save((model, tokenizer), folder)
        peft = get_peft_model(
            model, LoraConfig(r=3, lora_alpha=5, target_modules=["q_proj", "v_proj", "fc1"], task_type="SEQ_2_SEQ_LM")
        )
        with torch.no_grad():
            for name, value in peft.named_parameters():
                if "lora_" in name:
                    value.copy_(0.1 * torch.randn_like(value))
        peft.save_pretrained(folder)

    return write


KINDS: dict[str, Callable[[Path, Path], None]] = {
    "marian": plain("marian"),
    "marian_padded": padded("marian"),
    "marian_words": with_words("marian"),
    "marian_half": half,
    "marian_untied": untied,
    "marian_shards": plain("marian", max_shard_size="100KB"),
    "marian_adapter": adapter("marian"),
    "m2m100": plain("m2m100"),
    "m2m100_padded": padded("m2m100"),
    "m2m100_adapter": adapter("m2m100"),
    "nllb": plain("nllb"),
    "nllb_padded": padded("nllb"),
    "nllb_words": with_words("nllb"),
    "nllb_added": added_language,
    "nllb_adapter": adapter("nllb"),
    "nllb_alone": without_sentencepiece("nllb"),
}
if VERSION == 4:
    KINDS |= {
        "marian_pickles": plain("marian", safe_serialization=False, max_shard_size="100KB"),
        "nllb_slow": slow_nllb(),
        "nllb_slow_published": slow_nllb(mask_last=True),
        "nllb_slow_added": slow_nllb(mask_last=True, added=True),
    }


if __name__ == "__main__":
    main()
