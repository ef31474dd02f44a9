"""What is validated, loaded, averaged, exported and built upon is the moving average, whatever makes the updates."""

import dataclasses

import numpy as np
import pytest

from tf_transformer import load
from tf_transformer.config import TrainingConfig, override
from tf_transformer.data import Batches, encode, read
from tf_transformer.errors import InputError
from tf_transformer.runs import checkpoints
from tf_transformer.runs.averaging import average_checkpoints, average_run
from tf_transformer.runs.weights import build_model, restore_best, saved_names, weights
from tf_transformer.training.fit import make_trainer, train
from tf_transformer.training.loss import token_losses
from tf_transformer.training.optimizer import moving_averages
from tf_transformer.training.resume import variables_of


def choices(setting):
    """All values of a setting of training that has names for them."""
    return next(f for f in dataclasses.fields(TrainingConfig) if f.name == setting).metadata["choices"]


def moving_average(trained, decay):
    """The mean of the weights after each update, by the documented formula, from what was saved after each."""
    mean = {}
    for made, checkpoint in enumerate(checkpoints.all_of(trained.checkpoints)):
        saved = checkpoints.read(checkpoint, checkpoints.names_in(checkpoint))
        share = min(decay, (1 + made) / (10 + made)) if made else 0.0
        mean = {
            name: share * mean.get(name, 0.0) + (1 - share) * value.astype("float64")
            for name, value in saved.items()
            if name.startswith("transformer")
        }
    return mean


@pytest.mark.long
@pytest.mark.parametrize("optimizer", choices("optimizer"))
def test_the_average_is_the_model(optimizer, corpus, small, tmp_path, epoch_rows):
    kept = {"checkpoint_every": 1, "keep_last": 10, "keep_best": 10}
    config = small(corpus, ema_decay=0.9, learning_rate=0.02, warmup_steps=1, optimizer=optimizer, **kept)
    run = train(config, tmp_path / "run")
    expected = moving_average(run, 0.9)

    mean_of_one = average_run(run.path, tmp_path / "mean", last=1)
    in_python, base = load(run.path).model, build_model(run.config)
    average_checkpoints(checkpoints.all_of(run.checkpoints)[-1:], in_python)
    restore_best(run, base)  # what --init-from starts from
    trained = checkpoints.read(run.best_checkpoint(), expected)
    assert max(np.abs(trained[name] - value).max() for name, value in expected.items()) > 0.001
    for model in (load(run.path).model, in_python, load(mean_of_one.path).model, base):
        for name, value in weights(model).items():
            np.testing.assert_allclose(value.numpy(), expected[name], rtol=1e-4, atol=1e-5, err_msg=name)
    assert float(epoch_rows(run)[-1]["val_loss"]) == pytest.approx(validation_loss(run.path, config), rel=1e-4)


def validation_loss(run, config):
    """The loss on the validation text of what `load` returns."""
    model, source, target, _ = load(run)
    batches = Batches(encode(read(config.data, "val"), source, target, config.data.max_length), 64)
    losses = [(token_losses(labels, model(pair), 0.1), labels) for pair, labels, _ in batches.dataset()]
    return sum(float(np.sum(loss)) for loss, _ in losses) / sum(int(np.sum(labels > 0)) for _, labels in losses)


@pytest.mark.parametrize("rank", [0, 2])
@pytest.mark.parametrize("precision", choices("mixed_precision"))
@pytest.mark.parametrize("optimizer", choices("optimizer"))
def test_checkpoints_hold_an_average_of_each_weight(optimizer, precision, rank, corpus, small, tmp_path):
    settings = {"optimizer": optimizer, "mixed_precision": precision, "lora_rank": rank, "ema_decay": 0.9}
    config = override(small(corpus, **settings), {"model": {"input_vocab_size": 11, "target_vocab_size": 11}})
    trainer = make_trainer(config)
    pairs = moving_averages(trainer.optimizer)
    assert [weight.path for weight, _ in pairs] == [weight.path for weight in trainer.trainable_variables]
    for i, (_, average) in enumerate(pairs):
        average.assign(np.full(average.shape, i))
    saved = checkpoints.save(tmp_path, 1, variables_of(trainer.model, trainer.optimizer), {})
    names = saved_names(saved, [weight.path for weight, _ in pairs], is_averaged=True)
    values = checkpoints.read(saved, names.values())
    assert [set(values[name].flat) for name in names.values()] == [{i} for i in range(len(pairs))]


@pytest.mark.long
def test_an_average_that_is_not_there_is_missed(corpus, small, tmp_path):
    """A run whose config asks for an average, with checkpoints of a training that kept none."""
    run = train(small(corpus, max_steps=1), tmp_path / "run")
    asking = dataclasses.replace(run.config.training, ema_decay=0.9)
    run = run.replace_config(dataclasses.replace(run.config, training=asking))
    for use in (lambda: load(run.path), lambda: average_run(run.path, tmp_path / "mean", last=1)):
        with pytest.raises(InputError, match=r"holds no moving average of transformer/.*training\.ema_decay"):
            use()
    last = run.best_checkpoint()
    arrays = checkpoints.read(last, checkpoints.names_in(last))
    one = next(name for name in arrays if name.startswith("transformer"))
    arrays[f"other/{one.replace('/', '_')}_average"] = arrays[one]
    checkpoints.write(tmp_path, 1, arrays.items(), {})
    with pytest.raises(InputError, match="holds no moving average"):
        average_checkpoints(checkpoints.all_of(tmp_path), make_trainer(run.config).model)
