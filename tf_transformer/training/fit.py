"""From a config to a trained run directory."""

import contextlib
import dataclasses
import importlib.util
import logging
import os
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

from tf_transformer.config import Config, DecodingConfig, override
from tf_transformer.data import Batches, Pairs, cut_by_chance
from tf_transformer.data.texts import Texts, encode_texts, make_tokenizers, read_texts, with_absolute_paths
from tf_transformer.errors import InputError
from tf_transformer.evaluation import bleu_metric
from tf_transformer.files import contents_replaced, settle
from tf_transformer.runs import checkpoints
from tf_transformer.runs.descriptions import OF_RUN
from tf_transformer.runs.directory import RunDirectory, find_run, write_run
from tf_transformer.runs.lock import sole_writer
from tf_transformer.runs.weights import build_model, restore_best, tokenizer_files, tokenizers_of
from tf_transformer.tokenizers import Tokenizer
from tf_transformer.training import callbacks as on
from tf_transformer.training.loss import Perplexity, SmoothedCrossEntropy, TokenAccuracy, TokenLoss
from tf_transformer.training.optimizer import make_optimizer
from tf_transformer.training.resume import Place, check_same_start, refuse_differences, restore, variables_of
from tf_transformer.training.strategy import (
    Machines,
    distribute,
    is_chief,
    make_strategy,
    naming_lost_machines,
    workers,
)
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
    if config.data.bpe_dropout and workers(strategy):
        raise InputError("data.bpe_dropout needs one machine: each of several would cut a batch in its own way")
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
        return _train(config, path, None if overwrite else found, strategy)


