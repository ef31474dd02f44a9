"""`tf-transformer import`."""

import argparse

from tf_transformer.commands.checks import check_place

SUMMARY = "Write a pretrained model, such as one of OPUS-MT, as a run that translates, is fine-tuned and exported."


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    parser.add_argument("model", metavar="DIR", help="a MarianMT model, as transformers saves it")
    parser.add_argument("--run-dir", required=True, metavar="DIR", help="a new folder")


def run(options: argparse.Namespace) -> None:
    """Import a model; TensorFlow is not needed for it."""
    check_place("--run-dir", options.run_dir)
    from tf_transformer.importers.opening import import_model

    print(f"imported: {import_model(options.model, options.run_dir).path}")
