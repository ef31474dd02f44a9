"""MarianMT: the same ids, logits, translations and scores as transformers, and what is refused."""

import dataclasses
import json
import shutil

import numpy as np
import pytest
import sentencepiece
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from tf_transformer import Translator, load
from tf_transformer.commands.main import main
from tf_transformer.errors import InputError
from tf_transformer.export.ctranslate2 import export as export_ctranslate2
from tf_transformer.export.saved_model import export
from tf_transformer.importers.folder import Settings
from tf_transformer.importers.marian import _vocabularies
from tf_transformer.importers.opening import import_model
from tf_transformer.runs.directory import RunDirectory
from tf_transformer.runs.weights import build_model, weights
from tf_transformer.serving.http.rest import make_app
from tf_transformer.serving.limits import Limits
from tf_transformer.serving.metrics import Metrics
from tf_transformer.serving.model import ServedModel
from tf_transformer.text.documents import codes_by
from tf_transformer.tokenizers import Tokenizer
from tf_transformer.tokenizers.normalization import is_blank
from tf_transformer.translation.exported import ExportedTranslator


def ours_of(folder):
    """Our id for each of theirs."""
    config = Settings.read(folder / "config.json")
    vocabulary, _ = _vocabularies(folder, config, config)
    ours = {}
    for i, theirs in enumerate(vocabulary.order()):
        ours.setdefault(theirs, i)  # padding is the start token too: the first is padding
    return ours


def translator_of(run, **decoding):
    loaded = load(run)
    search = dataclasses.replace(loaded.config.decoding, **decoding)
    return Translator(loaded.model, loaded.source_tokenizer, loaded.target_tokenizer, search)


def test_text_becomes_the_same_ids(marian, imported, expected):
    ours, tokenizer = ours_of(marian), load(imported).source_tokenizer
    found = tokenizer.tokenize(expected["sentences"]).to_list()
    assert found == [[ours[i] for i in ids[:-1]] for ids in expected["ids"]]


def test_the_logits_are_the_same(marian, imported, expected):
    ours, model = ours_of(marian), load(imported).model
    source, target = (np.vectorize(ours.get)(expected[side]) for side in ("source", "target"))
    target[:, 0] = 2
    there = target != 0
    logits = model((source, target)).numpy()
    theirs = [i for i, _ in sorted(ours.items(), key=lambda pair: pair[1])]
    mine = [ours[i] for i in theirs]
    np.testing.assert_allclose(logits[there][:, mine], expected["logits"][there][:, theirs], atol=1e-4)
    # The start token is one more than they have.
    assert (
        logits[there][:, 2] < logits[there].min(axis=1, initial=0, where=np.arange(logits.shape[2]) != 2) - 50
    ).all()


@pytest.mark.long_but_first
@pytest.mark.parametrize(("name", "beam_size"), [("greedy", 1), ("beam", 4)])
def test_the_search_finds_the_same(marian, imported, expected, name, beam_size):
    """But for those as long as was allowed: there transformers forces the end token."""
    ours, length = ours_of(marian), expected["search"]["max_new_tokens"]
    longest = {"max_length": length, "max_extra_length": length, "likely_stopping": False}
    translator = translator_of(imported, beam_size=beam_size, **longest)
    _, found = translator.search(tf.constant(expected["sentences"]))
    scores = expected[name]["scores"] or found.scores[:, 0].numpy()
    compared = 0
    rows = zip(found.ids[:, 0].numpy(), found.scores[:, 0], expected[name]["ids"], scores, strict=True)
    for mine, score, theirs, other in rows:
        mine, theirs = [i for i in mine if i not in (0, 3)], [ours[i] for i in theirs[1:] if ours[i] not in (0, 3)]
        if max(len(mine), len(theirs)) < length - 1:
            assert mine == theirs
            assert float(score) == pytest.approx(float(other), abs=1e-3)
            compared += 1
    assert compared > 0.9 * len(scores)


def test_it_searches_as_the_folder_says(changed, tmp_path):
    folder = changed()
    said = {"num_beams": 6, "length_penalty": 0.8, "max_length": 100, "no_repeat_ngram_size": 3}
    (folder / "generation_config.json").write_text(json.dumps(said), "utf-8")
    decoding = import_model(folder, tmp_path / "run").config.decoding
    assert (decoding.beam_size, decoding.length_penalty, decoding.no_repeat_ngram) == (6, 0.8, 3)
    assert (decoding.length_penalty_offset, decoding.max_length) == (0.0, 99)


