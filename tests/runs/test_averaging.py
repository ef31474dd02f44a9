"""The mean of several checkpoints is a model of its own (paper 6.1)."""

import json
import shutil

import numpy as np
import pytest

from tf_transformer import load
from tf_transformer.commands.main import main
from tf_transformer.errors import InputError
from tf_transformer.runs import checkpoints
from tf_transformer.runs.averaging import average_checkpoints, average_run
from tf_transformer.runs.directory import RunDirectory
from tf_transformer.runs.weights import saved_names


@pytest.fixture
def run(copy_run, tmp_path):
    return RunDirectory(shutil.copytree(copy_run, tmp_path / "run"))


def test_it_is_the_mean_of_the_last(run, capsys):
    assert main(["average", "--run-dir", str(run.path), "--last", "3"]) == 0
    averaged = RunDirectory(run.path / "average-last-3")
    assert capsys.readouterr().out.strip() == f"averaged: {averaged.path}"
    last = checkpoints.all_of(run.checkpoints)[-3:]
    for variable in load(averaged.path).model.trainable_variables:
        saved = saved_names(last[0], [variable.path])[variable.path]
        expected = np.mean([checkpoints.read(path, [saved])[saved] for path in last], axis=0, dtype=np.float64)
        np.testing.assert_allclose(variable.numpy(), expected, rtol=1e-6, err_msg=variable.path)


def test_a_model_in_python_takes_the_mean(run):
    paths = checkpoints.all_of(run.checkpoints)[:2]
    model = load(run.path).model
    average_checkpoints(paths, model)
    for variable in model.trainable_variables:
        saved = saved_names(paths[0], [variable.path])[variable.path]
        assert saved.endswith("_average")  # of the weights, which training kept: as `average` takes them
        one, other = (checkpoints.read(path, [saved])[saved] for path in paths)
        np.testing.assert_allclose(variable.numpy(), (one + other) / 2, atol=1e-6)
    checkpoints.write(run.path, 1, [("a", np.zeros(3))], {})
    with pytest.raises(InputError, match="holds no transformer/"):
        average_checkpoints(checkpoints.all_of(run.path), model)


@pytest.mark.long
def test_model_takes_it_everywhere(run, tmp_path, capsys):
    averaged = str(tmp_path / "averaged")
    assert main(["average", "--run-dir", str(run.path), "--best", "1", "--output", averaged]) == 0
    export = str(tmp_path / "export")
    assert main(["export", "--run-dir", averaged, "--output", export]) == 0
    capsys.readouterr()
    scores = []
    for model in (str(run.path), averaged, export):
        assert main(["evaluate", "--model", model, "--split", "val", "--json"]) == 0
        scores.append(json.loads(capsys.readouterr().out)["bleu"])
    assert scores == scores[:1] * 3  # the mean of the best alone is the best
    assert main(["info", "--json", averaged]) == 0
    best = checkpoints.state_of(run.best_checkpoint())["step"]
    assert json.loads(capsys.readouterr().out)["averaged"] == {"run": str(run.path), "steps": [best]}


def test_it_does_not_go_on(run, capsys, tmp_path):
    averaged = average_run(run.path, tmp_path / "averaged", last=2)
    config = averaged.config.data
    assert main(["train", "--data", config.corpus, "--run-dir", str(averaged.path)]) == 2
    assert "its training cannot continue: start another run from it with --init-from" in capsys.readouterr().err


def test_the_last_ones_follow_each_other(run):
    """Training kept two; told to keep four, it would else offer the best one, long ago, as one of the last."""
    *_, last = checkpoints.all_of(run.checkpoints)
    states = {path: checkpoints.state_of(path) for path in checkpoints.all_of(run.checkpoints)}
    assert states[last]["previous"] == list(states.values())[-2]["step"]
    gone = checkpoints.all_of(run.checkpoints)[-2]
    gone.unlink()
    step, deleted = states[last]["step"], states[gone]["step"]
    told = f"deleted the checkpoint of step {deleted}, .* of step {step}: average the last 1"
    with pytest.raises(InputError, match=told):
        average_run(run.path, last=2)
    assert average_run(run.path, last=1).description["averaged"]["steps"] == [step]


def test_what_cannot_be_averaged_is_refused(run, tmp_path):
    settings = {"keep_last": 5, "keep_best": 1}
    assert {name: getattr(run.config.training, name) for name in settings} == settings
    for last, best in ((6, None), (None, 2)):
        name, kept = ("keep_best", 1) if best else ("keep_last", 5)
        with pytest.raises(InputError, match=rf"with training\.{name}={kept}: train with --set .*{name}={kept + 1}"):
            average_run(run.path, last=last, best=best)
    for old in checkpoints.all_of(run.checkpoints)[:-2]:
        old.unlink()
    with pytest.raises(InputError, match="has 2 checkpoints: average those, train longer, or lower"):
        average_run(run.path, last=3)
    with pytest.raises(InputError, match="either the number of the last checkpoints or that of the best"):
        average_run(run.path)
    with pytest.raises(InputError, match="must be at least 1. Received: 0"):
        average_run(run.path, last=0)
    (tmp_path / "there").mkdir()
    with pytest.raises(InputError, match="there exists"):
        average_run(run.path, tmp_path / "there", last=1)
    with pytest.raises(InputError, match="is not a run directory"):
        average_run(tmp_path, last=1)
    damaged = checkpoints.all_of(run.checkpoints)[-1]
    damaged.write_bytes(damaged.read_bytes()[:500])
    with pytest.raises(InputError, match="is damaged"):
        average_run(run.path, last=1)
    assert not (run.path / "average-last-1").exists()
