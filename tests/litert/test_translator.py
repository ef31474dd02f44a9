"""Translations by LiteRT against those of TensorFlow, of the same models."""

import concurrent.futures
import dataclasses
import itertools
import json
import shutil
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from tf_transformer import Transformer
from tf_transformer import Translator as TensorFlowTranslator
from tf_transformer.commands.main import main
from tf_transformer.config import DecodingConfig, TokenizerConfig
from tf_transformer.data.corpora import copy_task, toy
from tf_transformer.errors import InputError
from tf_transformer.export.litert import converted
from tf_transformer.litert import Translator
from tf_transformer.litert.model import LiteRTModel
from tf_transformer.runs.descriptions import LITERT_MODEL
from tf_transformer.tokenizers import Tokenizer, train_tokenizer
from tf_transformer.translation.results import Languages

PAIRS = toy.pairs("train")[:300]
SOURCES = [source for source, _ in PAIRS]
ODD = ["", "  ", "a", "日本語 — naïve ☃ \u2581x", SOURCES[5] + " " + SOURCES[7], "x" * 57, "\ud800 lone"]
SIZES = {"num_layers": 2, "d_model": 14, "num_heads": 2, "dff": 33}
KINDS = [
    {},
    {"norm": "pre", "share_embeddings": "all", "activation": "silu"},
    {"positions": "learned", "max_positions": 67, "share_embeddings": "all", "activation": "gelu"},
    {"share_embeddings": "all", "positions": "opus", "output_bias": True, "norm_epsilon": 1e-3, "activation": "swish"},
    {"positions": "m2m100", "num_decoder_layers": 1, "output_bias": True},
    {"key_dim": 5, "value_dim": 3},
]


@pytest.fixture(scope="module")
def tokenizers():
    """One of each language, and one that both share, which has tokens of three languages."""
    own = [Tokenizer(train_tokenizer([pair[i] for pair in PAIRS], TokenizerConfig(vocab_size=400))) for i in range(2)]
    languages = ("en", "de", "fr")
    text = itertools.chain.from_iterable(PAIRS)
    shared = Tokenizer(train_tokenizer(text, TokenizerConfig(vocab_size=440), languages), languages=languages)
    plain = Tokenizer(train_tokenizer(itertools.chain.from_iterable(PAIRS), TokenizerConfig(vocab_size=430)))
    return {"own": own, "several": [shared, shared], "all": [plain, plain]}


def model_of(tokenizers, **options) -> Transformer:
    """Of random weights that are sharp enough to say something different to every sentence."""
    tf.keras.utils.set_random_seed(5)
    source, target = tokenizers
    sizes = {"input_vocab_size": source.vocab_size, "target_vocab_size": target.vocab_size}
    model = Transformer(**SIZES, **sizes, **options)
    model.build(((None, None), (None, None)))
    rng = np.random.default_rng(5)
    for weight in model.weights:
        if weight.path.endswith(("kernel", "table")):
            weight.assign(weight.numpy() * 1.7)
        elif weight.path.endswith(("bias", "beta", "gamma")):
            weight.assign(weight.numpy() + rng.normal(size=weight.shape) * 0.1)
    return model


def both(tmp_path, tokenizers, decoding, quantize="float32", **options):
    """A model as TensorFlow and as LiteRT run it."""
    model = model_of(tokenizers, **options)
    content = converted(model, decoding.attention_layer, quantize)
    (tmp_path / LITERT_MODEL).write_bytes(content)
    positions = model.config["max_positions"] if model.config["positions"] == "learned" else None
    litert = LiteRTModel(tmp_path, len(model.decoder.layers), threads=1)
    source, target = (tokenizer.vocabulary for tokenizer in tokenizers)
    return TensorFlowTranslator(model, *tokenizers, decoding), Translator(litert, source, target, decoding, positions)


def check_equal(ours, theirs, n=1):
    """All translations are the same, but for near-ties, and so are their scores."""
    different = 0
    for one, other in zip(ours, theirs, strict=True):
        for (text, score), (other_text, other_score) in zip(one, other, strict=True):
            assert score == pytest.approx(other_score, abs=2e-4)
            different += text != other_text
    assert different <= n * len(ours) // 50


