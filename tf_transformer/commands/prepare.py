"""`tf-transformer prepare`."""

import argparse
import logging
import re
from pathlib import Path
from typing import TYPE_CHECKING

from tf_transformer.commands.common.checks import check_place
from tf_transformer.commands.common.options import DATA_HELP, positive, settings_given
from tf_transformer.commands.common.quiet_tensorflow import import_tensorflow
from tf_transformer.commands.common.resolve import add_text, resolve
from tf_transformer.config import Config
from tf_transformer.data.corpora import STANDARD_INPUT, check_training_splits, open_corpus, training_data
from tf_transformer.errors import InputError
from tf_transformer.runs.descriptions import LANGUAGES
from tf_transformer.runs.runtimes import cores
from tf_transformer.storage.atomic import REPLACED, refuse_inside

if TYPE_CHECKING:
    from tf_transformer.data.preparing import Plan

log = logging.getLogger(__name__)

SUMMARY = "Filter and tokenise a large corpus once, on all cores, so that training on it starts in seconds."
EXAMPLE = "tf-transformer prepare --data toy --vocab-size 1000 --output prepared/toy"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    parser.epilog = "settings for --set: those of data and tokenizer that train --help shows\n"
    parser.add_argument("--output", required=True, metavar="DIR", help="where the prepared corpus is written")
    add_text(parser, ", or - for a .tsv from standard input")
    parser.add_argument(
        "--workers", type=positive, metavar="N", help="number of processes (default: one for each core)"
    )
    parser.add_argument(
        "--part",
        metavar="K/N",
        help="prepare part K of N; give the same command with each K from 1 to N, on machines that share --output",
    )
    parser.add_argument(
        "--overwrite",
        action="store_true",
        help="replace a corpus in --output that was prepared from other text or with other settings (default: refuse)",
    )


def run(options: argparse.Namespace) -> None:
    """Prepare a corpus."""
    resolved = resolve(options).config
    _warn_of_what_training_takes(options)
    part = _part(options.part)
    _check(resolved, options)
    if any(open_corpus(one).needs_tensorflow for one in training_data(resolved.data) if one.corpus != STANDARD_INPUT):
        import_tensorflow()  # without its greetings: TensorFlow Datasets imports it as well
    from tf_transformer.data.preparing import prepare

    workers = options.workers or cores()
    prepared = prepare(planned(resolved), Path(options.output), workers=workers, part=part, overwrite=options.overwrite)
    if prepared is not None:
        print(f"prepared: {options.output}, {sum(corpus['pairs'] for corpus in prepared.corpora):,} pairs")


def _warn_of_what_training_takes(options: argparse.Namespace) -> None:
    """Warn of `--set` with settings that only training takes."""
    for option, layer in settings_given(options).items():
        taken = all(
            (section in ("data", "tokenizer") and key not in ("weights", "batch_tokens"))
            or key in ("init_from", *LANGUAGES)
            for section, settings in layer.items()
            for key in settings
        )
        if option.startswith("--set ") and not taken:
            log.warning("%s has no effect on a prepared corpus: give it to train", option)


def planned(resolved: Config) -> "Plan":
    """Return what is to be prepared."""
    from tf_transformer.data.preparing import plan_of
    from tf_transformer.runs.directory import RunDirectory

    if not resolved.training.init_from:
        return plan_of(resolved)
    base = RunDirectory(resolved.training.init_from)
    return plan_of(resolved, base.vocabularies(), str(base.path))


def _part(text: str | None) -> tuple[int, int]:
    """Read the number of a part, and of all."""
    if text is None:
        return 1, 1
    found = re.fullmatch(r"(\d+)/(\d+)", text)
    if not found or not 1 <= int(found[1]) <= int(found[2]):
        raise InputError(f"--part must be K/N, such as 1/4, with K from 1 to N. Received: {text}")
    return int(found[1]), int(found[2])


def _check(resolved: Config, options: argparse.Namespace) -> None:
    """Raise InputError for what files and options show to be wrong."""
    data = resolved.data
    if data.corpus is None:
        raise InputError(f"no data: give --data {DATA_HELP}")
    names = (data.corpus, *data.extra_corpora)
    if data.prepared is not None:
        raise InputError(f"--data {data.prepared} is prepared already: train on it")
    check_place("--output", options.output)
    from tf_transformer.data.preparing.plan import sources_of  # NumPy takes a while

    sources = sources_of(resolved)
    for _, source in sources:
        refuse_inside(
            source,
            [("--output", options.output)],
            "what is made does not go into what it is made from. Give a folder outside",
        )
    if options.overwrite:
        refuse_inside(options.output, [*sources, ("--config", options.config)], REPLACED)
        if options.part is not None:
            raise InputError(f"--overwrite is not for one of several parts: remove {options.output} first")
    if not any(name.split(":")[0] == STANDARD_INPUT for name in names):
        check_training_splits(data)
    elif options.part is not None:
        raise InputError("--data -: each of several parts would read a standard input of its own: give a file")
    if resolved.tokenizer.file:
        Path(resolved.tokenizer.file).open("rb").close()
