"""From a config to a trained run directory."""

import importlib.util
import itertools
import logging
import os
import shutil
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

from tf_transformer import checkpoints
from tf_transformer.config import Config
from tf_transformer.data import Batches, Pairs, TokenPairs, encode, read, validation_split
from tf_transformer.errors import InputError
from tf_transformer.run_directory import RunDirectory, build_model, weights
from tf_transformer.settings import override
from tf_transformer.tokenizers import Tokenizer, train_tokenizer
from tf_transformer.training.callbacks import (
    EpochOrder,
    History,
    Progress,
    SaveCheckpoints,
    StopOnNaN,
    Throughput,
)
from tf_transformer.training.loss import Perplexity, SmoothedCrossEntropy, TokenAccuracy, TokenLoss
from tf_transformer.training.schedule import NoamSchedule

MAY_CHANGE = {("training", "max_steps"), ("training", "checkpoint_every"), ("training", "keep_last")}
"""The settings that may differ when a run goes on: they say how long it is and what is kept."""

log = logging.getLogger(__name__)


def train(
    config: Config,
    run_dir: str | Path,
    *,
    overwrite: bool = False,
    strategy: tf.distribute.Strategy | None = None,
) -> RunDirectory:
    """Train what `config` says, or go on with the run in `run_dir` if that was trained with the same.

    Args:
        config: the run; its vocabulary sizes may be none.
        run_dir: a new folder, or a run directory.
        overwrite: start anew where a run exists.
        strategy: MirroredStrategy on all GPUs by default, or on the CPU where there is none.

    Raises:
        InputError: wrong data or config; a folder that is not a run; a run with another config; a loss that is not
            finite. What was there before is left as it was.
    """
    path = Path(run_dir).resolve()
    existing = None
    if path.exists() and not (path.is_dir() and not any(path.iterdir())):
        existing = RunDirectory(path)  # refuses what is not a run, with --overwrite too
    resumed = None if overwrite else existing

    pairs, held_out = (
        read(config.data, config.data.train_split),
        read(config.data, validation_split(config.data)),
    )
    tokenizers = resumed.tokenizers() if resumed else _tokenizers(config, pairs)
    sizes = {"input_vocab_size": tokenizers[0].vocab_size, "target_vocab_size": tokenizers[1].vocab_size}
    config = override(config, {"model": sizes})
    data = {
        "train": {"pairs": len(pairs.sources), "fingerprint": pairs.fingerprint},
        "validation": {"pairs": len(held_out.sources), "fingerprint": held_out.fingerprint},
    }
    if resumed:
        _refuse_differences(resumed, config, data)

    strategy = strategy or tf.distribute.MirroredStrategy()
    replicas = strategy.num_replicas_in_sync
    training_pairs = _encode("train", pairs, tokenizers, config)
    validation_pairs = _encode("validation", held_out, tokenizers, config)
    batches = Batches(training_pairs, config.data.batch_tokens, multiple_of=replicas, seed=config.training.seed)
    validation = Batches(validation_pairs, config.data.batch_tokens, multiple_of=replicas)

    keras.utils.set_random_seed(config.training.seed)
    with strategy.scope():
        model = build_model(config)
        compile_model(model, config)
    variables = _variables(model)
    state = _restore(resumed, variables, strategy) if resumed else None
    state = state or {"step": 0, "epoch": 0, "batch": 0}
    if resumed and state["step"] >= config.training.max_steps:
        log.info("%s is trained: it has made %d of %d updates", path, state["step"], config.training.max_steps)
        return resumed
    if resumed:
        run = resumed.replace_config(config)
        checkpoints.remove_unfinished(run.checkpoints)
    else:
        if path.exists():
            shutil.rmtree(path)
        run = RunDirectory.create(path, config, tokenizers, {"parameters": model.count_params(), "data": data})

    batches.start_epoch(state["epoch"])
    log.info(
        "%s parameters, %d replica%s, %d pairs, %d steps an epoch of at most %d tokens, %.1f%% padding",
        f"{model.count_params():,}",
        replicas,
        "" if replicas == 1 else "s",
        len(training_pairs),
        batches.whole,
        config.data.batch_tokens,
        100 * batches.padding,
    )
    settings = config.training
    callbacks = [
        EpochOrder(batches, settings.max_steps, skip=state["batch"]),
        StopOnNaN(),
        Throughput(batches),
        # Before the checkpoints: rows after the checkpoint that a run resumes from are dropped.
        History(run.history, resumed_step=state["step"]),
        SaveCheckpoints(run.checkpoints, variables, batches, settings.checkpoint_every, settings.keep_last),
        Progress(batches),
    ]
    if importlib.util.find_spec("tensorboard"):
        callbacks.append(keras.callbacks.TensorBoard(os.fspath(run.path / "tensorboard")))
    model.fit(
        batches.dataset(),
        validation_data=validation.dataset().apply(tf.data.experimental.assert_cardinality(validation.whole)),
        initial_epoch=state["epoch"],
        # A bound: EpochOrder stops at max_steps, and an epoch has at least one step.
        epochs=state["epoch"] + settings.max_steps - state["step"],
        callbacks=callbacks,
        shuffle=False,
    )
    return run


