"""Our SavedModel translates strings."""

import json
from pathlib import Path

import tensorflow as tf
import tensorflow_text  # noqa: F401
from protocol import serve, spec

given = spec()
folder = Path(given["folder"])
models = {beam: tf.saved_model.load(str(folder / f"{given['export']} {beam}")) for beam in given["beams"]}
texts = json.loads((folder / "texts.json").read_text())["texts"]


def work(batch: int, batches: int, beam: int) -> None:
    """Translate the batches one after the other."""
    translate = models[beam].signatures["serving_default"]
    for i in range(0, batches * batch, batch):
        translate(text=tf.constant(texts[i : i + batch]))["translation"].numpy()


serve(work)
