"""Which checkpoints are kept, and what of a run is in them. That training goes on exactly is in test_resume.py."""

from types import SimpleNamespace

import keras
import pytest
import tensorflow as tf

from tf_transformer import Transformer
from tf_transformer.data.batches import Place
from tf_transformer.runs import checkpoints
from tf_transformer.training.callbacks import SaveCheckpoints
from tf_transformer.training.optimizer import Adam
from tf_transformer.training.resume import restore, variables_of

VALUES = [5.0, 2.0, 7.0, 3.0, 6.0, 4.0, 8.0]


def saver_of(folder, **options):
    """A saver of one variable, without a training; `batches.place` and the updates are set by hand."""
    batches = SimpleNamespace(place=Place())
    saver = SaveCheckpoints(folder, {"x": tf.Variable(0.0)}, batches, **options)
    saver.set_model(SimpleNamespace(optimizer=SimpleNamespace(iterations=tf.Variable(0))))
    return saver


@pytest.mark.parametrize("best_by", ["loss", "bleu"])
@pytest.mark.parametrize(("last", "best"), [(1, 1), (2, 1), (1, 3), (3, 2)])
def test_the_last_checkpoints_are_kept_and_the_best(tmp_path, last, best, best_by):
    saver = saver_of(tmp_path, keep_last=last, keep_best=best, best_by=best_by)
    for step, value in enumerate(VALUES, 1):
        saver.model.optimizer.iterations.assign(step)
        saver.save({f"val_{best_by}": value})
        done = range(1, step + 1)
        ranked = sorted(done, key=lambda n: VALUES[n - 1], reverse=best_by == "bleu")
        expected = {*done[-last:], *ranked[:best]}
        assert {checkpoints.state_of(path)["step"] for path in checkpoints.all_of(tmp_path)} == expected


def test_a_checkpoint_says_where_training_stands(tmp_path):
    saver = saver_of(tmp_path)
    saver.batches.place = Place(epoch=3, window=5, batch=7)
    saver.model.optimizer.iterations.assign(11)
    saver.variables["x"].assign(13.0)
    saver.model.metrics_variables = [tf.Variable(17.0), tf.Variable(19.0)]
    saver.model.distribute_strategy = tf.distribute.get_strategy()
    saver.save_within()
    run = SimpleNamespace(known=lambda: checkpoints.all_of(tmp_path), checkpoints=tmp_path, path=tmp_path)
    variable = tf.Variable(0.0)
    assert restore(run, {"x": variable}, tf.distribute.get_strategy()) == (11, (3, 5, 7), [17.0, 19.0])
    assert variable.numpy() == 13


def test_all_that_training_changes_is_saved():
    model = Transformer(
        num_layers=1, d_model=6, num_heads=2, dff=5, input_vocab_size=11, target_vocab_size=11, dropout_rate=0.1
    )
    model.build(((None, None), (None, None)))
    optimizer = Adam(use_ema=True)
    optimizer.build(model.trainable_weights)
    saved = {id(getattr(variable, "value", variable)) for variable in variables_of(model, optimizer).values()}
    changed = [*model.trainable_variables, *optimizer.variables]
    dropouts = [layer for layer in model._flatten_layers() if isinstance(layer, keras.layers.Dropout) and layer.rate]
    changed += [layer.seed_generator.state for layer in dropouts]
    assert len(changed) > len(model.trainable_variables) + len(optimizer.variables)
    assert {id(variable.value) for variable in changed} <= saved