@pytest.mark.long_but_first
@pytest.mark.parametrize("options", KINDS, ids=str)
def test_it_translates_as_tensorflow_does(tmp_path, tokenizers, options):
    chosen = tokenizers["all" if options.get("share_embeddings") == "all" else "own"]
    decoding = DecodingConfig(beam_size=3, max_extra_length=13)
    theirs, ours = both(tmp_path, chosen, decoding, **options)
    sentences = [*SOURCES[:40], *ODD]
    assert ours.count_tokens(sentences) == theirs.count_tokens(sentences)
    for n in (1, 3):
        check_equal(ours.n_best_strings(sentences, n), theirs.n_best_strings(sentences, n), n)
    pairs = [*PAIRS[:11], ("", ""), ("a", "日本"), (SOURCES[0], SOURCES[1])]
    for one, other in zip(ours.score_strings(pairs), theirs.score_strings(pairs), strict=True):
        assert one == pytest.approx(other, abs=2e-4)
    for one in ("", "  ", "\u200b"):
        assert sum(ours.score_strings([(one, " ")])[0]) == ours.n_best_strings([one], 1)[0][0][1] == 0


@pytest.mark.long
@pytest.mark.parametrize(
    "settings",
    [
        {"beam_size": 1, "no_repeat_ngram": 2, "ban_unknown": True},
        {"beam_size": 3, "coverage_penalty": 0.4, "attention_layer": 1, "length_penalty": 1.1},
        {"beam_size": 2, "min_length": 7, "max_length": 11, "likely_stopping": True},
        {"beam_size": 4, "early_stopping": True, "max_source_length": 9},
    ],
    ids=str,
)
def test_it_searches_as_it_is_told(tmp_path, tokenizers, settings):
    decoding = DecodingConfig(max_extra_length=13, **settings)
    theirs, ours = both(tmp_path, tokenizers["own"], decoding)
    n = decoding.hypotheses
    check_equal(ours.n_best_strings(SOURCES[:50], n), theirs.n_best_strings(SOURCES[:50], n), n)


@pytest.mark.long
def test_languages(tmp_path, tokenizers):
    theirs, ours = both(tmp_path, tokenizers["several"], DecodingConfig(max_extra_length=13))
    with pytest.raises(InputError, match="give --source-language"):
        ours.translate_strings(["a"])
    found = []
    for target in ("de", "fr"):
        directed = dataclasses.replace(ours.decoding, source_language="en", target_language=target)
        ours.decoding = theirs.decoding = directed
        theirs = TensorFlowTranslator(theirs.model, *tokenizers["several"], directed)
        found.append(ours.n_best_strings(SOURCES[:30], 1))
        check_equal(found[-1], theirs.n_best_strings(SOURCES[:30], 1))
        pairs = [*PAIRS[:5], ("", "a"), ("a", "")]
        for one, other in zip(ours.score_strings(pairs), theirs.score_strings(pairs), strict=True):
            assert one == pytest.approx(other, abs=2e-4)
        assert ours.score_strings([("", "")]) == theirs.score_strings([("", "")]) == [[0.0]]
    assert found[0] != found[1]
    # Each sentence may have languages of its own.
    rows = [("en", "de"), ("de", "fr"), ("fr", "en")] * 9
    columns = [tf.constant(list(column)) for column in zip(*rows, strict=True)]
    expected = theirs.translate(tf.constant(SOURCES[:27]), Languages(*columns))
    mixed = ours.search(SOURCES[:27], 1, rows)
    assert [each.log_probabilities[0] for each in mixed] == pytest.approx(expected.scores.numpy().tolist(), abs=2e-4)
    with pytest.raises(InputError, match="max_source_length must be at least 3 for a model with several languages"):
        Translator(ours.model, ours.source, ours.target, DecodingConfig(max_source_length=2))
    with pytest.raises(InputError, match="unknown language 'es'"):
        Translator(ours.model, ours.source, ours.target, DecodingConfig(source_language="es"))


