"""Kinds of folders in docs/pretrained.md: as a SavedModel, for LiteRT and CTranslate2, fine-tuned and exported."""

import dataclasses
import json

import numpy as np
import pytest
import tensorflow as tf
from safetensors.numpy import load_file, save_file

from tf_transformer import Translator, load
from tf_transformer.commands.main import main
from tf_transformer.config.special_tokens import END, PAD, START
from tf_transformer.data.corpora import toy
from tf_transformer.export.ctranslate2 import export as export_ctranslate2
from tf_transformer.export.litert import export as export_litert
from tf_transformer.export.saved_model import export
from tf_transformer.importers.opening import import_model
from tf_transformer.litert import Translator as LiteRTTranslator
from tf_transformer.runs.directory import RunDirectory
from tf_transformer.runs.weights import build_model, tokenizers_of, weights
from tf_transformer.translation.exported import ExportedTranslator

FIRST = 301
PUBLISHED = {"eng_Latn": FIRST, "deu_Latn": FIRST + 1, "<mask>": FIRST + 2}


def larger(rows):
    """Adds rows to the tables."""

    def change(tensors):
        tensors["model.shared.weight"] = np.pad(tensors["model.shared.weight"], [[0, rows], [0, 0]], "edge")
        if "final_logits_bias" in tensors:
            tensors["final_logits_bias"] = np.pad(tensors["final_logits_bias"], [[0, 0], [0, rows]])

    return change


def half(tensors):
    for name, array in tensors.items():
        tensors[name] = array.astype(np.float16)


def own_output(tensors):
    noise = np.random.default_rng(1).standard_normal(tensors["model.shared.weight"].shape, np.float32)
    tensors["lm_head.weight"] = tensors["model.shared.weight"] + 0.05 * noise


def in_parts(folder):
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    parts = {f"model-{i + 1:05d}-of-00002.safetensors": sorted(tensors)[i::2] for i in range(2)}
    for file, names in parts.items():
        save_file({name: tensors[name] for name in names}, folder / file)
    index = {name: file for file, names in parts.items() for name in names}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": index}), "utf-8")


