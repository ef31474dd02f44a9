"""`tf-transformer extend`."""

import argparse

from tf_transformer.commands.common.checks import check_place
from tf_transformer.commands.common.quiet_tensorflow import import_tensorflow
from tf_transformer.errors import InputError

SUMMARY = "Add languages to a model of several languages, which further training can teach it."
EXAMPLE = "tf-transformer extend --run-dir runs/nllb --add-language tyv_Cyrl=kaz_Cyrl --output runs/nllb_tyv"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    parser.add_argument("--run-dir", required=True, metavar="DIR", help="a trained or imported run")
    parser.add_argument(
        "--add-language",
        required=True,
        action="append",
        metavar="NEW=OLD",
        help="a new language, and the one of the model that it starts as; may be repeated",
    )
    parser.add_argument("--output", required=True, metavar="DIR", help="a new folder")


def run(options: argparse.Namespace) -> None:
    """Write a run with more languages."""
    languages = dict(map(_pair, options.add_language))
    check_place("--output", options.output)
    from tf_transformer.runs.added_languages import check_new_languages
    from tf_transformer.runs.directory import RunDirectory

    # Refused before TensorFlow is imported.
    check_new_languages(RunDirectory(options.run_dir), options.output, languages)
    import_tensorflow()
    from tf_transformer.runs.extending import add_languages

    print(f"extended: {add_languages(options.run_dir, options.output, languages).path}")


def _pair(text: str) -> tuple[str, str]:
    new, _, old = text.partition("=")
    if not (new and old):
        raise InputError(f"--add-language takes NEW=OLD, such as tyv_Cyrl=kaz_Cyrl. Received: {text!r}")
    return new, old
