"""Turning the text of corpora into a prepared corpus."""

import contextlib
import logging
from pathlib import Path

from tf_transformer.data.corpora import is_prepared
from tf_transformer.data.prepared import Prepared
from tf_transformer.data.preparing.plan import Plan
from tf_transformer.data.preparing.preparation import Preparation
from tf_transformer.data.preparing.result import NoPairError, difference
from tf_transformer.data.preparing.workers import Workers
from tf_transformer.errors import InputError
from tf_transformer.storage.lock import sole_writer

log = logging.getLogger(__name__)


def work_folder(output: Path) -> Path:
    """Return the folder, beside the result, in which a preparation works and which it leaves if it is stopped."""
    return output.with_name(f".{output.name.removeprefix('.')}.preparing")


def prepare(
    plan: Plan, output: Path, *, workers: int = 1, part: tuple[int, int] = (1, 1), overwrite: bool = False
) -> Prepared | None:
    """Prepare the text that a plan names, or continue a stopped preparation of the same plan.

    If `output` has been prepared from the same text with the same settings, nothing is done.

    Args:
        plan: what to prepare.
        output: the folder, which appears when everything is done.
        workers: the number of processes.
        part: the number of this machine, from 1, and the number of machines, which must all see the same `output`.
        overwrite: whether to replace a corpus in `output` that was prepared otherwise, once the new one is done.

    Returns:
        The prepared corpus, or None if other parts are not done yet.

    Raises:
        InputError: the text cannot be read, or no pair is left; `output` exists and is something else, or was prepared
            otherwise and is not to be overwritten; another part was begun with other settings.
    """
    if overwrite and part[1] > 1:
        raise InputError(f"one of several parts cannot overwrite what all of them write: remove {output} first")
    if output.exists() and not is_prepared(output):
        raise InputError(f"{output} exists and is no prepared corpus: remove it, or give another folder")
    work = work_folder(output)
    alone = sole_writer(work) if part[1] == 1 else contextlib.nullcontext()
    with alone, Workers(workers) as pool:
        preparation = Preparation(plan, output, work, pool, part)
        if part[1] == 1:
            preparation.settle()
        try:
            if output.exists() and (why := difference(Prepared(output), plan, preparation.spool)) is None:
                log.info("%s is already prepared", output)
                preparation.remove_if_empty()
                return Prepared(output)
            if output.exists() and not overwrite:
                advice = "give --overwrite to prepare it anew" if part[1] == 1 else "remove it to prepare it anew"
                raise InputError(f"{output} {why}: {advice}, or give another folder")
            return preparation.run()
        except NoPairError:
            preparation.remove()
            raise
        except InputError:
            preparation.remove_if_empty()
            raise