def _train(config: Config, path: Path, resumed: RunDirectory | None, strategy: tf.distribute.Strategy) -> RunDirectory:
    """Train in a folder that this process alone writes to, or one of several machines."""
    config = _with_absolute_paths(config)
    if resumed:  # where languages are names alone, those that were given once stay
        old, new = resumed.config.data, config.data
        config = override(config, {"data": {"source": new.source or old.source, "target": new.target or old.target}})
    if resumed and config.training.init_from is None and (base := resumed.config.training.init_from):
        config = override(config, {"training": {"init_from": base}})
    start = None
    if config.training.init_from and not (resumed and resumed.known()):
        start = RunDirectory(config.training.init_from)

    texts = read_texts(config.data)
    source = resumed or start
    tokenizers = tokenizers_of(source) if source else make_tokenizers(config, texts.training)
    sizes = {"input_vocab_size": tokenizers[0].vocab_size, "target_vocab_size": tokenizers[1].vocab_size}
    config = override(config, {"model": sizes})
    if resumed:
        refuse_differences(resumed, config, texts.description())
    if start:
        _refuse_other_model(start, config, tokenizers)
    batches, validation = _batches(config, texts, tokenizers, strategy.num_replicas_in_sync)

    keras.utils.set_random_seed(config.training.seed)
    with strategy.scope():
        trainer = make_trainer(config)
        if start:
            restore_best(start, trainer.trained)
    variables = variables_of(trainer.trained, trainer.optimizer)
    place = restore(resumed, variables, strategy) if resumed else Place()
    machines = Machines(strategy)
    with naming_lost_machines(strategy):
        check_same_start(machines, place, texts.description(), tokenizers)
    vary_dropout(trainer.trained, strategy)
    if resumed and (finished := _finished(resumed, config, place)):
        log.info("%s is trained: %s", path, finished)
        return resumed.replace_config(config) if is_chief(strategy) else resumed

    run = None
    if is_chief(strategy):
        run = _write_run(path, resumed, config, tokenizers, trainer, texts)
    batches.start_epoch(place.epoch)
    _announce(trainer, batches, strategy.num_replicas_in_sync)
    greedy = DecodingConfig(beam_size=1, max_extra_length=config.decoding.max_extra_length)
    translator = Translator(trainer.trained, *tokenizers, greedy)
    held_out = zip(*texts.validation, validation.pairs.keep, strict=True)
    kept = [(source, target) for source, target, is_kept in held_out if is_kept]
    pairs = Pairs([source for source, _ in kept], [target for _, target in kept])
    callbacks = _callbacks(config, run, batches, variables, translator, pairs, place, path, machines)
    held_out_batches = validation.dataset().apply(tf.data.experimental.assert_cardinality(validation.whole))
    with callbacks[-1].catching(), naming_lost_machines(strategy):
        trainer.fit(
            distribute(batches.dataset(), strategy),
            validation_data=distribute(held_out_batches, strategy),
            initial_epoch=place.epoch,
            epochs=2**31,  # EpochOrder stops at max_steps
            callbacks=callbacks,
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
    past = on.validations(run.history, settings.best_by, place.step)
    if settings.early_stopping and on.EarlyStopping(settings.best_by, settings.early_stopping, past).is_over():
        return f"it stopped early, after {place.step} updates"
    return None


def _callbacks(
    config: Config,
    run: RunDirectory | None,
    batches: Batches,
    variables: dict[str, Any],
    translator: Translator,
    held_out: Pairs,
    place: Place,
    path: Path,
    machines: Machines,
) -> list[Any]:
    """Return the callbacks in their order; a process without a `run` writes nothing. The last one catches signals."""
    settings = config.training
    samples = settings.samples if run else 0
    bleu = (settings.bleu_every, settings.bleu_sentences, settings.bleu_tokenize)
    saver = None
    callbacks = [
        on.ValidateAverage(),
        on.EpochOrder(batches, settings.max_steps, skip=place.batch),
        on.StopOnNaN(config.model.target_vocab_size),
        on.Throughput(batches),
        on.TranslateValidation(translator, held_out, samples, *bleu, machines.mean),
    ]
    if run:
        keep = (settings.checkpoint_every, settings.keep_last, settings.keep_best, settings.best_by)
        saver = on.SaveCheckpoints(run.checkpoints, variables, batches, *keep, run=run.id)
        # Before the checkpoints: rows after the checkpoint that a run resumes from are dropped.
        callbacks += [on.History(run.history, place.step), saver, on.Progress(batches, settings.max_steps)]
        if importlib.util.find_spec("tensorboard"):
            callbacks.append(on.TensorBoard(os.fspath(run.path / "tensorboard"), update_freq=1))
    if settings.early_stopping:
        past = on.validations(path / "history.csv", settings.best_by, place.step)
        callbacks.append(on.EarlyStopping(settings.best_by, settings.early_stopping, past))
    return [*callbacks, on.SaveOnSignal(saver, machines.sum, machines.meet)]


def _announce(trainer: Trainer, batches: Batches, replicas: int) -> None:
    log.info(
        "%s parameters, %d replica%s, %d pairs, %d steps an epoch of at most %d tokens, %.1f%% padding",
        f"{trainer.trained.count_params():,}",
        replicas,
        "" if replicas == 1 else "s",
        len(batches.pairs),
        batches.whole,
        batches.batch_tokens,
        100 * batches.padding,
    )


def make_trainer(config: Config) -> Trainer:
    """Return a compiled trainer of a new model, with the optimizer, schedule and loss that a config asks for."""
    settings = config.training
    float32 = settings.mixed_precision == "float32"
    model = build_model(config, dtype="float32" if float32 else f"mixed_{settings.mixed_precision}")
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


def _with_absolute_paths(config: Config) -> Config:
    """Return the config with paths that name the same from every folder."""
    files = {("tokenizer", "file"): config.tokenizer.file, ("training", "init_from"): config.training.init_from}
    layers = [{section: {key: os.path.abspath(path)}} for (section, key), path in files.items() if path is not None]
    return dataclasses.replace(override(config, *layers), data=with_absolute_paths(config.data))


def _batches(config: Config, texts: Texts, tokenizers: Any, replicas: int) -> tuple[Batches, Batches]:
    """Return the batches of training and validation."""
    data, settings = config.data, config.training
    pairs = encode_texts("train", texts.training, tokenizers, data.max_length, data.max_length_ratio)
    held_out = encode_texts("validation", texts.validation, tokenizers, data.max_length, None)
    repeats = None
    if data.weights:
        repeats = tf.gather(tf.constant(data.weights), texts.corpora[pairs.keep]).numpy()
    draw = None
    if data.bpe_dropout:
        draw = cut_by_chance(texts.training, pairs, *tokenizers, dropout=data.bpe_dropout, max_length=data.max_length)
    training = Batches(
        pairs,
        data.batch_tokens * settings.accumulate,
        multiple_of=replicas * settings.accumulate,
        seed=settings.seed,
        repeats=repeats,
        draw=draw,
    )
    return training, Batches(held_out, data.batch_tokens, multiple_of=replicas)


def _refuse_other_model(start: RunDirectory, config: Config, tokenizers: tuple[Tokenizer, Tokenizer]) -> None:
    """Raise InputError where a run to start from has a model or tokenizer that does not fit."""
    old, new = start.config.as_dict()["model"], config.as_dict()["model"]
    rates = ("dropout_rate", "attention_dropout_rate")
    differences = [
        f"model.{k} is {old[k]!r} there, {new[k]!r} here" for k in old if old[k] != new[k] and k not in rates
    ]
    file = config.tokenizer.file
    wanted = [Path(file).read_bytes()] * 2 if file else [tokenizer.model for tokenizer in tokenizers]
    if [path.read_bytes() for path in start.tokenizer_paths()] != wanted:
        differences.append(f"its tokenizer is not {file or 'the one that this run began with'}")
    if differences:
        raise InputError(f"--init-from {start.path} does not fit: {'; '.join(differences)}")


def _write_run(
    path: Path, resumed: RunDirectory | None, config: Config, tokenizers: Any, trainer: Trainer, texts: Texts
) -> RunDirectory:
    if resumed:
        run = resumed.replace_config(config)
        checkpoints.remove_unfinished(run.checkpoints)
        return run
    facts = {"parameters": trainer.trained.count_params(), "data": texts.description()}
    with contents_replaced(path, OF_RUN.name) as new:
        write_run(new, config, tokenizer_files(*tokenizers), facts)
    return RunDirectory(path)