def compile_model(model: keras.Model, config: Config) -> None:
    """Compile with the paper's optimizer, schedule and loss (paper 5.3 and 5.4), inside the scope of the strategy."""
    settings = config.training
    schedule = NoamSchedule(config.model.d_model, settings.warmup_steps, settings.learning_rate_factor)
    optimizer = keras.optimizers.Adam(schedule, beta_1=0.9, beta_2=0.98, epsilon=1e-9, name="adam")
    optimizer.build(model.trainable_variables)
    model.compile(
        optimizer,
        loss=SmoothedCrossEntropy(settings.label_smoothing),
        metrics=[TokenLoss(settings.label_smoothing), TokenAccuracy(), Perplexity()],
        jit_compile=False,
    )


def _tokenizers(config: Config, pairs: Pairs) -> tuple[Tokenizer, Tokenizer]:
    settings = config.tokenizer
    if settings.file is not None:
        shared = Tokenizer.load(settings.file)
        return shared, shared
    if not any(source.strip() and target.strip() for source, target in zip(*pairs, strict=True)):
        raise InputError(f"no pair to train on in {config.data.corpus}, split {config.data.train_split}")
    if settings.shared:
        shared = Tokenizer(train_tokenizer(itertools.chain(*pairs), settings))
        return shared, shared
    return Tokenizer(train_tokenizer(pairs.sources, settings)), Tokenizer(train_tokenizer(pairs.targets, settings))


def _encode(name: str, pairs: Pairs, tokenizers: tuple[Tokenizer, Tokenizer], config: Config) -> TokenPairs:
    encoded = encode(pairs, *tokenizers, max_length=config.data.max_length)
    if encoded.dropped_empty or encoded.dropped_long:
        log.info(
            "%s: dropped %d pairs with an empty side and %d longer than %d tokens, of %d",
            name,
            encoded.dropped_empty,
            encoded.dropped_long,
            config.data.max_length,
            len(pairs.sources),
        )
    if not len(encoded):
        raise InputError(
            f"no pair is left for {name}. Received: {len(pairs.sources)} pairs, {encoded.dropped_empty} with an empty "
            f"side, {encoded.dropped_long} longer than data.max_length={config.data.max_length} tokens"
        )
    return encoded


def _refuse_differences(run: RunDirectory, config: Config, data: dict[str, Any]) -> None:
    old, new = run.config.as_dict(), config.as_dict()
    differences = [
        f"{section}.{key} was {old[section][key]!r}, is {new[section][key]!r}"
        for section in old
        for key in old[section]
        if old[section][key] != new[section][key] and (section, key) not in MAY_CHANGE
    ]
    differences += [
        f"the text of {split} has changed" for split in data if data[split] != run.description["data"][split]
    ]
    if differences:
        raise InputError(
            f"{run.path} was started with other settings: {'; '.join(differences)}. Give the same ones to go on, "
            "another --run-dir, or --overwrite to start anew"
        )


def _variables(model: keras.Model) -> dict[str, Any]:
    """Return all that training changes: weights, optimizer, and the states of the dropout generators."""
    by_name = weights(model)
    names = {id(variable) for variable in by_name.values()}
    # Keras numbers the generators of a process, so their paths depend on what else was built there.
    seeds = [variable for variable in model.variables if id(variable) not in names and "seed" in variable.path]
    optimizer = {variable.path: variable for variable in model.optimizer.variables}
    return by_name | optimizer | {f"seed/{i}": seed for i, seed in enumerate(seeds)}


def _restore(run: RunDirectory, variables: dict[str, Any], strategy: tf.distribute.Strategy) -> dict[str, Any] | None:
    """Restore the last checkpoint that is whole; the damaged ones after it are named and set aside."""
    for checkpoint in reversed(checkpoints.all_of(run.checkpoints)):
        try:
            state = checkpoints.state_of(checkpoint)
            with strategy.scope():
                checkpoints.restore(checkpoint, variables)
        except checkpoints.CorruptCheckpointError as error:
            log.warning("%s; going back to the one before", error)
            checkpoints.set_aside(checkpoint)
            continue
        log.info("going on from %s", checkpoint)
        return state
    return None
