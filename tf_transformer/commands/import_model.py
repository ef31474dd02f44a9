"""`tf-transformer import`."""

import argparse

from tf_transformer.commands.common.checks import check_place
from tf_transformer.commands.common.options import add_settings, settings_given
from tf_transformer.runs.descriptions import LANGUAGES

SUMMARY = "Turn a pretrained model, such as OPUS-MT or NLLB, into a run that you can use and fine-tune."
EXAMPLE = "tf-transformer import Helsinki-NLP/opus-mt-en-de --run-dir runs/opus_en_de"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    parser.add_argument(
        "model",
        metavar="MODEL",
        help="a folder of MarianMT, M2M100 or NLLB, as transformers saves it, or an .npz of Marian beside its "
        "decoder.yml; with the extra hub, the name of a model on the Hugging Face Hub, such as "
        "Helsinki-NLP/opus-mt-en-de",
    )
    parser.add_argument("--run-dir", required=True, metavar="DIR", help="a new folder")
    add_settings(parser, "decoding", *LANGUAGES, default="the folder's")
    parser.add_argument(
        "--set",
        metavar="SECTION.KEY=VALUE",
        action="append",
        default=[],
        help="a setting of decoding or data, model.positions or model.norm_epsilon; may be repeated",
    )


def run(options: argparse.Namespace) -> None:
    """Import a model; TensorFlow is not needed for it."""
    check_place("--run-dir", options.run_dir)
    from tf_transformer.importers.opening import import_model

    run = import_model(options.model, options.run_dir, *settings_given(options).values())
    print(f"imported: {run.path}")
