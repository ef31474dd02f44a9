"""Sampling: tokens are drawn at random with the probabilities that the model gives them."""

from typing import Any

import tensorflow as tf

from tf_transformer.decoding.greedy_search import one_path
from tf_transformer.decoding.hypotheses import Hypotheses, Rules, Sentences, Step


def sample(
    step: Step,
    cache: Any,
    sentences: Sentences,
    rules: Rules,
    temperature: float = 1.0,
    top_k: int = 0,
    top_p: float = 1.0,
    capacity: Any = None,
) -> Hypotheses:
    """Draw every token from softmax(logits / temperature), cut to the most probable tokens.

    The random numbers are given with the sentences (`uniform`), so that a sentence gets the same
    tokens in every batch.

    Args:
        step: gives the logits of the next token.
        cache: the cache for the first step, with a row for each sentence.
        sentences: the B sentences, with `uniform`.
        rules: which tokens a hypothesis may contain.
        temperature: above 0; a value below 1 makes probable tokens more probable.
        top_k: the most tokens to draw from; 0 sets no limit.
        top_p: draw from the fewest tokens whose probabilities add up to at least this; 1 sets no limit.
        capacity: as in `greedy`.

    Returns:
        One hypothesis per sentence; its score is its log-probability under the model at temperature 1, without a cut.

    Raises:
        ValueError: an argument is out of its range, or the sentences have no random numbers.
    """
    if not (temperature > 0 and top_k >= 0 and 0 < top_p <= 1):
        raise ValueError(
            "temperature must be above 0, top_k at least 0, top_p above 0 and at most 1. "
            f"Received: {temperature=}, {top_k=}, {top_p=}"
        )

    if isinstance(sentences.uniform, tuple):
        raise ValueError("sampling needs random numbers: give sentences uniform, [B, the largest limit]. Received: ()")

    def choose(logits: tf.Tensor, position: tf.Tensor, sentences: Sentences) -> tf.Tensor:
        vocabulary = tf.shape(logits)[-1]
        values, tokens = tf.math.top_k(logits, tf.minimum(top_k, vocabulary) if top_k else vocabulary)
        # Subtracting the largest first keeps it at 0, however small the temperature is.
        probabilities = tf.nn.softmax((values - values[:, :1]) / temperature)
        before = tf.cumsum(probabilities, axis=-1, exclusive=True)
        probabilities = tf.where(before < top_p, probabilities, 0.0)
        up_to = tf.cumsum(probabilities, axis=-1)
        drawn = sentences.uniform[:, position, None] * up_to[:, -1:]
        # Rounding may bring the number up to the sum; then the last token with a probability above 0 is taken.
        index = tf.minimum(
            tf.math.count_nonzero(up_to <= drawn, axis=-1, dtype=tf.int32),
            tf.math.count_nonzero(probabilities, axis=-1, dtype=tf.int32) - 1,
        )
        return tf.gather(tokens, index, batch_dims=1)

    return one_path(step, cache, sentences, rules, choose, capacity)