def test_every_weight_is_one_of_the_model(imported):
    run = RunDirectory(imported)
    built = weights(build_model(run.config))
    with np.load(run.best_checkpoint()) as saved:
        shapes = {name: saved[name].shape for name in saved["names"].item().split("\n")}
    assert shapes == {name: tuple(variable.shape) for name, variable in built.items()}


@pytest.mark.long
def test_exports_translate_alike(imported, expected, tmp_path):
    texts = expected["sentences"][:13]
    translator = translator_of(imported, beam_size=4, max_length=60, max_extra_length=60)
    mine = translator.translate_strings(texts)
    exported = ExportedTranslator(export(imported, tmp_path / "1", translator.decoding))
    assert exported.translate_strings(texts) == mine
    assert "Imported from | marian" in (tmp_path / "1" / "README.md").read_text("utf-8")
    ctranslate2 = pytest.importorskip("ctranslate2")
    other = ctranslate2.Translator(str(export_ctranslate2(imported, tmp_path / "ct2")), compute_type="float32")
    source, target = load(imported)[1:3]
    pieces = [[source.pieces[i] for i in ids] for ids in source.tokenize(texts).to_list()]
    never = [[target.pieces[0]], [target.pieces[2]]]
    results = other.translate_batch(
        pieces, beam_size=4, length_penalty=1, max_decoding_length=60, suppress_sequences=never
    )
    ids = {piece: i for i, piece in enumerate(target.pieces)}
    rows = [tf.constant([[ids[piece] for piece in result.hypotheses[0]]]) for result in results]
    theirs = [target.detokenize(row).numpy()[0].decode() for row in rows]
    assert sum(map(str.__eq__, mine, theirs)) >= len(mine) - 1


def test_separate_vocabularies(changed, marian, expected, tmp_path):
    """The same model, whose tables are told apart: it must translate as before."""

    def separate(tensors):
        shared = tensors.pop("model.shared.weight")
        tensors["model.encoder.embed_tokens.weight"] = shared
        tensors["model.decoder.embed_tokens.weight"] = shared.copy()
        tensors["lm_head.weight"] = shared.copy()

    size = json.loads((marian / "config.json").read_text("utf-8"))["vocab_size"]
    folder = changed({"share_encoder_decoder_embeddings": False, "decoder_vocab_size": size}, separate)
    shutil.copy(folder / "vocab.json", folder / "target_vocab.json")
    run = import_model(folder, tmp_path / "run")
    assert run.config.model.share_embeddings == "target"
    exact = {"likely_stopping": False}
    translator = translator_of(run.path, beam_size=4, max_length=60, max_extra_length=60, **exact)
    found = translator.translate_strings(expected["sentences"])
    assert sum(map(str.__eq__, found, expected["beam"]["texts"])) >= len(found) - 1


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        (">>de<< The dog", [278, 6, 25, 153]),
        (">>de<<The dog", [278, 6, 25, 153]),
        (" >>de<< The dog", [5, 1, 134, 14, 1, 6, 25, 153]),
        ("The >>de<< dog", [6, 5, 1, 134, 14, 1, 25, 153]),
        (">>xx<< The dog", [1, 6, 25, 153]),
        (">> a b << The dog", [1, 6, 25, 153]),
        (">>de<<", [278]),
        (">>de<< ", [278]),
        (">>de<<\n dog", [278, 25, 153]),
        (">>de<<  >>de<< dog", [278, 5, 1, 134, 14, 1, 25, 153]),
    ],
)
def test_a_language_is_read_at_the_front_alone(marian, imported, text, ids):
    """The ids are those of transformers 4.57 and 5.24."""
    ours, tokenizer = ours_of(marian), _tokenizer(imported)
    assert tokenizer.encode([text, "", text]) == [[ours[id] for id in ids], [], [ours[id] for id in ids]]
    assert tokenizer.tokenize([text, "", text]).to_list() == tokenizer.encode([text, "", text])


def test_a_language_at_the_front_is_one_token_where_the_model_has_it(imported, unpacked, tmp_path):
    for run, expected in ((RunDirectory(imported), True), (import_model(unpacked("m2m100"), tmp_path / "run"), False)):
        source = run.vocabularies()[0]
        is_code = codes_by(lambda texts, source=source: [1 + len(ids) for ids in source.encode(texts)])
        assert is_code(">>de<<") is expected


