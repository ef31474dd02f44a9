"""Our LiteRT export translates strings."""

import json
from pathlib import Path

from protocol import serve, spec

from tf_transformer.config import DecodingConfig
from tf_transformer.litert import Translator

given = spec()
folder = Path(given["folder"])
translator = Translator.load(folder / given["export"], threads=given["threads"])
texts = json.loads((folder / "texts.json").read_text())["texts"]


def work(batch: int, batches: int, beam: int) -> None:
    """Translate the batches one after the other."""
    translator.decoding = DecodingConfig(**given["search"], beam_size=beam)
    for i in range(0, batches * batch, batch):
        translator.translate_strings(texts[i : i + batch])


serve(work)
