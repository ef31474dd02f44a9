"""The runs that are extended in tests, and the text that they learn new pieces from."""

import functools
import json
import shutil

import keras
import pytest
from safetensors.numpy import load_file, save_file

from tf_transformer.config import PRESETS, TokenizerConfig, override
from tf_transformer.data.corpora import toy
from tf_transformer.importers.opening import import_model
from tf_transformer.runs import checkpoints
from tf_transformer.runs.directory import RunDirectory, write_run
from tf_transformer.runs.weights import build_model, weights
from tf_transformer.tokenizers.vocabulary import train_tokenizer

KINDS = ["m2m100", "own", "marian", "marian_separate", "nllb"]
WITH_LANGUAGES = ["m2m100", "own", "nllb"]
LANGUAGES = {"nllb": ("eng_Latn", "deu_Latn")}
"""What English and German are called, where it is not `en` and `de`."""
FRENCH = ["Le garçon mange une pomme à côté du chat.", "La fille était là où l'été commençait."] * 7
BACKWARDS = [text[::-1] for text in FRENCH]


@pytest.fixture(scope="session")
def run_of(unpacked, tmp_path_factory):
    """Gives the run of a kind: imported, or one whose sides have tokenizers of their own, with random weights."""

    @functools.cache
    def get(kind):
        place = tmp_path_factory.mktemp("runs") / kind
        if kind == "own":
            return random_run(place)
        folder = unpacked(kind.partition("_")[0])
        return import_model(separated(folder, place.with_name("folder")) if "_" in kind else folder, place)

    return get


def separated(folder, other):
    """A copy of a folder of MarianMT in which each side has a table of its own."""
    shutil.copytree(folder, other)
    config = json.loads((folder / "config.json").read_text("utf-8"))
    config |= {"share_encoder_decoder_embeddings": False, "decoder_vocab_size": config["vocab_size"]}
    (other / "config.json").write_text(json.dumps(config), "utf-8")
    shutil.copy(folder / "vocab.json", other / "target_vocab.json")
    tensors = load_file(folder / "model.safetensors")
    shared = tensors.pop("model.shared.weight")
    names = [*(f"model.{side}.embed_tokens.weight" for side in ("encoder", "decoder")), "lm_head.weight"]
    save_file(tensors | {name: shared for name in names}, other / "model.safetensors")
    return other


def random_run(place):
    lines = [text for pair in toy.pairs("val") for text in pair]
    files = {
        f"{side}.model": train_tokenizer(lines, TokenizerConfig(vocab_size=size, shared=False), ["en", "de"])
        for side, size in (("source", 401), ("target", 409))
    }
    model = {"d_model": 14, "num_heads": 7, "dff": 11, "num_layers": 1, "share_embeddings": "none"}
    sizes = {"input_vocab_size": 401, "target_vocab_size": 409}
    config = override(
        PRESETS["tiny"], {"model": model | sizes, "tokenizer": {"shared": False}, "training": {"ema_decay": 0.0}}
    )
    place.mkdir()
    id = write_run(place, config, files, {"languages": ["en", "de"]})
    keras.utils.set_random_seed(7)
    built = weights(build_model(config))
    checkpoints.write(place / "checkpoints", 1, ((name, each.numpy()) for name, each in built.items()), {"run": id})
    return RunDirectory(place)
