"""`data.batch_tokens=auto`: an update in the fewest parts that fit into the memory of the devices."""

import contextlib
import json
import logging
import subprocess
import sys
from pathlib import Path

import numpy as np
import tensorflow as tf

from tf_transformer.config import PRESETS, Config, override
from tf_transformer.data import Batches
from tf_transformer.data.prepared import Prepared
from tf_transformer.data.preparing.workers import child_environment
from tf_transformer.data.token_pairs import TokenPairs
from tf_transformer.errors import InputError
from tf_transformer.progress import waiting_for
from tf_transformer.runs.directory import RunDirectory
from tf_transformer.tokenizers.vocabulary import Vocabulary
from tf_transformer.training.fit import make_trainer
from tf_transformer.training.strategy import distribute, make_strategy, without_auto

log = logging.getLogger(__name__)

TOO_LARGE = 3
"""The exit code of an attempt whose batches do not fit."""
SHORT = 8
"""How many times shorter than the longest pairs the short ones of an attempt are."""


def with_fitting_batches(config: Config, strategy: str = "auto", devices: int | None = None) -> Config:
    """Return the config with its update in the fewest parts that fit: 1, 2, 4, ...

    The tokens of an update stay those of the config, `data.batch_tokens` times `training.accumulate`, and with them the
    gradient. Each attempt makes a few updates in a process of its own, because TensorFlow keeps what memory it has
    taken. Call this before anything else uses the GPU.

    Args:
        config: all settings of a new run; its vocabulary sizes may be None.
        strategy: as `make_strategy` takes it; several machines are refused.
        devices: as `make_strategy` takes it.

    Raises:
        InputError: several machines; a batch of the longest pairs alone does not fit; a wrong device or tokenizer.
        RuntimeError: an attempt failed for another reason than memory.
    """
    if without_auto(strategy) == "multiworker":
        raise InputError("data.batch_tokens=auto is for one machine: give a number to train on several")
    sized = override(config, {"model": _vocabulary_sizes(config)})
    update, parts = config.data.batch_tokens * config.training.accumulate, 1
    while (tokens := update // parts) >= config.data.max_length:
        layer = {"data": {"batch_tokens": tokens}, "training": {"accumulate": parts}}
        with waiting_for(f"trying batches of {tokens:,} tokens"):
            fit = fits(override(sized, layer), strategy, devices)
        if fit:
            log.info("an update of %s tokens fits in %d part%s", f"{update:,}", parts, "" if parts == 1 else "s")
            return override(config, layer)
        log.info("batches of %s tokens do not fit into memory", f"{tokens:,}")
        parts *= 2
    raise InputError(
        f"not even batches of {2 * update // parts} tokens fit into memory: choose a smaller model, or pairs of fewer "
        f"tokens by data.max_length. Received: data.max_length={config.data.max_length}"
    )


def fits(config: Config, strategy: str, devices: int | None) -> bool:
    """Return whether a process that makes updates as a config says has enough memory.

    Raises:
        InputError: the process was given a wrong device.
        RuntimeError: it failed for another reason than memory.
    """
    process = subprocess.run(
        [sys.executable, "-c", "from tf_transformer.training import batch_size; batch_size.attempt()"],
        input=json.dumps({"config": config.as_dict(), "strategy": strategy, "devices": devices}),
        env=child_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    if process.returncode == 2:
        raise InputError(process.stderr.strip().splitlines()[-1])
    # A negative code is a signal: the kernel kills what takes too much memory, and TensorFlow may abort without it.
    if process.returncode > 0 and process.returncode != TOO_LARGE:
        raise RuntimeError(f"an attempt to find data.batch_tokens failed:\n{process.stderr}")
    return process.returncode == 0


def attempt() -> None:
    """Make the updates that standard input asks for; the exit code says whether they fit into memory."""
    with contextlib.suppress(OSError):
        # Where memory runs out, this process is the one to be killed, and no other.
        Path("/proc/self/oom_score_adj").write_text("1000")
    asked = json.load(sys.stdin)
    try:
        _update(override(PRESETS["tiny"], asked["config"]), asked["strategy"], asked["devices"])
    except InputError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    except Exception as error:
        if not lacks_memory(error):
            raise
        sys.exit(TOO_LARGE)


def lacks_memory(error: Exception) -> bool:
    """Return whether what was raised says that memory ran out."""
    if isinstance(error, (MemoryError, tf.errors.ResourceExhaustedError)):
        return True
    # The libraries below TensorFlow fail with other exceptions. Status 1 of oneDNN is dnnl_out_of_memory.
    said = ("out of memory", "failed to allocate", "bad_alloc", "exception:status: 1,")
    return any(words in str(error).lower() for words in said)


def _update(config: Config, strategy_name: str, devices: int | None) -> None:
    """Make an update with the pairs of each length of `hardest`, in an order after which the memory is in pieces."""
    strategy = make_strategy(strategy_name, devices)
    with strategy.scope():
        trainer = make_trainer(config)
    tokens, parts = config.data.batch_tokens, config.training.accumulate
    for length in hardest(tokens, config.data.max_length):
        trainer.fit(distribute(full_update(length, tokens, parts), strategy), shuffle=False, verbose=0)


def full_update(length: int, batch_tokens: int, parts: int) -> Batches:
    """Return a batch of pairs of one length, as many as `parts` parts of so many tokens hold."""
    lengths = np.full((parts * (batch_tokens // length), 2), length)
    return Batches(TokenPairs.of(np.full(lengths.sum(), 4, np.int32), lengths), batch_tokens * parts)


def hardest(batch_tokens: int, longest: int) -> list[int]:
    """Return the lengths of the pairs that take the most memory, the shortest first.

    These are many short pairs, the longest ones, and the length that fills a part of an update best.
    """
    fullest = max(range(2, longest + 1), key=lambda length: (batch_tokens // length * length, length))
    return sorted({max(2, longest // SHORT), fullest, longest})


def _vocabulary_sizes(config: Config) -> dict[str, int]:
    """Return the sizes of the vocabularies, as settings of the model; those wished for where there are none yet."""
    if config.data.prepared is not None:
        source, target = (known.vocab_size for known in Prepared(config.data.prepared).vocabularies)
    elif config.training.init_from:
        source, target = (known.vocab_size for known in RunDirectory(config.training.init_from).vocabularies())
    elif config.tokenizer.file:
        source = target = Vocabulary(Path(config.tokenizer.file).read_bytes(), config.tokenizer.file).vocab_size
    else:
        source = target = config.tokenizer.vocab_size
    return {"input_vocab_size": source, "target_vocab_size": target}
