import keras
import numpy as np
import tensorflow as tf

from tf_transformer import causal_mask, padding_mask


def test_padding_mask_attends_to_what_is_not_padding():
    mask = keras.ops.convert_to_numpy(padding_mask(np.array([[5, 0, 3], [1, 2, 0]])))
    assert mask.dtype == bool
    assert mask.tolist() == [[[True, False, True]], [[True, True, False]]]


def test_causal_mask_attends_to_oneself_and_to_the_past():
    mask = keras.ops.convert_to_numpy(causal_mask(3))
    assert mask.dtype == bool
    assert mask.tolist() == [[[True, False, False], [True, True, False], [True, True, True]]]


def test_causal_mask_of_a_length_known_only_at_run_time():
    @tf.function(input_signature=[tf.TensorSpec([], tf.int32)])
    def mask(length):
        return causal_mask(length)

    for length in (1, 2, 7):
        np.testing.assert_array_equal(mask(length)[0], np.tri(length, dtype=bool))
