"""From a config to a trained run directory."""

import contextlib
import importlib.util
import logging
import os
from pathlib import Path
from typing import Any, NamedTuple

import keras
import tensorflow as tf

from tf_transformer.config import Config, DecodingConfig
from tf_transformer.data import Batches
from tf_transformer.errors import InputError
from tf_transformer.evaluation import bleu_metric
from tf_transformer.files import contents_replaced, settle
from tf_transformer.lock import sole_writer
from tf_transformer.runs import checkpoints
from tf_transformer.runs.descriptions import OF_RUN
from tf_transformer.runs.directory import FROZEN, RunDirectory, find_run, write_run
from tf_transformer.runs.history import validations
from tf_transformer.runs.weights import build_model, count_of, frozen_of, restore_best, tokenizer_files
from tf_transformer.training import callbacks as on
from tf_transformer.training.loss import Perplexity, SmoothedCrossEntropy, TokenAccuracy, TokenLoss
from tf_transformer.training.optimizer import make_optimizer
from tf_transformer.training.resume import Place, check_same_start, restore, variables_of
from tf_transformer.training.start import Start, start_of
from tf_transformer.training.strategy import (
    Machines,
    distribute,
    is_chief,
    make_strategy,
    naming_lost_machines,
)
from tf_transformer.training.text import forget_text
from tf_transformer.training.trainer import Trainer, vary_dropout
from tf_transformer.translation.translator import Translator

log = logging.getLogger(__name__)


def train(
    config: Config,
    run_dir: str | Path,
    *,
    overwrite: bool = False,
    strategy: tf.distribute.Strategy | None = None,
) -> RunDirectory:
    """Train what `config` says, or go on with the run in `run_dir` if that was trained with the same.

    Under several machines each of them calls this, with the same arguments and a `run_dir` that all of them see.
    `config.training.deterministic` makes all ops of this process deterministic.

    Args:
        config: the run; its vocabulary sizes may be none.
        run_dir: a new folder, or a run directory.
        overwrite: start anew where a run exists; what was there is removed when the new run begins.
        strategy: as `make_strategy` makes it; by default MirroredStrategy on all GPUs, or on the CPU where there is
            none.

    Raises:
        InputError: wrong data or config; a folder that is not a run; a run with another config; a loss that is not
            finite; no room for a checkpoint; a machine that has gone; another process that trains there. What was there
            before is left as it was.
    """
    strategy = strategy or make_strategy()
    if config.training.deterministic:
        tf.config.experimental.enable_op_determinism()
    path = Path(run_dir).resolve()
    find_run(path)  # refuses what is not a run, with --overwrite too, before anything is written there
    if config.training.bleu_every:
        bleu_metric(config.training.bleu_tokenize)  # likewise
    with sole_writer(path) if is_chief(strategy) else contextlib.nullcontext():
        if is_chief(strategy):
            settle(path, OF_RUN.name)
        found = find_run(path)
        try:
            return _train(config, path, None if overwrite else found, strategy)
        except InputError:
            if is_chief(strategy):
                forget_text(path)
            raise


def _train(config: Config, path: Path, resumed: RunDirectory | None, strategy: tf.distribute.Strategy) -> RunDirectory:
    """Train in a folder that this process alone writes to, or one of several machines."""
    machines = Machines(strategy)
    with naming_lost_machines(strategy):
        start = start_of(config, path, resumed, machines)
    config, replicas = start.config, strategy.num_replicas_in_sync
    batches, validation = start.text.batches(config, replicas)
    keras.utils.set_random_seed(config.training.seed)
    with strategy.scope():
        trainer = make_trainer(config)
        if resumed and resumed.frozen:
            # Those of the base may have changed, where it has been trained further.
            checkpoints.restore(resumed.frozen, frozen_of(trainer.trained))
        elif start.base:
            restore_best(start.base, trainer.trained)
    variables = variables_of(trainer.trained, trainer.optimizer)
    place = restore(resumed, variables, strategy) if resumed else Place()
    with naming_lost_machines(strategy):
        check_same_start(machines, place, start.text.facts, start.tokenizers)
    vary_dropout(trainer.trained, strategy)
    if resumed and (finished := _finished(resumed, config, place)):
        log.info("%s is trained: %s", path, finished)
        if not is_chief(strategy):
            return resumed
        forget_text(path)  # that of a run without its own
        return resumed.replace_config(config)

    run = _write_run(path, resumed, start, trainer) if is_chief(strategy) else None
    with naming_lost_machines(strategy):
        machines.sum(0.0)  # the text is where it stays
    start.find_text(path)
    batches.start_epoch(place.epoch)
    _announce(trainer, batches, replicas)
    work = _Work(start, trainer, batches, validation, place, machines, path)
    saver = _saver(work, run, variables) if run else None
    written = _writing(work, run, saver) if run else []
    callbacks = [*_watching(work, run), *written, *_stopping(work)]
    leaving = on.SaveOnSignal(saver, machines.sum, machines.meet)
    with leaving.catching(), naming_lost_machines(strategy), batches.naming_damage():
        trainer.fit(
            distribute(batches, strategy),
            validation_data=distribute(validation, strategy),
            initial_epoch=place.epoch,
            epochs=2**31,  # EpochOrder stops at max_steps
            callbacks=[*callbacks, leaving],
            shuffle=False,
            verbose=0,
        )
        machines.meet()
    return RunDirectory(path)


