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
from tf_transformer.data.batches import Place
from tf_transformer.data.preparing.plan import sources_of
from tf_transformer.errors import InputError
from tf_transformer.evaluation import bleu_metric
from tf_transformer.runs import checkpoints
from tf_transformer.runs.descriptions import OF_RUN
from tf_transformer.runs.directory import FROZEN, HISTORY, RunDirectory, find_run, write_run
from tf_transformer.runs.history import validations
from tf_transformer.runs.weights import build_model, count_of, frozen_of, restore_best, tokenizer_files
from tf_transformer.storage.atomic import REPLACED, contents_replaced, refuse_inside, settle
from tf_transformer.storage.lock import sole_writer
from tf_transformer.training import callbacks as on
from tf_transformer.training.loss import Perplexity, SmoothedCrossEntropy, TokenAccuracy, TokenLoss
from tf_transformer.training.optimizer import make_optimizer, schedule_in
from tf_transformer.training.resume import check_same_start, restore, variables_of
from tf_transformer.training.start import NEW_TOKENS, Start, start_of
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
    """Train as `config` says, or continue the run in `run_dir` if it has the same config.

    With several machines, each of them calls this with the same arguments and a `run_dir` that they share.
    `config.training.deterministic` makes all ops of this process deterministic.

    Args:
        config: all settings of the run; its vocabulary sizes may be None.
        run_dir: a new folder, or a run directory.
        overwrite: start a new run even if one exists. The old one is removed when the new one begins. Nothing that the
            new one is made from may lie inside it.
        strategy: as `make_strategy` returns it; by default MirroredStrategy on all GPUs, or on the CPU if there are
            none.

    Raises:
        InputError: wrong data or config; a folder that is not a run; a run with another config; a loss that is not
            finite; no room for a checkpoint; a lost machine; another process that trains in the same folder. The
            earlier content of the folder is left as it was.
    """
    strategy = strategy or make_strategy()
    if config.training.deterministic:
        tf.config.experimental.enable_op_determinism()
    path = Path(run_dir).resolve()
    find_run(path)  # refuses a folder that is not a run, even with --overwrite, before anything is written
    if overwrite:
        refuse_inside(path, sources_of(config), REPLACED)
    if config.training.bleu_every:
        bleu_metric(
            config.training.bleu_tokenize, config.data.target
        )  # refuses an unavailable tokenizer, likewise early
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
    """Train in a folder to which only one process writes: this one, or the chief of several machines."""
    machines = Machines(strategy)
    with naming_lost_machines(strategy):
        start = start_of(config, path, resumed, machines)
    config, replicas = start.config, strategy.num_replicas_in_sync
    batches, validation = start.text.batches(config)
    keras.utils.set_random_seed(config.training.seed)
    with strategy.scope():
        trainer = make_trainer(config, start.new_tokens)
        if resumed and resumed.frozen:
            # The weights of the base may have changed, if it has been trained further.
            checkpoints.restore(resumed.frozen, frozen_of(trainer.model))
        elif start.base:
            restore_best(start.base, trainer.model)
    variables = variables_of(trainer.model, trainer.optimizer)
    step, place, sums = restore(resumed, variables, strategy) if resumed else (0, Place(), [])
    with naming_lost_machines(strategy):
        check_same_start(machines, step, place, start.text.facts, start.tokenizers)
    vary_dropout(trainer.model, strategy)
    if resumed and (finished := _finished(resumed, config, step)):
        log.info("%s is trained: %s", path, finished)
        if not is_chief(strategy):
            return resumed
        forget_text(path)  # prepared for a run that has no text of its own
        return resumed.replace_config(config)

    run = _write_run(path, resumed, start, trainer) if is_chief(strategy) else None
    with naming_lost_machines(strategy):
        machines.all_reduce_sum(0.0)  # waits until the chief has moved the text to its final place
    start.find_text(path)
    batches.start_epoch(place.epoch)
    _announce(trainer, batches, replicas)
    work = _Work(start, trainer, batches, validation, step, place, machines, path)
    saver = _saver(work, run, variables) if run else None
    written = _writing(work, run, saver) if run else []
    callbacks = [on.GoOnMeasuring(sums), *_watching(work, run), *written, *_stopping(work)]
    leaving = on.SaveOnSignal(saver, machines.all_reduce_sum, machines.barrier)
    with leaving.catching(), naming_lost_machines(strategy), batches.naming_damage():
        trainer.fit(
            distribute(batches, strategy),
            validation_data=distribute(validation, strategy),
            initial_epoch=_validations_before(config, path, step, place),
            epochs=2**31,  # EpochOrder stops at max_steps
            callbacks=[*callbacks, leaving],
            shuffle=False,
            verbose=0,
        )
        machines.barrier()
    return RunDirectory(path)


def _validations_before(config: Config, path: Path, step: int, place: Place) -> int:
    """Return the number of the epoch that Keras begins with: how many validations have been."""
    if not config.training.validate_every:
        return place.epoch
    return len(validations(path / HISTORY, "loss", step))


def _finished(run: RunDirectory, config: Config, step: int) -> str | None:
    """Return why a run is finished, or None if it is not."""
    settings = config.training
    if step >= settings.max_steps:
        return f"it has made {step} of {settings.max_steps} updates"
    past = validations(run.history, settings.best_by, step)
    if settings.early_stopping and on.EarlyStopping(settings.best_by, settings.early_stopping, past).is_over():
        return f"it stopped early, after {step} updates"
    return None


class _Work(NamedTuple):
    """The parts of a training that the callbacks need."""

    start: Start
    trainer: Trainer
    batches: Batches
    validation: Batches
    step: int
    place: Place
    machines: Machines
    path: Path

    @property
    def max_steps(self) -> int:
        """The number of updates in all."""
        return self.start.config.training.max_steps


