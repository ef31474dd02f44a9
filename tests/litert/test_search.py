"""The search in NumPy against the one in TensorFlow, on a scripted step function."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from tf_transformer.config import DecodingConfig
from tf_transformer.decoding import BeamSearch, Rules, Sentences, greedy
from tf_transformer.litert import search as litert
from tf_transformer.litert.search import Predicted, length_penalty
from tf_transformer.tokenizers import END, PAD, START, UNKNOWN

VOCABULARY, LENGTH, SOURCES = 11, 7, 5


class Scripted:
    """Steps whose logits and attention depend on the sentence, the position and the tokens read, all of them.

    What was read goes along with the rows, as a cache does: rows that are taken wrongly predict something else.
    """

    vocabulary = VOCABULARY

    def __init__(self, table, attention, width):
        self.table, self.weights = table, attention
        self.sentences, self.width = np.arange(len(table)), width
        self.read = np.zeros((len(table) * width, 0), np.int64)

    def step(self, ids, forbidden, count):
        self.read = np.concatenate([self.read, ids[:, None]], axis=1)
        logits = self.logits() + forbidden
        tokens = np.argsort(-logits, axis=1, kind="stable")[:, :count].astype(np.int32)
        normalizers = np.log(np.exp(self.logits().astype(np.float64)).sum(axis=1)).astype(np.float32)
        return Predicted(tokens, np.take_along_axis(logits, tokens, axis=1), normalizers)

    def _places(self):
        return np.repeat(self.sentences, self.width), self.read.sum(axis=1) % LENGTH, self.read[:, -1]

    def logits(self):
        return self.table[self._places()]

    def attention(self):
        return self.weights[self._places()]

    def take(self, sentences, rows):
        self.sentences, self.read = self.sentences[sentences], self.read[rows]


def in_tensorflow(table, attention, limits, padding, decoding, n_best):
    def step(ids, position, cache, context):
        sentence = tf.repeat(context, tf.size(ids) // tf.maximum(tf.size(context), 1))
        read = cache + ids
        places = tf.stack([sentence, read % LENGTH, ids], axis=1)
        return tf.gather_nd(table, places), tf.gather_nd(attention, places), read

    table, attention = tf.constant(table), tf.constant(attention)
    rules = Rules(
        START,
        END,
        PAD,
        (UNKNOWN,) if decoding.ban_unknown else (),
        decoding.min_length,
        decoding.no_repeat_ngram,
    )
    covered = tf.constant(padding, tf.float32) if decoding.coverage_penalty else ()
    sentences = Sentences(tf.constant(limits), tf.range(len(limits)), coverage=covered)
    cache = tf.zeros([len(limits) * decoding.beam_size], tf.int32)
    if decoding.beam_size == 1:
        found = greedy(step, cache, sentences, rules)
        lengths = np.maximum(np.count_nonzero(found.ids, axis=2), 1)
        return found._replace(scores=found.log_probabilities / length_penalty(lengths, decoding))
    beam = BeamSearch(
        step,
        rules,
        beam_size=decoding.beam_size,
        alpha=decoding.length_penalty,
        offset=decoding.length_penalty_offset,
        beta=decoding.coverage_penalty,
        n_best=n_best,
        stopping=decoding.stopping,
    )
    return beam(cache, sentences)


@settings(max_examples=40)
@given(
    st.integers(0, 10_000),
    st.lists(st.integers(0, 13), min_size=1, max_size=7),
    st.fixed_dictionaries(
        {
            "beam_size": st.integers(1, 5),
            "length_penalty": st.sampled_from([0.0, 0.6, 1.5, -0.5]),
            "length_penalty_offset": st.sampled_from([5.0, 0.0]),
            "coverage_penalty": st.sampled_from([0.0, 0.0, 0.3]),
            "min_length": st.sampled_from([0, 0, 3]),
            "no_repeat_ngram": st.sampled_from([0, 0, 1, 2]),
            "ban_unknown": st.booleans(),
            "early_stopping": st.booleans(),
            "likely_stopping": st.booleans(),
        }
    ),
)
def test_both_find_the_same(seed, limits, options):
    """To the last token: sums of numbers that are all different have no ties."""
    if options["beam_size"] == 1:
        options["coverage_penalty"] = 0.0
    decoding = DecodingConfig(**options)
    rng = np.random.default_rng(seed)
    shape = (len(limits), LENGTH, VOCABULARY)
    table = rng.normal(size=(*shape, VOCABULARY)).astype(np.float32) * 2
    attention = rng.dirichlet(np.ones(SOURCES), size=shape).astype(np.float32)
    limits = np.array(limits, np.int32)
    padding = np.arange(SOURCES) >= rng.integers(1, SOURCES + 1, size=(len(limits), 1))
    n_best = int(rng.integers(1, decoding.beam_size + 1))
    first = np.full(len(limits), START, np.int32)
    steps = Scripted(table, attention, decoding.beam_size)
    ours = litert.BeamSearch(steps, decoding, n_best)(first, limits, padding)
    theirs = in_tensorflow(table, attention, limits, padding, decoding, n_best)
    ids = theirs.ids.numpy()[:, :, : ours.ids.shape[2]]
    np.testing.assert_array_equal(ours.ids, ids)
    assert not theirs.ids.numpy()[:, :, ours.ids.shape[2] :].any()
    np.testing.assert_allclose(ours.scores, theirs.scores, rtol=1e-4)
    np.testing.assert_allclose(ours.log_probabilities, theirs.log_probabilities, rtol=1e-4)


def test_the_length_penalty_is_the_papers():
    assert length_penalty(7, DecodingConfig()) == pytest.approx(2**0.6)
    assert length_penalty(7, dataclasses.replace(DecodingConfig(), length_penalty=2.0, length_penalty_offset=0.0)) == 49
