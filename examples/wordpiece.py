"""A WordPiece vocabulary as TensorFlow's tutorial has it: tensorflow-text's BertTokenizer and its vocabulary learner.

Our commands use SentencePiece. Ids of another vocabulary go to `Batches` and `Transformer`: 0 pads, 2 starts, 3 ends.
"""

import keras
import numpy as np
import tensorflow as tf
import tensorflow_text as text
from tensorflow_text.tools.wordpiece_vocab import bert_vocab_from_dataset

from tf_transformer import NoamSchedule, Transformer
from tf_transformer.config import DataConfig
from tf_transformer.data import Batches, TokenPairs, read
from tf_transformer.decoding import Rules, Sentences, greedy
from tf_transformer.training import SmoothedCrossEntropy
from tf_transformer.training.callbacks import EpochOrder

RESERVED, START, END = ["[PAD]", "[UNK]", "[START]", "[END]"], 2, 3
ASKED = ["The cat sleeps.", "My brother has not read the letter."]


def tokenizer_of(sentences: list[str], size: int = 1000) -> tuple[text.BertTokenizer, int]:
    """Learn a vocabulary from sentences, and return its size, too; capitals stay, unlike in the tutorial."""
    data = tf.data.Dataset.from_tensor_slices(sentences).batch(1000)
    pieces = bert_vocab_from_dataset.bert_vocab_from_dataset(data, size, RESERVED, {"lower_case": False})
    ids = tf.lookup.KeyValueTensorInitializer(pieces, np.arange(len(pieces)))
    table = tf.lookup.StaticVocabularyTable(ids, 1)  # the last id is that of what has no piece
    return text.BertTokenizer(table, token_out_type=tf.int32), len(pieces) + 1


def encoded(tokenizer: text.BertTokenizer, sentences: list[str]) -> list[list[int]]:
    """Return ids with the end token."""
    return [[*ids, END] for ids in tokenizer.tokenize(sentences).merge_dims(-2, -1).to_list()]


def main(updates: int = 600) -> list[str]:
    """Train on the toy corpus, and translate two sentences."""
    pairs = read(DataConfig(corpus="toy"), "train")
    tokenizer, size = tokenizer_of([*pairs.sources, *pairs.targets])
    both = list(zip(encoded(tokenizer, pairs.sources), encoded(tokenizer, pairs.targets), strict=True))
    ids = np.array([token for pair in both for side in pair for token in side], np.int32)
    lengths = np.array([[len(side) for side in pair] for pair in both], np.uint16)
    batches = Batches(TokenPairs.of(ids, lengths), 2048, seed=0)  # reads the start token, and shifts the target
    keras.utils.set_random_seed(0)
    model = Transformer(num_layers=2, d_model=128, num_heads=4, dff=256, input_vocab_size=size, target_vocab_size=size)
    model.build(((None, None), (None, None)))
    optimizer = keras.optimizers.Adam(NoamSchedule(128, warmup_steps=300), beta_2=0.98)
    model.compile(optimizer, SmoothedCrossEntropy(0.1), jit_compile=False)
    model.fit(batches.dataset(), epochs=9, callbacks=[EpochOrder(batches, updates)], shuffle=False, verbose=2)

    source = keras.utils.pad_sequences(encoded(tokenizer, ASKED), padding="post")
    sentences = Sentences(limits=np.full(2, 30, np.int32), context=model.encode(source))
    found = greedy(model.decode_step, model.empty_cache(2), sentences, Rules(START, END, banned=(1,)))
    words = tf.ragged.boolean_mask(found.ids[:, 0], found.ids[:, 0] > END)
    return [b" ".join(sentence).decode() for sentence in tokenizer.detokenize(words).to_list()]


if __name__ == "__main__":
    print(*main(), sep="\n")