@pytest.mark.long
def test_a_language_at_the_front_is_that_of_all_sentences(imported, tmp_path):
    """By the run, by its exports, and by the server."""
    sentences = [">>de<< The dog sleeps.", ">>de<< The old man reads a book.", ">>de<< A dog."]
    (tmp_path / "text").write_text(">>de<< The dog sleeps. The old man reads a book.\nA dog.\n", "utf-8")
    command = ["export", "--run-dir", str(imported), "--format", "all", "--quantize", "float32"]
    assert main([*command, "--output", str(tmp_path / "models" / "1")]) == 0
    first, second, third = ExportedTranslator(tmp_path / "models" / "1").translate_strings(sentences)
    expected = f"{first} {second}\n{third}\n"
    for number, model in enumerate((imported, tmp_path / "models" / "1", tmp_path / "models" / "1" / "litert")):
        output = tmp_path / str(number)
        files = ["--input", str(tmp_path / "text"), "--output", str(output)]
        assert main(["translate", "--model", str(model), "--document", *files]) == 0
        assert output.read_text("utf-8") == expected
    model = ServedModel(tmp_path / "models" / "1", "marian", Limits(), Metrics())
    with TestClient(make_app(model)) as client:
        text = (tmp_path / "text").read_text("utf-8")
        found = client.post("/v1/models/marian:translate", json={"text": text}).json()
    assert found["translation"] == expected
    assert [each["text"] for each in found["sentences"]] == sentences


@settings(max_examples=60)
@given(
    front=st.sampled_from(["", ">>de<< ", ">>de<<", ">>fr<<", ">>", "<<"]),
    text=st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=40) | st.text("Aaeouß üñ.,<>lr", max_size=30),
)
def test_any_text_becomes_the_same_ids(marian, imported, front, text):
    """As transformers does it: the language at the front is split off, the pieces are looked up."""
    vocabulary = json.loads((marian / "vocab.json").read_text("utf-8"))
    ours = ours_of(marian)
    processor = sentencepiece.SentencePieceProcessor(str(marian / "source.spm"))
    text = front + text
    end = text.find("<<") + 2 if text.startswith(">>") and "<<" in text else 0
    pieces = [*([text[:end]] if end else []), *processor.encode(text[end:], out_type=str)]
    theirs = [ours[vocabulary.get(piece, vocabulary["<unk>"])] for piece in pieces]
    theirs = [] if is_blank(text) else theirs  # text that nobody sees is none for us
    assert _tokenizer(imported).tokenize([text]).to_list() == _tokenizer(imported).encode([text]) == [theirs]


def _tokenizer(run, known={}):  # noqa: B006 - made once
    if run not in known:
        known[run] = load(run).source_tokenizer
    return known[run]


@pytest.mark.long
def test_it_is_fine_tuned_and_that_is_exported(imported, tmp_path, capsys):
    run, output = str(tmp_path / "mine"), str(tmp_path / "1")
    command = ["train", "--init-from", str(imported), "--data", "toy", "--run-dir", run, "--max-steps", "3"]
    assert main([*command, "--set", "training.samples=0", "--set", "training.warmup_steps=1"]) == 0
    tuned = RunDirectory(run)
    assert tuned.config.model == RunDirectory(imported).config.model
    assert tuned.config.decoding == RunDirectory(imported).config.decoding
    assert main(["export", "--run-dir", run, "--output", output]) == 0
    assert ExportedTranslator(output).translate_strings(["The dog sleeps."])[0]
    assert main(["train", "--data", "toy", "--run-dir", str(imported), "--preset", "tiny"]) == 2
    assert "--init-from" in capsys.readouterr().err


def test_info_tells_where_it_comes_from(changed, tmp_path, capsys):
    folder = changed()
    (folder / "README.md").write_text("---\nlanguage: de\nlicense: cc-by-4.0\n---\n# A model\n", "utf-8")
    assert main(["import", str(folder), "--run-dir", str(tmp_path / "run")]) == 0
    capsys.readouterr()
    assert main(["info", "--json", str(tmp_path / "run")]) == 0
    origin = json.loads(capsys.readouterr().out)["origin"]
    assert origin["licence"] == "cc-by-4.0"
    assert origin["languages"] == ["en", "de"]
    assert "Marian" in origin["architecture"]


def drop(name):
    return lambda tensors: tensors.pop(name)


def add(tensors):
    tensors["model.encoder.layers.9.fc1.weight"] = np.zeros((2, 3), np.float32)


