"""A step of a search has few operations: a new feature must not slow down those who do not use it."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.protobuf.saved_model_pb2 import SavedModel

from tf_transformer import PRESETS, Transformer
from tf_transformer.config import DecodingConfig
from tf_transformer.translation.search import Search

V = 31
AT_MOST = {1: 450, 4: 600}
"""beam size -> operations of a step with the four layers of `tiny`"""
OF_A_LAYER = {1: 87, 4: 99}
"""beam size -> those of each layer"""


def steps_of(functions):
    """Return the numbers of operations in the loops over positions, which are the innermost ones."""
    loops = [function.node_def for function in functions if "while_body" in function.signature.name]
    return [len(nodes) for nodes in loops if not any(node.op in ("While", "StatelessWhile") for node in nodes)]


def small_model(layers):
    tiny = PRESETS["tiny"].model
    sizes = {"d_model": 2 * tiny.num_heads, "num_heads": tiny.num_heads, "dff": 7}
    options = {"norm": tiny.norm, "share_embeddings": tiny.share_embeddings}
    return Transformer(num_layers=layers, **sizes, input_vocab_size=V, target_vocab_size=V, **options)


def traced(layers, beam_size):
    search = Search(small_model(layers), DecodingConfig(beam_size=beam_size))

    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int32)], autograph=False)
    def find(ids):
        return search(ids, tf.zeros(tf.shape(ids)[:1], tf.int64)).ids

    (step,) = steps_of(find.get_concrete_function().graph.as_graph_def().library.function)
    return step


@pytest.mark.long
@pytest.mark.parametrize("beam_size", AT_MOST)
def test_a_step_of_tiny_has_few_operations(beam_size):
    layers = PRESETS["tiny"].model.num_layers
    whole, one = traced(layers, beam_size=beam_size), traced(1, beam_size=beam_size)
    assert whole <= AT_MOST[beam_size]
    assert whole - one <= OF_A_LAYER[beam_size] * (layers - 1)


@pytest.mark.long
def test_an_export_has_the_steps_of_its_run(copy_export):
    saved = SavedModel.FromString((copy_export / "saved_model.pb").read_bytes())
    steps = steps_of(saved.meta_graphs[0].graph_def.library.function)
    # It has two layers. Searches with a prefix or with terms have more operations.
    assert min(steps) == traced(2, beam_size=4)


@pytest.mark.long_but_first
@pytest.mark.parametrize(
    "decoding",
    [
        {"beam_size": 1},
        {"beam_size": 1, "temperature": 0.7},
        {"beam_size": 3},
        {"beam_size": 3, "coverage_penalty": 0.2},
        {"beam_size": 3, "no_repeat_ngram": 2, "min_length": 3},
    ],
    ids=str,
)
def test_a_graph_finds_what_is_found_without_one(decoding):
    """TensorFlow rewrites graphs, and with oneDNN, the loop of one layer once gave tensors that nobody had written."""
    keras.utils.set_random_seed(3)
    search = Search(small_model(layers=1), DecodingConfig(max_length=7, **decoding))
    ids = tf.constant([[5, 7, 11, 13, 3], [17, 3, 0, 0, 0], [3, 0, 0, 0, 0]])
    keys = tf.constant([1, 2, 3], tf.int64)
    found, wanted = tf.function(search, autograph=False)(ids, keys), search(ids, keys)
    np.testing.assert_array_equal(found.ids, wanted.ids)
    np.testing.assert_allclose(found.scores, wanted.scores, rtol=1e-4, atol=1e-4)
