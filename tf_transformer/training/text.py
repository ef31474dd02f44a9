"""The text that a run trains on: prepared into the run directory, or a prepared corpus elsewhere."""

import logging
import shutil
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np

from tf_transformer.config import Config
from tf_transformer.data import Batches, Dropout, Pairs, TokenPairs, encode
from tf_transformer.data.corpora import Direction, text_files
from tf_transformer.data.prepared import Prepared
from tf_transformer.data.prepared.shards import Shards
from tf_transformer.data.preparing import Plan, fingerprints_of, plan_of, prepare
from tf_transformer.data.preparing.prepare import work_folder
from tf_transformer.errors import InputError
from tf_transformer.runs.directory import PREPARED, RunDirectory
from tf_transformer.runs.runtimes import cores
from tf_transformer.storage.atomic import PREPARING
from tf_transformer.training.resume import refuse_other_text

log = logging.getLogger(__name__)


class Text(NamedTuple):
    """The text that a run is trained and validated on."""

    prepared: Prepared
    training: Shards
    validation: TokenPairs
    held_out: Pairs
    """the text of the validation pairs"""
    held_out_directions: list[Direction] | None
    """the direction of each of them, where the model has several languages"""
    facts: dict[str, Any]
    """what identifies the text, and where it was; fit for JSON"""

    def batches(self, config: Config) -> tuple[Batches, Batches]:
        """Return the batches of training and validation."""
        data, settings = config.data, config.training
        dropout = None
        if data.bpe_dropout:
            dropout = Dropout(self.prepared.vocabularies, data.bpe_dropout, data.max_length)
        training = Batches(
            self.training,
            data.batch_tokens * settings.accumulate,
            seed=settings.seed,
            weights=data.weights,
            dropout=dropout,
        )
        return training, Batches(self.validation, data.batch_tokens)


def prepare_text(config: Config, run_dir: Path, resumed: RunDirectory | None, base: RunDirectory | None) -> None:
    """Prepare the text for a run that has none yet, so that `open_text` finds it.

    Raises:
        InputError: as `prepare`.
    """
    if config.data.prepared is not None or (resumed and resumed.prepared.exists()):
        return
    try:
        plan, workers = _plan(config, resumed or base), cores()
        prepare(plan, run_dir / PREPARING, workers=workers, overwrite=True)  # of a start that was stopped
    except InputError:
        forget_text(run_dir)
        raise


def forget_text(run_dir: Path) -> None:
    """Remove the text that was prepared for a run that does not begin."""
    for folder in (run_dir / PREPARING, work_folder(run_dir / PREPARING)):
        shutil.rmtree(folder, ignore_errors=True)  # the error that led here is more informative


def open_text(config: Config, run_dir: Path, resumed: RunDirectory | None, base: RunDirectory | None) -> Text:
    """Open the text of a run.

    Raises:
        InputError: a prepared corpus that does not fit the settings or the tokenizers; text that has changed since the
            run began.
    """
    source = resumed or base
    if config.data.prepared is not None:
        prepared = Prepared(config.data.prepared)
        prepared.refuse_differences(config.data, config.tokenizer)
    else:
        own = resumed.prepared if resumed and resumed.prepared.exists() else run_dir / PREPARING
        prepared = Prepared(own)
    models = [vocabulary.model for vocabulary in prepared.vocabularies]
    if source and [path.read_bytes() for path in source.tokenizer_paths()] != models:
        raise InputError(
            f"{prepared.path} was prepared with other tokenizers than those of {source.path}: prepare it again "
            f"with --init-from {source.path}"
        )
    if (file := config.tokenizer.file) and [Path(file).read_bytes()] * 2 != models:
        raise InputError(f"{file} is another tokenizer than that of the text in {prepared.path}: leave --tokenizer out")
    facts: dict[str, Any] = dict(prepared.fingerprints)
    directions = prepared.directions
    if config.data.prepared is None:
        plan = _plan(config, source)
        directions = list(plan.directions)
        facts["files"] = text_files(plan.data)
        if resumed and prepared.path.name == PREPARED:
            before = resumed.description["data"]["files"]
            if _is_unchanged(before, facts["files"]):
                facts["files"] = before
            else:
                refuse_other_text(resumed, facts | fingerprints_of(plan))
    if prepared.directions:
        facts["train"]["directions"] = ["-".join(direction) for direction in directions]
    if resumed:
        refuse_other_text(resumed, facts)
    text, numbers = prepared.validation()
    language_tokens = prepared.language_tokens()
    rows = None if language_tokens is None else language_tokens[numbers]
    held_out = encode(text, *prepared.vocabularies, config.data.max_length, None, rows)
    _report(held_out, config.data.max_length)
    if config.data.extra_corpora and config.data.validation_corpus is None:
        log.info(
            "validation: %d pairs of the first corpus%s; --validation-data names others",
            len(held_out),
            " of each direction" if len(set(prepared.directions)) > 1 else f", {config.data.corpus}",
        )
    kept = np.flatnonzero(cast("np.ndarray", held_out.keep))
    of_pairs = [prepared.directions[i] for i in numbers[kept]] if prepared.directions else None
    pairs = Pairs(*([side[i] for i in kept] for side in text))
    return Text(prepared, prepared.pairs(), held_out, pairs, of_pairs, facts)


def _is_unchanged(before: list[Any], now: list[Any]) -> bool:
    """Return whether text is unchanged, by `text_files`; a file that no longer exists counts as unchanged."""
    return now[0] == before[0] and all(file in before for file in now)


def _plan(config: Config, source: RunDirectory | None) -> Plan:
    vocabularies = source.vocabularies() if source else None
    return plan_of(config, vocabularies, str(source.path) if source else "")


def _report(held_out: TokenPairs, max_length: int) -> None:
    """Log how many validation pairs are left out; raise InputError if none is left."""
    words = {"empty": "with an empty side", "long": f"longer than data.max_length={max_length} tokens"}
    dropped = " and ".join(f"{count} {words[why]}" for why, count in held_out.dropped.items() if count)
    given = len(held_out) + sum(held_out.dropped.values())
    if dropped:
        log.info("validation: dropped pairs: %s, of %d", dropped, given)
    if not len(held_out):
        raise InputError(f"no pair is left for validation. Received: {given} pairs{f', {dropped}' if dropped else ''}")
