"""The demo's translator."""

import json
from pathlib import Path

import ctranslate2
import pytest
import tensorflow as tf

from tf_transformer import Translator
from tf_transformer.commands.main import main
from tf_transformer.config import DecodingConfig
from tf_transformer.data.corpora import toy
from tf_transformer.decoding import length_penalty
from tf_transformer.export.ctranslate2 import export
from tf_transformer.text.batching import translate_lines

CONFIG = Path(__file__).parents[2] / "scripts" / "toy.toml"


@pytest.fixture(scope="module")
def run(made_once):
    def train(path):
        assert main(["train", "--data", "toy", "--config", str(CONFIG), "--run-dir", str(path)]) == 0

    return str(made_once("toy_run", train))


@pytest.mark.long
def test_at_least_95_percent_of_held_out_sentences_come_out_exactly(run, tmp_path, capsys):
    capsys.readouterr()
    assert main(["evaluate", "--model", run, "--split", "test", "--json", "--output", str(tmp_path / "test.de")]) == 0
    assert json.loads(capsys.readouterr().out)["sentences"] == 1000
    translations = (tmp_path / "test.de").read_text().splitlines()
    references = [target for _, target in toy.pairs("test")]
    assert sum(map(str.__eq__, translations, references)) >= 950


@pytest.mark.long
def test_a_beam_finds_what_is_at_least_as_good_as_greedy_search(run):
    """The mean score over 1,000 sentences, under the same penalty; stopping early finds nothing better."""
    sources = [source for source, _ in toy.pairs("test")]
    means = {}
    for name, decoding in {
        "greedy": DecodingConfig(beam_size=1),
        "beam": DecodingConfig(),
        "early": DecodingConfig(early_stopping=True),
    }.items():
        translator = Translator.load(run, decoding)
        signature = [tf.TensorSpec([None], tf.string)]
        search = tf.function(lambda texts, t=translator: t.search(texts)[1], input_signature=signature)
        scores = []
        for start in range(0, 1000, 125):
            found = search(tf.constant(sources[start : start + 125]))
            lengths = tf.math.count_nonzero(found.ids[:, 0], axis=1)
            scores.append(found.log_probabilities[:, 0] / length_penalty(lengths, 0.6))
        means[name] = float(tf.reduce_mean(tf.concat(scores, axis=0)))
    assert means["beam"] >= means["greedy"]
    assert means["beam"] >= means["early"] - 1e-6


@pytest.mark.long
@pytest.mark.parametrize(("beam_size", "alpha"), [(1, 0.0), (4, 0.0), (4, 0.6)])
def test_it_finds_what_ctranslate2_finds(run, tmp_path, beam_size, alpha):
    """On 1,000 sentences. Where they differ both are equally good.

    With a length penalty CTranslate2 divides by length^alpha, and stops at `beam_size` translations: then ours are
    at least as good under our score.
    """
    sources = [source for source, _ in toy.pairs("test")]
    translator = Translator.load(run, DecodingConfig(beam_size=beam_size, length_penalty=alpha))
    other = ctranslate2.Translator(str(export(run, tmp_path / "1")), compute_type="float32", intra_threads=2)
    source, target = translator.source_tokenizer, translator.target_tokenizer
    given = [[source.pieces[i] for i in row] for row in source.tokenize(sources).to_list()]
    options = {"beam_size": beam_size, "length_penalty": alpha, "max_decoding_length": 90, "min_decoding_length": 0}
    theirs = [
        target.detokenize(tf.constant([[target.pieces.index(piece) for piece in result.hypotheses[0]]]))[0]
        for result in other.translate_batch(given, max_batch_size=64, **options)
    ]
    ours = translate_lines(translator.translate_strings, sources, count=translator.count_tokens)
    differ = [
        (source, mine, text.numpy().decode())
        for source, mine, text in zip(sources, ours, theirs, strict=True)
        if mine != text.numpy().decode()
    ]
    if not alpha or beam_size == 1:
        assert len(differ) < 5
    for source, *texts in differ:
        mine, yours = (
            sum(tokens) / ((5 + len(tokens)) / 6) ** alpha
            for tokens in translator.score_strings([(source, text) for text in texts])
        )
        assert mine >= yours - 1e-3
        assert alpha or mine <= yours + 1e-3
