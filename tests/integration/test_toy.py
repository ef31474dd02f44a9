"""The demo's translator."""

import json
from pathlib import Path

import pytest
import tensorflow as tf

from tf_transformer import Translator
from tf_transformer.cli import main
from tf_transformer.config import DecodingConfig
from tf_transformer.data import toy
from tf_transformer.decoding import length_penalty

CONFIG = Path(__file__).parents[2] / "scripts" / "toy.toml"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = str(tmp_path_factory.mktemp("toy") / "run")
    assert main(["train", "--data", "toy", "--config", str(CONFIG), "--run-dir", path]) == 0
    return path


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
        search = tf.function(translator.search, input_signature=[tf.TensorSpec([None], tf.string)])
        scores = []
        for start in range(0, 1000, 125):
            found = search(tf.constant(sources[start : start + 125]))
            lengths = tf.math.count_nonzero(found.ids[:, 0], axis=1)
            scores.append(found.log_probabilities[:, 0] / length_penalty(lengths, 0.6))
        means[name] = float(tf.reduce_mean(tf.concat(scores, axis=0)))
    assert means["beam"] >= means["greedy"]
    assert means["beam"] >= means["early"] - 1e-6
