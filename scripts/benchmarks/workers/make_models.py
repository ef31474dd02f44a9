"""Write one model in every form to measure decoding with: SavedModels for several searches, and CTranslate2."""

import json
from pathlib import Path

import numpy as np
from protocol import spec
from random_model import random_model

from tf_transformer import Transformer, Translator
from tf_transformer.config import Config, DecodingConfig, ModelConfig, TokenizerConfig
from tf_transformer.export import ctranslate2, litert, saved_model
from tf_transformer.runs.descriptions import FORMAT_VERSION
from tf_transformer.runs.weights import load
from tf_transformer.tokenizers import Tokenizer, train_tokenizer

given = spec()
folder = Path(given["folder"])


def trained() -> tuple[Transformer, Tokenizer, Tokenizer, list[str]]:
    """Return the model of a run, its tokenizers, and sentences for it sorted by length."""
    loaded = load(given["run_dir"])
    sentences = Path(given["sentences"]).read_text("utf-8").splitlines()
    return loaded.model, loaded.source_tokenizer, loaded.target_tokenizer, sorted(sentences, key=len)


def random() -> tuple[Transformer, Tokenizer, Tokenizer, list[str]]:
    """Return a model with random weights, its tokenizer, and sentences with as many tokens as are asked for."""
    rng = np.random.default_rng(0)
    count = given["vocabulary"] - 4
    words = sorted({"".join(map(chr, rng.integers(97, 123, 5))) for _ in range(2 * count)})[:count]
    settings = TokenizerConfig(model_type="word", vocab_size=given["vocabulary"], byte_fallback=False)
    tokenizer = Tokenizer(train_tokenizer([" ".join(words[i : i + 50]) for i in range(0, count, 50)], settings))
    # One piece a word, and the end token.
    texts = [" ".join(rng.choice(words, given["source"] - 1)) for _ in range(256)]
    if set(tokenizer.tokenize(texts).row_lengths().numpy()) != {given["source"] - 1}:
        raise RuntimeError("a word must be a piece")
    return random_model(given["preset"], tokenizer.vocab_size), tokenizer, tokenizer, texts


model, source, target, texts = trained() if "run_dir" in given else random()
models = {"float32": model}
for name, search in given["searches"].items():
    dtype = search.pop("dtype", "float32")
    if dtype not in models:
        models[dtype] = Transformer(**model.config, dtype=dtype)
        models[dtype].build(((None, None), (None, None)))
        models[dtype].set_weights([weight.astype(dtype) for weight in model.get_weights()])
    saved_model.save(Translator(models[dtype], source, target, DecodingConfig(**search)), folder / name)
if given["ctranslate2"]:
    (folder / "ctranslate2").mkdir()
    ctranslate2.save(model, source, target, folder / "ctranslate2")
for name, quantize in given["litert"].items():
    description = {"format_version": FORMAT_VERSION, "config": Config(model=ModelConfig(**model.config)).as_dict()}
    litert.save(model, source, target, description, folder / name, quantize)
pieces = [[source.pieces[i] for i in row] for row in source.tokenize(texts).to_list()]
(folder / "texts.json").write_text(json.dumps({"texts": texts, "pieces": pieces}))
layers = sum(weight.size for layer in model.decoder.layers for weight in layer.get_weights())
print(json.dumps({"parameters": int(layers + model.config["d_model"] * model.config["target_vocab_size"])}))
