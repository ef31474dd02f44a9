"""Which words belong together, inside the graph: what `AlignedString.links` is for Python strings."""

import tensorflow as tf

from tf_transformer.tokenizers.vocabulary import SPACE_MARK


def word_alignment(source_tokens: tf.Tensor, target_tokens: tf.Tensor, attention: tf.Tensor) -> tf.Tensor:
    """Return for B translations the links of their words in the Pharaoh format, such as "0-0 1-2", the source first.

    Every word of a translation has one link, to the source word that its tokens attend to most in sum.

    Args:
        source_tokens: [B, S], string: the pieces; padding is empty.
        target_tokens: [B, T], likewise.
        attention: [B, T, S], float32.

    Returns:
        [B], string.
    """
    of_source, of_target = _words(source_tokens), _words(target_tokens)
    sources, targets = (tf.reduce_max(words, axis=1) + 1 for words in (of_source, of_target))
    # Tokens that are no text have the word -1, which is all zeros.
    to_source, to_target = (
        tf.one_hot(words, tf.reduce_max(tf.concat([count, [1]], axis=0)))
        for words, count in ((of_source, sources), (of_target, targets))
    )
    weights = tf.einsum("btw,bts,bsv->bwv", to_target, attention, to_source)
    columns, rows = tf.range(tf.shape(weights)[2]), tf.range(tf.shape(weights)[1])
    best = tf.argmax(tf.where(columns < sources[:, None, None], weights, -1.0), axis=2, output_type=tf.int32)
    is_link = (rows < targets[:, None]) & (sources > 0)[:, None]
    # In the order of the source, then of the target; what is no link comes last.
    order = tf.argsort(tf.where(is_link, best, tf.size(columns)), axis=1, stable=True)
    best = tf.gather(best, order, batch_dims=1)
    links = tf.strings.join([tf.strings.as_string(best), "-", tf.strings.as_string(order)])
    counts = tf.math.count_nonzero(is_link, axis=1)
    return tf.strings.reduce_join(tf.RaggedTensor.from_tensor(links, lengths=counts), axis=1, separator=" ")


def _words(tokens: tf.Tensor) -> tf.Tensor:
    """Return for each token [B, T] the number of its word, from 0; -1 for what is no text.

    Words are as `alignment.units_of` makes them.
    """
    starts = tf.strings.substr(tokens, 0, 1, unit="UTF8_CHAR") == SPACE_MARK
    # What stands before the first word is a language, unless nothing starts a word.
    is_text = (tokens != "") & (tokens != "</s>")
    has_words = tf.reduce_any(starts, axis=1, keepdims=True)
    is_text &= (tf.cumsum(tf.cast(starts, tf.int32), axis=1) > 0) | ~has_words
    is_mark = tokens == SPACE_MARK
    before = tf.concat([tf.zeros_like(is_mark[:, :1]), is_mark[:, :-1]], axis=1)
    begins = is_text & ((starts & ~before) | ~has_words)
    words = tf.cumsum(tf.cast(begins, tf.int32), axis=1) - 1
    # A mark of a space with nothing after it is no word.
    last = tf.reduce_max(tf.where(is_text & (~is_mark | ~has_words), words, -1), axis=1, keepdims=True)
    return tf.where(is_text & (words <= last), words, -1)
