"""An epoch of real text with our batches, or with the tutorial's unsorted ones; all else is the same."""

import time

import keras
import tensorflow as tf
from protocol import serve, spec

from tf_transformer.config import PRESETS, override
from tf_transformer.data import Batches, encode, read
from tf_transformer.tokenizers import END, PAD, START, Tokenizer, train_tokenizer
from tf_transformer.training.fit import make_trainer
from tf_transformer.training.strategy import distribute, make_strategy

given = spec()
corpus = {"corpus": given["data"], "source": given["source"], "target": given["target"]}
config = override(PRESETS["tiny"], {"data": corpus})
text = read(config.data, "train")
tokenizer = Tokenizer(train_tokenizer([*text.sources, *text.targets], config.tokenizer))
config = override(config, {"model": dict.fromkeys(("input_vocab_size", "target_vocab_size"), tokenizer.vocab_size)})
strategy = make_strategy()
with strategy.scope():
    trainer = make_trainer(config)


def sorted_batches() -> tuple[Batches, int, float]:
    """Return our batches: tokenised beforehand, of similar lengths, and sized by tokens."""
    batches = Batches(encode(text, tokenizer, tokenizer, config.data.max_length), config.data.batch_tokens, seed=0)
    return batches, sum(map(batches.target_tokens, range(batches.length))), batches.padding


def unsorted_batches() -> tuple[tf.data.Dataset, int, float]:
    """Return the tutorial's batches: shuffled, 64 sentences each, and tokenised on the fly."""

    def tokenize(source: tf.Tensor, target: tf.Tensor) -> tuple[tuple[tf.Tensor, tf.Tensor], tf.Tensor, tf.Tensor]:
        sides = []
        for side in (source, target):
            ids = tokenizer.tokenize(side)[:, : config.data.max_length - 1]
            sides.append(tf.concat([ids, tf.fill([ids.nrows(), 1], END)], axis=1).to_tensor(PAD))
        labels = sides[1]
        shifted = tf.concat([tf.fill([tf.shape(labels)[0], 1], START), labels[:, :-1]], axis=1)
        weight = tf.fill([tf.shape(labels)[0]], 1 / tf.math.count_nonzero(labels, dtype=tf.float32))
        return (sides[0], shifted), labels, weight

    pairs = tf.data.Dataset.from_tensor_slices((list(text.sources), list(text.targets)))
    batches = pairs.shuffle(20_000, seed=0).batch(64).map(tokenize, tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)
    real = padded = 0
    for (source, _), labels, _ in batches:
        real += sum(int(tf.math.count_nonzero(ids)) for ids in (source, labels))
        padded += int(tf.size(source) + tf.size(labels))
    targets = sum(int(tf.math.count_nonzero(labels)) for _, labels, _ in batches)
    return batches, targets, 1 - real / padded


if given["way"] == "ours":
    batches, tokens, padding = sorted_batches()
    steps, data = batches.length, distribute(batches, strategy)
else:
    dataset, tokens, padding = unsorted_batches()
    steps, data = int(dataset.cardinality()), strategy.distribute_datasets_from_function(lambda _: dataset)


class Clock(keras.callbacks.Callback):
    """Ends an epoch after some steps, if it has a limit."""

    def __init__(self, most: int | None):
        super().__init__()
        self.most = most

    def on_train_batch_end(self, batch: int, logs: object = None) -> None:
        """Stop after the last step."""
        self.model.stop_training = batch + 1 == self.most


def work(most: int | None = None) -> None:
    """Train for an epoch."""
    trainer.fit(data, epochs=1, callbacks=[Clock(most)], shuffle=False, verbose=0)


def waiting() -> dict[str, float]:
    """Train for an epoch in a loop, and return the share of the time spent waiting for data."""

    @tf.function(reduce_retracing=True)
    def step(batch: object) -> None:
        strategy.run(trainer.train_step, args=(batch,))

    iterator, waited, start = iter(data), 0.0, time.perf_counter()
    for _ in range(steps):
        asked = time.perf_counter()
        batch = next(iterator)
        waited += time.perf_counter() - asked
        step(batch)
    return {"waits": waited / (time.perf_counter() - start)}


def task(kind: str) -> dict[str, float] | None:
    """Do the task that is asked for."""
    return {"warm-up": lambda: work(12), "epoch": work, "waiting": waiting}[kind]()


serve(task, tokens=tokens, steps=steps, padding=padding)