def with_adapter(folder):
    rng = np.random.default_rng(1)
    place = "base_model.model.model.decoder.layers.0.fc1"
    factors = {"A": 0.1 * rng.standard_normal((3, 32), np.float32), "B": 0.1 * rng.standard_normal((64, 3), np.float32)}
    named = {f"{place}.lora_{side}.weight": array for side, array in factors.items()}
    save_file(named, folder / "adapter_model.safetensors")
    (folder / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA", "r": 3, "lora_alpha": 6}), "utf-8")


def as_decoder(ids):
    tokens = {str(id): {"content": text, "special": True} for text, id in ids.items()}
    return {"tokenizer_config.json": {"added_tokens_decoder": tokens}}


KINDS = {
    "marian_padded": {"config": {"vocab_size": 320}, "tensors": larger(40)},
    "marian_words": {
        "config": {"vocab_size": 281},
        "tensors": larger(1),
        "files": {"added_tokens.json": {"zebra": 280}},
    },
    "marian_half": {"tensors": half},
    "marian_untied": {"config": {"tie_word_embeddings": False}, "tensors": own_output},
    "marian_parts": {"then": in_parts},
    "marian_adapter": {"then": with_adapter},
    "nllb_slow": {"files": as_decoder(PUBLISHED), "without": ["tokenizer.json"]},
    "nllb_added": {
        "config": {"vocab_size": FIRST + 4},
        "tensors": larger(1),
        "files": as_decoder(PUBLISHED | {"tyv_Cyrl": FIRST + 3}),
        "without": ["tokenizer.json"],
    },
    "nllb_alone": {"without": ["sentencepiece.bpe.model"]},
    "m2m100": {},
}
"""What makes a folder of each kind of a sample."""
DIFFERENT = ["marian_words", "marian_untied", "nllb_added", "m2m100"]
"""Those whose runs have weights or tokens of other kinds; the runs of the others are like one of these."""
TEXTS = ["The dog sleeps.", "Der alte Mann liest.", "zebra, 12 < 3", ">>de<<the small house", "A >>de<< dog"]


@pytest.fixture
def kind_of(changed, tmp_path):
    """Imports a folder of a kind; gives the run."""

    def get(kind):
        change = dict(KINDS[kind])
        then = change.pop("then", lambda folder: None)
        folder = changed(**change, of=kind.partition("_")[0])
        then(folder)
        return import_model(folder, tmp_path / "run")

    return get


def by_ctranslate2(export, texts, translator):
    """What CTranslate2 writes with an export, by the pieces that our tokenizer gives it."""
    ctranslate2 = pytest.importorskip("ctranslate2")
    other = ctranslate2.Translator(str(export), compute_type="float32")
    source, target = translator.source_tokenizer, translator.target_tokenizer
    rows = translator.encode_source(tf.constant(texts)).ids.numpy().tolist()
    pieces = [[source.pieces[id] for id in row if id not in (PAD, END)] for row in rows]
    language = target.languages.get(translator.decoding.target_language)
    first = [] if language is None else [target.pieces[language]]
    found = other.translate_batch(
        pieces,
        target_prefix=[first] * len(texts),
        beam_size=1,
        max_decoding_length=translator.decoding.max_length + len(first),
        suppress_sequences=[[target.pieces[PAD]], [target.pieces[START]]],
    )
    ids = {piece: id for id, piece in enumerate(target.pieces)}
    rows = [tf.constant([[ids[piece] for piece in each.hypotheses[0][len(first) :]]], tf.int32) for each in found]
    return [target.detokenize(row).numpy()[0].decode() for row in rows]


def translator_of(run):
    """A greedy translator of a run, from English to German if there are several languages."""
    languages = ("eng_Latn", "deu_Latn") if "eng_Latn" in run.languages else ("en", "de")
    sides = dict(zip(("source_language", "target_language"), languages, strict=True)) if run.languages else {}
    loaded = load(run)
    limits = {"beam_size": 1, "max_length": 20, "max_extra_length": 20}
    return Translator(*loaded[:3], dataclasses.replace(loaded.config.decoding, **limits, **sides))


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_has_the_weights_of_its_model_and_one_tokenizer(kind_of, kind):
    run = kind_of(kind)
    with np.load(run.best_checkpoint()) as saved:
        shapes = {name: saved[name].shape for name in saved["names"].item().split("\n")}
    assert shapes == {name: tuple(each.shape) for name, each in weights(build_model(run.config)).items()}
    for tokenizer in tokenizers_of(run):
        assert tokenizer.tokenize(TEXTS).to_list() == tokenizer.encode(TEXTS)


@pytest.mark.long
@pytest.mark.parametrize("kind", DIFFERENT)
def test_each_kind_goes_all_the_way(kind_of, tmp_path, kind):
    run = kind_of(kind)
    translator = translator_of(run)
    mine = translator.translate_strings(TEXTS)
    assert len(set(mine)) > 3
    saved_model = ExportedTranslator(export(run, tmp_path / "1", translator.decoding))
    assert saved_model.translate_strings(TEXTS) == mine
    litert = LiteRTTranslator.load(export_litert(run, tmp_path / "litert", translator.decoding, "float32"))
    assert litert.translate_strings(TEXTS) == mine
    assert by_ctranslate2(export_ctranslate2(run, tmp_path / "ct2"), TEXTS, translator) == mine
    languages = [
        f"--{side}-language={getattr(translator.decoding, f'{side}_language')}" for side in ("source", "target")
    ]
    text = tmp_path / "text.tsv"
    text.write_text("".join(f"{source}\t{target}\n" for source, target in toy.pairs("train")[:997]), "utf-8")
    for rank in (0, 2):
        command = ["train", "--init-from", str(run.path), "--data", str(text), "--source", "en", "--target", "de"]
        command += ["--run-dir", str(tmp_path / f"tuned_{rank}"), "--max-steps", "20"]
        command += languages if run.languages else []
        settings = {"training.lora_rank": rank, "training.samples": 0, "training.learning_rate": 0.01}
        settings["data.held_out"] = 0.05
        for name, value in (settings | {"training.warmup_steps": 1, "data.batch_tokens": 500}).items():
            command += ["--set", f"{name}={value}"]
        assert main(command) == 0
        tuned = RunDirectory(tmp_path / f"tuned_{rank}")
        assert tuned.languages == run.languages
        translator = translator_of(tuned)
        found = translator.translate_strings(TEXTS)
        assert found != mine
        assert by_ctranslate2(export_ctranslate2(tuned, tmp_path / f"ct2_{rank}"), TEXTS, translator) == found