def _finished(run: RunDirectory, config: Config, place: Place) -> str | None:
    """Return why a run does not go on, if it does not."""
    settings = config.training
    if place.step >= settings.max_steps:
        return f"it has made {place.step} of {settings.max_steps} updates"
    past = validations(run.history, settings.best_by, place.step)
    if settings.early_stopping and on.EarlyStopping(settings.best_by, settings.early_stopping, past).is_over():
        return f"it stopped early, after {place.step} updates"
    return None


class _Work(NamedTuple):
    """What the callbacks see of a training."""

    start: Start
    trainer: Trainer
    batches: Batches
    validation: Batches
    place: Place
    machines: Machines
    path: Path

    @property
    def max_steps(self) -> int:
        """Updates in all."""
        return self.start.config.training.max_steps


def _watching(work: _Work, run: RunDirectory | None) -> list[keras.callbacks.Callback]:
    """Return what orders the batches, validates and measures; a process without a `run` shows no samples."""
    config, settings = work.start.config, work.start.config.training
    greedy = DecodingConfig(beam_size=1, max_extra_length=config.decoding.max_extra_length)
    translator = Translator(work.trainer.trained, *work.start.tokenizers, greedy)
    text, samples = work.start.text, settings.samples if run else 0
    bleu = (settings.bleu_every, settings.bleu_sentences, settings.bleu_tokenize)
    return [
        on.ValidateAverage(),
        on.EpochOrder(work.batches, work.max_steps, work.place.batch, work.place.window),
        on.StopOnNaN(config.model.target_vocab_size),
        on.Throughput(work.batches),
        on.TranslateValidation(translator, text.held_out, samples, *bleu, work.machines.mean, text.held_out_directions),
    ]


def _saver(work: _Work, run: RunDirectory, variables: dict[str, Any]) -> on.SaveCheckpoints:
    settings = work.start.config.training
    keep = (settings.checkpoint_every, settings.keep_last, settings.keep_best, settings.best_by)
    return on.SaveCheckpoints(run.checkpoints, variables, work.batches, *keep, run=run.id)


def _writing(work: _Work, run: RunDirectory, saver: Any) -> list[keras.callbacks.Callback]:
    """Return what writes to the run directory, and what shows how it goes."""
    # History before the checkpoints: rows after the checkpoint that a run resumes from are dropped.
    history, progress = on.History(run.history, work.place.step), on.Progress(work.batches, work.max_steps)
    callbacks = [history, saver, progress]
    if importlib.util.find_spec("tensorboard"):
        callbacks.append(on.TensorBoard(os.fspath(run.path / "tensorboard"), update_freq=1))
    return callbacks


def _stopping(work: _Work) -> list[keras.callbacks.Callback]:
    """Return what stops training early, if that is asked for."""
    settings = work.start.config.training
    if not settings.early_stopping:
        return []
    past = validations(work.path / "history.csv", settings.best_by, work.place.step)
    return [on.EarlyStopping(settings.best_by, settings.early_stopping, past)]


def _announce(trainer: Trainer, batches: Batches, replicas: int) -> None:
    log.info(
        "%s parameters, %d replica%s, %d pairs, %d steps an epoch of at most %d tokens, %.1f%% padding",
        f"{trainer.trained.count_params():,}",
        replicas,
        "" if replicas == 1 else "s",
        len(batches.pairs),
        batches.length,
        batches.batch_tokens,
        100 * batches.padding,
    )


def make_trainer(config: Config) -> Trainer:
    """Return a compiled trainer of a new model, with the optimizer, schedule and loss that a config asks for."""
    settings = config.training
    float32 = settings.mixed_precision == "float32"
    model = build_model(config, dtype="float32" if float32 else f"mixed_{settings.mixed_precision}")
    if settings.lora_rank:
        model.enable_lora(settings.lora_rank)
    optimizer = make_optimizer(config)
    optimizer.build(model.trainable_variables)
    trainer = Trainer(model, settings.accumulate)
    trainer.compile(
        optimizer,
        loss=SmoothedCrossEntropy(settings.label_smoothing),
        metrics=[TokenLoss(settings.label_smoothing), TokenAccuracy(), Perplexity()],
        jit_compile=False,
    )
    return trainer


def _write_run(path: Path, resumed: RunDirectory | None, start: Start, trainer: Trainer) -> RunDirectory:
    """Write what a run begins with, or the config that one goes on with."""
    if resumed:
        run = resumed.replace_config(start.config, {"data": start.text.facts})
        start.keep_text(path)
        checkpoints.remove_unfinished(run.checkpoints)
        return run
    facts = {"parameters": count_of(trainer.trained), "data": start.text.facts}
    if start.languages:
        facts["languages"] = start.languages
    with contents_replaced(path, OF_RUN.name) as new:
        id = write_run(new, start.config, tokenizer_files(*start.tokenizers), facts)
        if start.config.training.lora_rank:
            checkpoints.save(new / FROZEN, 0, frozen_of(trainer.trained), {"run": id})
        start.keep_text(new)
    return RunDirectory(path)
