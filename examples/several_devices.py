"""`model.fit` on several devices: the same losses as on one, whatever their number.

Usage: python examples/several_devices.py [DEVICES]   (GPUs where there are any, else logical CPUs)
"""

import sys

import keras
import tensorflow as tf

from tf_transformer import NoamSchedule, Transformer
from tf_transformer.config import DataConfig, TokenizerConfig
from tf_transformer.data import Batches, encode, read
from tf_transformer.tokenizers import Tokenizer, train_tokenizer
from tf_transformer.training import SmoothedCrossEntropy, TokenLoss, distribute
from tf_transformer.training.callbacks import EpochOrder
from tf_transformer.training.strategy import make_strategy


def main(devices: int = 2, updates: int = 30) -> list[float]:
    """Train for some updates, and return the loss of each."""
    strategy = make_strategy("mirrored", devices)  # before TensorFlow does anything else
    replicas = strategy.num_replicas_in_sync
    text = read(DataConfig(corpus="toy"), "train")
    tokenizer = Tokenizer(train_tokenizer([*text.sources, *text.targets], TokenizerConfig(vocab_size=500)))
    # `distribute` gives each replica equally many rows. Each sentence has 1 / (tokens of all replicas) as its weight.
    batches = Batches(encode(text, tokenizer, tokenizer, max_length=64), 1024, multiple_of=replicas, seed=0)

    keras.utils.set_random_seed(0)
    with strategy.scope():
        sizes = {"num_layers": 1, "d_model": 32, "num_heads": 2, "dff": 64, "share_embeddings": "all"}
        vocabulary = {"input_vocab_size": tokenizer.vocab_size, "target_vocab_size": tokenizer.vocab_size}
        model = Transformer(**sizes, **vocabulary, dropout_rate=0.0)
        model.build(((None, None), (None, None)))
        optimizer = keras.optimizers.Adam(NoamSchedule(32, warmup_steps=100), beta_2=0.98, epsilon=1e-9)
        model.compile(optimizer, loss=SmoothedCrossEntropy(0.1), metrics=[TokenLoss(0.1)])

    losses: list[float] = []
    watch = keras.callbacks.LambdaCallback(
        on_train_batch_end=lambda batch, logs: losses.append(float(model.get_metrics_result()["loss"]))
    )
    callbacks = [EpochOrder(batches, max_steps=updates), watch]
    model.fit(distribute(batches, strategy), epochs=1, callbacks=callbacks, shuffle=False, verbose=0)
    print(f"{replicas} replicas of {[device.name for device in tf.config.list_logical_devices()]}")
    print("mean loss since the beginning:", " ".join(f"{loss:.3f}" for loss in losses[:: updates // 6]))
    return losses


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2)
