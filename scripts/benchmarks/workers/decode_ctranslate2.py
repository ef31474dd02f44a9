"""CTranslate2 translates the same sentences, from tokens to tokens."""

import json
from pathlib import Path

import ctranslate2
from protocol import serve, spec

given = spec()
folder = Path(given["folder"])
threads = {"inter_threads": 1, "intra_threads": given["threads"]}
translator = ctranslate2.Translator(str(folder / "ctranslate2"), compute_type=given["type"], **threads)
pieces = json.loads((folder / "texts.json").read_text())["pieces"]


def work(batch: int, batches: int, beam: int) -> None:
    """Translate the batches one after the other."""
    for i in range(0, batches * batch, batch):
        translator.translate_batch(
            pieces[i : i + batch],
            beam_size=beam,
            length_penalty=0,
            min_decoding_length=given["least"],
            max_decoding_length=given["most"],
        )


serve(work)
