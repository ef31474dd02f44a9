"""Prepare corpora and translate text on a cluster that runs Apache Beam."""

import argparse
import sys
from typing import TYPE_CHECKING

from tf_transformer.commands.common.options import Parser, add_batch_tokens, add_settings, settings_given
from tf_transformer.commands.common.resolve import add_text, resolve
from tf_transformer.commands.main import run_command
from tf_transformer.commands.prepare import planned
from tf_transformer.config import Config, override
from tf_transformer.runs.descriptions import LANGUAGES

if TYPE_CHECKING:
    from apache_beam import Pipeline

EPILOG = """Options of the pipeline follow after --, such as -- --runner DataflowRunner --project P --region R
--temp_location gs://bucket/tmp. Without them the pipeline runs on this machine.
"""


def parser() -> argparse.ArgumentParser:
    """Return the parser. The parsed options hold the function that runs their command as `run`."""
    whole = Parser(prog="python -m tf_transformer.beam", description=__doc__, epilog=EPILOG)
    commands = whole.add_subparsers(title="commands", required=True, metavar="COMMAND")
    command = commands.add_parser(
        "prepare", help="like tf-transformer prepare, but with a given tokenizer", epilog=EPILOG
    )
    add_text(command)
    command.add_argument("--output", required=True, metavar="DIR", help="where the prepared corpus is written")
    command.set_defaults(run=_prepare)
    command = commands.add_parser(
        "translate", help="translate the lines of files with an exported model", epilog=EPILOG
    )
    command.add_argument("--model", required=True, metavar="DIR", help="an exported SavedModel")
    command.add_argument("--input", required=True, metavar="FILE", action="append", help="text file; may be repeated")
    command.add_argument("--output", required=True, metavar="DIR", help="where the translations are written, in order")
    add_batch_tokens(command)
    add_settings(command, "decoding", *LANGUAGES, default="the model's")
    command.set_defaults(run=_translate)
    return whole


def _prepare(options: argparse.Namespace) -> None:
    from tf_transformer.beam import Prepare

    with _pipeline(options) as pipeline:
        _ = pipeline | Prepare(planned(resolve(options).config), options.output)
    print(f"prepared: {options.output}")


def _translate(options: argparse.Namespace) -> None:
    from tf_transformer.beam import TranslateFiles
    from tf_transformer.beam.translating import TranslationHandler

    decoding = override(Config(), *settings_given(options).values()).decoding
    handler = TranslationHandler(options.model, decoding, batch_tokens=options.batch_tokens, max_batch_size=1)
    with _pipeline(options) as pipeline:
        _ = pipeline | TranslateFiles(options.input, options.output, handler)
    print(f"translated: {options.output}")


def _pipeline(options: argparse.Namespace) -> "Pipeline":
    """Return a pipeline with the options that follow after --."""
    from apache_beam import Pipeline
    from apache_beam.options.pipeline_options import PipelineOptions

    return Pipeline(options=PipelineOptions(options.pipeline))


def main(arguments: list[str]) -> int:
    """Run a command and return its exit code: 0, or 2 for input that the user can correct."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    options = parser().parse_args(arguments[:end])
    options.pipeline = arguments[end + 1 :]
    return run_command(options)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