def _watching(work: _Work, run: RunDirectory | None) -> list[keras.callbacks.Callback]:
    """Return the callbacks that order batches, validate and measure; a process without a `run` prints no samples."""
    config, settings = work.start.config, work.start.config.training
    greedy = DecodingConfig(beam_size=1, max_extra_length=config.decoding.max_extra_length)
    translator = Translator(work.trainer.model, *work.start.tokenizers, greedy)
    text = work.start.text
    languages: set[str | None] = {target for _, target in text.held_out_directions or ()}
    languages = languages or {config.data.target}
    return [
        on.ValidateAverage(),
        on.EpochOrder(
            work.batches,
            work.max_steps,
            skip=work.place.batch,
            window=work.place.window,
            validate_every=settings.validate_every,
            epoch=work.place.epoch,
        ),
        on.StopOnNaN(config.model.target_vocab_size),
        on.Throughput(work.batches),
        on.TranslateValidation(
            translator,
            text.held_out,
            samples=settings.samples if run else 0,
            bleu_every=settings.bleu_every,
            bleu_sentences=settings.bleu_sentences,
            tokenize=settings.bleu_tokenize,
            mean=work.machines.mean,
            directions=text.held_out_directions,
            language=languages.pop() if len(languages) == 1 else None,  # of several, the tokenizer of most
        ),
    ]


def _saver(work: _Work, run: RunDirectory, variables: dict[str, Any]) -> on.SaveCheckpoints:
    settings = work.start.config.training
    keep = (settings.checkpoint_every, settings.keep_last, settings.keep_best, settings.best_by)
    return on.SaveCheckpoints(run.checkpoints, variables, work.batches, *keep, run=run.id)


def _writing(work: _Work, run: RunDirectory, saver: Any) -> list[keras.callbacks.Callback]:
    """Return the callbacks that write to the run directory and show the progress."""
    # History comes before the checkpoints, so that every checkpoint has its row. A resumed run drops later rows.
    history = on.History(run.history, work.step, work.batches)
    progress = on.ProgressLogger(work.batches, work.max_steps, work.start.config.training.validate_every)
    callbacks = [history, saver, progress]
    if importlib.util.find_spec("tensorboard"):
        callbacks.append(on.TensorBoard(os.fspath(run.tensorboard), update_freq=1))
    return callbacks


def _stopping(work: _Work) -> list[keras.callbacks.Callback]:
    """Return the callbacks that lower the learning rate or stop early, if the config asks for them."""
    settings = work.start.config.training
    past = validations(work.path / HISTORY, settings.best_by, work.step)
    callbacks: list[keras.callbacks.Callback] = []
    if settings.schedule == "plateau":
        schedule = schedule_in(work.trainer.optimizer)
        plateau = (settings.plateau_patience, settings.plateau_factor)
        callbacks.append(on.LowerOnPlateau(schedule, settings.best_by, *plateau, past))
    if settings.early_stopping:
        callbacks.append(on.EarlyStopping(settings.best_by, settings.early_stopping, past))
    return callbacks


def _announce(trainer: Trainer, batches: Batches, replicas: int) -> None:
    log.info(
        "%s parameters, %d replica%s, %d pairs, %d steps an epoch of at most %d tokens, %.1f%% padding%s",
        f"{trainer.model.count_params():,}",
        replicas,
        "" if replicas == 1 else "s",
        len(batches.pairs),
        batches.length,
        batches.batch_tokens,
        100 * batches.padding,
        "" if batches.windows == 1 else f" in one of {batches.windows} parts of the text",
    )
    log.info("building the graph of the training step")


def make_trainer(config: Config, new_tokens: tuple[int, int] = (0, 0)) -> Trainer:
    """Return a compiled trainer of a new model, with the optimizer, schedule and loss that a config asks for.

    Args:
        config: the config.
        new_tokens: the tokens whose embeddings low-rank adaptation learns besides, as `enable_lora` takes them.
    """
    settings = config.training
    float32 = settings.mixed_precision == "float32"
    model = build_model(config, dtype="float32" if float32 else f"mixed_{settings.mixed_precision}")
    if settings.lora_rank:
        model.enable_lora(settings.lora_rank, new_tokens=new_tokens)
    optimizer = make_optimizer(config)
    optimizer.build(model.trainable_variables)
    trainer = Trainer(model, config.data.batch_tokens if settings.accumulate > 1 else None)
    trainer.compile(
        optimizer,
        loss=SmoothedCrossEntropy(settings.label_smoothing),
        metrics=[TokenLoss(settings.label_smoothing), TokenAccuracy(), Perplexity()],
        jit_compile=False,
    )
    return trainer


def _write_run(path: Path, resumed: RunDirectory | None, start: Start, trainer: Trainer) -> RunDirectory:
    """Write the first files of a new run, or the new config of a resumed one."""
    if resumed:
        run = resumed.replace_config(start.config, {"data": start.text.facts})
        start.keep_text(path)
        checkpoints.remove_unfinished(run.checkpoints)
        return run
    facts = {"parameters": count_of(trainer.model), "data": start.text.facts}
    if start.languages:
        facts["languages"] = start.languages
    if any(start.new_tokens):
        facts[NEW_TOKENS] = start.new_tokens
    with contents_replaced(path, OF_RUN.name) as new:
        id = write_run(new, start.config, tokenizer_files(*start.tokenizers), facts)
        if start.config.training.lora_rank:
            checkpoints.save(new / FROZEN, 0, frozen_of(trainer.model), {"run": id})
        start.keep_text(new)
    return RunDirectory(path)
