"""Links of words inside the graph against those of Python strings."""

import numpy as np
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from tf_transformer.text.alignment import AlignedString, pharaoh
from tf_transformer.translation.word_alignment import word_alignment

TEXT = st.lists(st.sampled_from(["▁a", "b", "▁", "▁ö", "。", "<0xE2>"]), max_size=7)
SIDE = st.tuples(st.sampled_from([[], ["__de__"]]), TEXT, st.booleans()).map(
    lambda parts: [*parts[0], *parts[1], *(["</s>"] if parts[2] else [])]
)


@given(st.lists(st.tuples(SIDE, SIDE), min_size=1, max_size=5), st.integers(0, 10_000))
def test_links_are_those_of_python_strings(pairs, seed):
    width, height = (max(len(pair[i]) for pair in pairs) for i in (0, 1))
    attention = np.random.default_rng(seed).random([len(pairs), height, width]).astype(np.float32)
    source, target = (
        tf.constant([pair[i] + [""] * (size - len(pair[i])) for pair in pairs], tf.string, [len(pairs), size])
        for i, size in ((0, width), (1, height))
    )
    found = word_alignment(source, target, tf.constant(attention)).numpy()
    for text, (sources, targets), weights in zip(found, pairs, attention, strict=True):
        aligned = AlignedString("", sources, targets, weights[: len(targets), : len(sources)])
        assert text.decode() == pharaoh(aligned.links())
