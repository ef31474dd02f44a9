"""OpenNMT-tf does the same work with its own weights: as many source tokens and as many output tokens."""

import tensorflow as tf
from opennmt_model import SPECIAL, opennmt_model
from protocol import serve, spec

given = spec()
source, target = given["source"], given["target"]
models = {}


def translate(beam: int) -> tf.types.experimental.GenericFunction:
    """Return a function that searches for translations of ids [B, S] with so many hypotheses."""
    limits = {"minimum_decoding_length": target, "maximum_decoding_length": target}
    model = opennmt_model(given, beam_width=beam, **limits)

    @tf.function(input_signature=[tf.TensorSpec([None, source], tf.int32)])
    def function(ids: tf.Tensor) -> tf.Tensor:
        _, predictions = model({"ids": ids, "length": tf.fill([tf.shape(ids)[0]], source)})
        return predictions["tokens"]

    return function


for beam in given["beams"]:
    models[beam] = translate(beam)
first = len(SPECIAL)
sources = tf.random.uniform([256, source], first, given["vocabulary"], tf.int32, seed=0)


def work(batch: int, batches: int, beam: int) -> None:
    """Translate the batches one after the other."""
    for i in range(0, batches * batch, batch):
        models[beam](sources[i : i + batch]).numpy()


serve(work)