def turn(tensors):
    tensors["model.encoder.layers.0.fc1.weight"] = tensors["model.encoder.layers.0.fc1.weight"].T.copy()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"config": {"model_type": "t5"}}, "Received: 't5'"),
        ({"config": {"scale_embedding": False}}, "scale_embedding=False"),
        ({"config": {"is_decoder": True}}, "is_decoder=True"),
        ({"config": {"decoder_attention_heads": 2}}, "attention_heads"),
        ({"config": {"decoder_ffn_dim": 7}}, "ffn_dim"),
        ({"config": {"activation_function": "gelu_new"}}, "Received: gelu_new"),
        ({"config": {"d_model": "wide"}}, "'wide'"),
        ({"config": {"vocab_size": 3}}, "do not belong together"),
        ({"config": {"encoder_layers": 4}}, "no tensor 'model.encoder.layers.3"),
        ({"config": {"encoder_layers": 2}}, "tensors that have no place in this architecture: model.encoder.layers.2"),
        ({"tensors": drop("final_logits_bias")}, "no tensor 'final_logits_bias'"),
        ({"tensors": drop("model.shared.weight")}, "no tensor 'model.shared.weight'"),
        ({"tensors": add}, "model.encoder.layers.9.fc1.weight"),
        ({"tensors": turn}, "must be of shape [64, 32]. Received: [32, 64]"),
        ({"without": ["config.json"]}, "config.json"),
        ({"without": ["model.safetensors"]}, "has no weights"),
        ({"without": ["source.spm"]}, "source.spm"),
        ({"without": ["vocab.json"]}, "vocab.json"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_does_not_fit_is_refused(refuses, change, said):
    refuses(change, said)


@pytest.mark.parametrize("file", ["model.safetensors", "source.spm", "vocab.json", "config.json"])
@pytest.mark.parametrize("kept", [0, 97, 0.5])
def test_a_file_that_is_cut_off_is_named(changed, tmp_path, file, kept):
    folder = changed()
    whole = (folder / file).read_bytes()
    (folder / file).write_bytes(whole[: int(kept * len(whole)) if isinstance(kept, float) else kept])
    with pytest.raises(InputError, match=file.partition(".")[0]):
        import_model(folder, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_pickle_needs_torch(changed, tmp_path):
    folder = changed(without=["model.safetensors"])
    (folder / "pytorch_model.bin").write_bytes(b"PK")
    try:
        import torch  # noqa: F401
    except ImportError:
        expected = "pip install torch"
    else:
        expected = "pytorch_model.bin is damaged"
    with pytest.raises(InputError, match=expected):
        import_model(folder, tmp_path / "run")


def test_weights_as_keras_has_them(changed, unpacked, imported, tmp_path):
    """The same model, saved by TFMarianMTModel of transformers 4.40 under TensorFlow 2.15."""
    folder = changed(without=["model.safetensors"])
    weights_file = unpacked("marian_tf") / "tf_model.h5"
    shutil.copy(weights_file, folder)
    found, whole = load(import_model(folder, tmp_path / "run").path).model, load(imported).model
    for mine, other in zip(found.get_weights(), whole.get_weights(), strict=True):
        np.testing.assert_array_equal(mine, other)
    refused = 0
    for place in range(600, 9_000, 280):  # among names and places of arrays: what a flip spoils is said in words
        flipped = bytearray(weights_file.read_bytes())
        flipped[place] ^= 0xFF
        (folder / "tf_model.h5").write_bytes(flipped)
        try:
            import_model(folder, tmp_path / f"run_{place}")
        except InputError:
            refused += 1
    assert refused > 3
    (folder / "tf_model.h5").write_bytes(weights_file.read_bytes()[:20_000])
    with pytest.raises(InputError, match=r"tf_model\.h5 is damaged"):
        import_model(folder, tmp_path / "other")


def test_weights_of_half_the_bits_and_in_parts(changed, imported, tmp_path):
    """As large models are stored: bfloat16, an index, several files."""
    import ml_dtypes
    from safetensors.numpy import load_file, save_file

    folder = changed()
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    names = sorted(tensors)
    index = {}
    for i, part in enumerate((names[::2], names[1::2])):
        file = f"model-{i + 1:05d}-of-00002.safetensors"
        save_file({name: tensors[name].astype(ml_dtypes.bfloat16) for name in part}, folder / file)
        index |= dict.fromkeys(part, file)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": index}), "utf-8")
    found, whole = load(import_model(folder, tmp_path / "run").path).model, load(imported).model
    for mine, other in zip(found.get_weights(), whole.get_weights(), strict=True):
        np.testing.assert_allclose(mine, other, rtol=2**-8)


def test_tokenizers_need_the_pieces_that_the_model_reads(imported):
    raw = (imported / "source.model").read_bytes()
    with pytest.raises(InputError, match="pieces, but the model needs 100000"):
        Tokenizer(raw, "source.model", 100_000)
