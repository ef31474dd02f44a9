"""Ensembles of runs: by the commands, and as an export."""

import json
import math

import numpy as np
import pytest
import tensorflow as tf

from tf_transformer import Translator
from tf_transformer.commands.main import main
from tf_transformer.config import DecodingConfig
from tf_transformer.data.corpora import copy_task
from tf_transformer.tokenizers import END, START

LINES = [source for source, _ in copy_task.pairs("test")[:7]]


@pytest.fixture(scope="module")
def other(copy_run, tmp_path_factory):
    """Another run with the same tokenizer, of another size, which has learned little."""
    folder = tmp_path_factory.mktemp("ensemble") / "other"
    sizes = ("num_layers=1", "d_model=18", "num_heads=3", "dff=23")
    settings = [f"--set=model.{size}" for size in sizes]
    text = ["--data", "copy", "--tokenizer", str(copy_run / "tokenizer.model"), "--run-dir", str(folder)]
    assert main(["train", *text, *settings, "--max-steps", "7", "--set=training.samples=0"]) == 0
    return folder


@pytest.fixture
def source(tmp_path):
    (tmp_path / "source.txt").write_text("".join(f"{line}\n" for line in LINES))
    return tmp_path / "source.txt"


@pytest.mark.long
def test_a_run_with_itself_translates_as_it_does(copy_run, source, tmp_path):
    found = {}
    for models in ([copy_run], [copy_run, copy_run, copy_run]):
        output = tmp_path / f"{len(models)}.txt"
        named = [part for model in models for part in ("--model", str(model))]
        assert (
            main(["translate", *named, "--input", str(source), "--output", str(output), "--n-best", "3", "--scores"])
            == 0
        )
        found[len(models)] = [line.split("\t") for line in output.read_text().splitlines()]
    assert [text for _, text in found[1]] == [text for _, text in found[3]]
    scores = [[float(score) for score, _ in found[count]] for count in (1, 3)]
    np.testing.assert_allclose(*scores, atol=2e-4)


@pytest.mark.long
def test_the_most_probable_token_is_that_of_the_mean(copy_run, other):
    """Greedy search against a loop by hand, with the probabilities of both models."""
    greedy = DecodingConfig(beam_size=1, ban_unknown=False)
    ensemble = Translator.load([copy_run, other], greedy)
    models = [Translator.load(run).model for run in (copy_run, other)]
    for line in LINES[:3]:
        ids = [*ensemble.source_tokenizer.encode([line])[0], END]
        written, total = [START], 0.0
        while written[-1] != END and len(written) < len(ids) + 50:
            pair = (np.array([ids]), np.array([written]))
            mean = np.mean([tf.nn.softmax(model(pair))[0, -1] for model in models], axis=0)
            mean[[0, START]] = 0
            written.append(int(mean.argmax()))
            total += math.log(mean.max())
        [[(text, score)]] = ensemble.n_best_strings([line], 1)
        assert text == ensemble.target_tokenizer.detokenize(tf.constant([written[1:-1]])).numpy()[0].decode()
        assert score == pytest.approx(total / ((5 + len(written) - 1) / 6) ** 0.6, abs=1e-3)


@pytest.mark.long
def test_an_export_of_both_translates_as_both_do(copy_run, other, tmp_path, capsys):
    runs = ["--run-dir", str(copy_run), "--run-dir", str(other)]
    assert main(["export", *runs, "--output", str(tmp_path / "1")]) == 0
    ensemble, (one, _) = Translator.load([copy_run, other]), (Translator.load(run) for run in (copy_run, other))
    exported = tf.saved_model.load(str(tmp_path / "1"))
    text = tf.constant(LINES)
    found = exported.signatures["serving_default"](text=text)
    expected = ensemble.translate(text)
    np.testing.assert_array_equal(found["translation"], expected.texts)
    np.testing.assert_allclose(found["score"], expected.scores, atol=1e-3)
    assert np.abs(found["score"] - one.translate(text).scores).max() > 0.1
    capsys.readouterr()
    assert main(["info", str(tmp_path / "1")]) == 0
    shown = capsys.readouterr().out
    assert "Ensemble of" in shown and "other (7 updates)" in shown
    assert main(["info", "--json", str(tmp_path / "1")]) == 0
    parameters = json.loads(capsys.readouterr().out)["parameters"]
    assert parameters == sum(weight.numpy().size for weight in ensemble.model.weights)


@pytest.mark.long
def test_score_and_evaluate_take_several_models(copy_run, other, source, capsys):
    both = ["--model", str(copy_run), "--model", str(other)]
    assert main(["score", *both, str(source), str(source)]) == 0
    shown = [float(line.split("\t")[0]) for line in capsys.readouterr().out.splitlines()]
    expected = Translator.load([copy_run, other]).score_strings([(line, line) for line in LINES])
    np.testing.assert_allclose(shown, [sum(line) for line in expected], atol=1e-3)
    assert main(["evaluate", *both, "--json"]) == 0
    assert 0 <= json.loads(capsys.readouterr().out)["bleu"] <= 100


@pytest.mark.long
def test_what_makes_no_ensemble_is_refused(copy_run, copy_export, tmp_path, capsys):
    foreign = tmp_path / "foreign"
    text = [
        "--data",
        "copy",
        "--set=tokenizer.byte_fallback=false",
        "--run-dir",
        str(foreign),
        "--set=training.samples=0",
    ]
    sizes = [f"--set=model.{size}" for size in ("num_layers=1", "d_model=6", "num_heads=3", "dff=5")]
    assert main(["train", *text, *sizes, "--max-steps", "1"]) == 0
    output = ["--output", str(tmp_path / "1")]
    for command, said in (
        (["score", "--model", str(copy_run), "--model", str(copy_export), __file__, __file__], "is an export"),
        (["score", "--model", str(copy_run), "--model", "nowhere", __file__, __file__], "nowhere: there is no such"),
        (["score", "--model", str(copy_run), "--model", str(foreign), __file__, __file__], "needs one vocabulary"),
        (["export", "--run-dir", str(copy_run), "--run-dir", str(foreign), *output], "needs one vocabulary"),
        (["export", "--run-dir", str(copy_run), "--run-dir", str(copy_run), *output, "--format", "litert"], "only a"),
    ):
        capsys.readouterr()
        assert main(command) == 2
        err = capsys.readouterr().err
        assert said in err
    assert not (tmp_path / "1").exists()
