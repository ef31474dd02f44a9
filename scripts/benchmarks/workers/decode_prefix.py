"""Decoding as in the tutorial: for every token, the whole model runs on the source and on all tokens so far."""

import json
from pathlib import Path

import tensorflow as tf
from protocol import serve, spec
from random_model import random_model

from tf_transformer.tokenizers import END, START

given = spec()
model = random_model(given["preset"], given["vocabulary"])
pieces = json.loads((Path(given["folder"]) / "texts.json").read_text())["pieces"]
sources = [tf.constant([[*(4 + i for i in range(len(row))), END]], tf.int32) for row in pieces]


@tf.function(input_signature=[tf.TensorSpec([1, None], tf.int32)])
def translate(source):
    """Write so many tokens by greedy search."""
    written = tf.TensorArray(tf.int32, size=0, dynamic_size=True).write(0, [START])
    for i in tf.range(given["target"]):
        target = tf.transpose(written.stack())
        logits = model((source, target), training=False)
        written = written.write(i + 1, tf.argmax(logits[:, -1], axis=-1, output_type=tf.int32))
    return written.stack()


def work(batch: int, batches: int, beam: int) -> None:
    """Translate the sentences one after the other."""
    if batch != 1 or beam != 1:
        raise ValueError(f"one sentence at a time, greedily. Received: {batch=}, {beam=}")
    for source in sources[:batches]:
        translate(source).numpy()


serve(work)