@pytest.mark.long
def test_attention_is_that_of_the_layer(tmp_path, tokenizers):
    theirs, ours = both(tmp_path, tokenizers["own"], DecodingConfig(max_extra_length=13, attention_layer=1))
    expected = theirs.translate_with_attention(tf.constant(SOURCES[:9])).attention.numpy()
    for row, weights in zip(expected, ours.attention(ours.search(SOURCES[:9])), strict=True):
        length, width = weights.shape
        np.testing.assert_allclose(weights, row[:length, :width], atol=1e-5)
        assert not row[length:].any()
        assert not row[:, width:].any()


@pytest.mark.long
def test_a_batch_changes_nothing_and_sentences_may_be_many(tmp_path, tokenizers):
    _, ours = both(tmp_path, tokenizers["own"], DecodingConfig(max_extra_length=13))
    sentences = SOURCES[:200]
    alone = [ours.n_best_strings([sentence], 1)[0] for sentence in sentences[:20]]
    check_equal(ours.n_best_strings(sentences, 1)[:20], alone)
    assert ours.translate_strings([]) == []


@pytest.mark.parametrize("work", ["search", "score", "attention"])
def test_as_many_tokens_are_computed_at_once_as_are_asked_for(copy_litert, monkeypatch, work):
    encode, rows = LiteRTModel.encode, []

    def counted(model, ids):
        rows.append(len(ids))
        return encode(model, ids)

    monkeypatch.setattr(LiteRTModel, "encode", counted)
    sources = [source for source, _ in copy_task.pairs("test")][:160]
    for batch_tokens, most in ((16 * 7, 7), (2048, 128), (4096, 160)):
        translator = Translator.load(copy_litert("int8"), threads=1, batch_tokens=batch_tokens)
        found = translator.search(sources) if work == "attention" else None
        rows.clear()
        if work == "search":
            translator.translate_strings(sources)
        elif work == "score":
            translator.score_strings([(source, source) for source in sources])
        else:
            translator.attention(found)
        assert (sum(rows), max(rows)) == (160, most)


@pytest.mark.long
def test_what_is_cut_is_named(tmp_path, tokenizers, caplog):
    theirs, ours = both(
        tmp_path, tokenizers["own"], DecodingConfig(max_extra_length=13), positions="learned", max_positions=23
    )
    long = " ".join(SOURCES[:9])
    check_equal(ours.n_best_strings([long, "a"], 1, [4, 5]), theirs.n_best_strings([long, "a"], 1, [4, 5]))
    cut = "cut, because it has more tokens than max_source_length or than the model has positions: "
    told = [record.message for record in caplog.records if record.name == "tf_transformer.text.batching"]
    assert told == [f"line 4 was {cut}{long[:60]} ..."] * 2


@pytest.mark.parametrize(("quantize", "least"), [("float16", 0.95), ("int8", 0.6)])
def test_fewer_bits_say_nearly_the_same(copy_litert, quantize, least):
    """Exactly the copies that the model has learned to make, or most of them: the model is tiny."""
    whole, path = copy_litert("float32"), copy_litert(quantize)
    assert (path / LITERT_MODEL).stat().st_size < (whole / LITERT_MODEL).stat().st_size
    lines = [source for source, _ in copy_task.pairs("test")[:100]]
    found = [Translator.load(folder).translate_strings(lines) for folder in (whole, path)]
    right = [np.mean([one == other for one, other in zip(lines, each, strict=True)]) for each in found]
    assert right[0] >= 0.95
    assert right[1] >= least


def test_commands(copy_run, copy_litert, tmp_path, capsys):
    path = copy_litert("float32")
    assert {file.name for file in path.iterdir()} == {
        LITERT_MODEL,
        "tokenizer.model",
        "tf_transformer.json",
        "README.md",
    }
    capsys.readouterr()
    assert main(["evaluate", "--model", str(path), "--split", "val", "--json"]) == 0
    ours = json.loads(capsys.readouterr().out)
    assert main(["evaluate", "--model", str(copy_run), "--split", "val", "--json"]) == 0
    theirs = json.loads(capsys.readouterr().out)
    assert ours["bleu"] == pytest.approx(theirs["bleu"], abs=0.5)
    assert main(["evaluate", "--model", str(path), "--split", "val", "--beam-size", "1"]) == 0
    assert main(["info", "--json", str(path)]) == 0
    shown = capsys.readouterr().out
    assert '"quantize": "float32"' in shown
    for option, said in (("--jit-compile", "LiteRT"), ("--sampling-temperature=1", "LiteRT")):
        assert main(["evaluate", "--model", str(path), "--split", "val", option]) == 2
        assert said in capsys.readouterr().err
    assert main(["export", "--run-dir", str(copy_run), "--output", str(tmp_path / "x"), "--quantize", "int8"]) == 2
    assert "--quantize is for --format litert" in capsys.readouterr().err
    assert main(["serve", str(copy_run), "--port", "0"]) == 2


BLOCKED = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("tensorflow", "tensorflow_text", "keras", "google", "torch", "jax"):
            raise ImportError(f"{name} is not there")
sys.meta_path.insert(0, Blocked())
from tf_transformer.litert import Translator
print(Translator.load(sys.argv[1]).translate_strings(["a b c d e"]))
"""


def test_threads_may_share_it(copy_litert):
    """Their batches have other sizes and lengths, for which the one interpreter is resized, and their calls differ."""
    translator = Translator.load(copy_litert("float32"))
    lines = ["a b c", "k j i h g f e d", "b", "c c a b d e f g h i j k a b c d e", ""]
    calls = [
        lambda: translator.n_best_strings(lines[:3], 4),
        lambda: translator.translate_strings(lines),
        lambda: [each.target_tokens for each in translator.aligned_strings(lines[1:])],
        lambda: translator.score_strings([(line, line) for line in lines[:2]]),
    ]
    alone = [call() for call in calls]
    with concurrent.futures.ThreadPoolExecutor(3) as threads:
        together = list(threads.map(lambda number: calls[number % 4](), range(40)))
    assert together == alone * 10


def test_it_needs_no_tensorflow(copy_litert):
    path = copy_litert("int8")
    done = subprocess.run([sys.executable, "-c", BLOCKED, path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "a b c d e" in done.stdout


def test_wrong_folders(copy_litert, tmp_path, capsys):
    good = copy_litert("int8")
    capsys.readouterr()

    def refused(change, match):
        folder = tmp_path / "bad"
        shutil.copytree(good, folder)
        change(folder)
        with pytest.raises(InputError, match=match):
            Translator.load(folder)
        assert main(["evaluate", "--model", str(folder), "--split", "val"]) == 2
        assert len(capsys.readouterr().err.splitlines()) == 1
        shutil.rmtree(folder)

    refused(lambda folder: (folder / "tokenizer.model").unlink(), "cannot read the tokenizer")
    refused(lambda folder: (folder / "tf_transformer.json").unlink(), "missing or damaged")
    refused(lambda folder: (folder / LITERT_MODEL).unlink(), "not an export for LiteRT")
    refused(lambda folder: (folder / LITERT_MODEL).write_bytes(b"no model"), "is damaged or not a LiteRT model")
    content = (good / LITERT_MODEL).read_bytes()
    refused(lambda folder: (folder / LITERT_MODEL).write_bytes(content[: len(content) // 3]), "damaged|not our export")

    @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32, name="x")])
    def other(x):
        return {"y": 2 * x}

    module = tf.Module()
    module.other = other
    tf.saved_model.save(module, str(tmp_path / "other"), signatures={"other": other})
    foreign = tf.lite.TFLiteConverter.from_saved_model(str(tmp_path / "other")).convert()
    refused(lambda folder: (folder / LITERT_MODEL).write_bytes(foreign), "is not our export: its signatures are other")
