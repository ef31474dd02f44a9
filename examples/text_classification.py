"""The encoder layers in a Keras model of your own: which of two sentences that differ in word order is it?"""

import keras
import numpy as np

from tf_transformer import EncoderLayer, positional_encoding

WORDS = ["<pad>", "the", "dog", "cat", "bites", "sees", "a", "man", "old", "young"]
LENGTH = 9


def sentences(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return ids [count, 9] of sentences about a dog and a cat, and whether the dog comes first."""
    random = np.random.default_rng(seed)
    ids = random.choice([1, 4, 5, 6, 7, 8, 9], size=(count, LENGTH))
    lengths = random.integers(4, LENGTH + 1, size=count)
    ids[np.arange(LENGTH) >= lengths[:, None]] = 0
    dog, cat = np.array([random.choice(length, 2, replace=False) for length in lengths]).T
    ids[np.arange(count), dog], ids[np.arange(count), cat] = 2, 3
    return ids, dog < cat


@keras.saving.register_keras_serializable("examples")
class AddPositions(keras.layers.Layer):
    """Adds the positional encoding to [B, T, D], so that word order can be seen at all."""

    supports_masking = True  # the padding mask goes through

    def call(self, x):  # noqa: D102
        return x * x.shape[-1] ** 0.5 + positional_encoding(x.shape[1], x.shape[-1])


def build(has_positions: bool = True) -> keras.Model:
    """Return a classifier of two encoder layers."""
    ids = keras.Input((LENGTH,), dtype="int32")
    x = keras.layers.Embedding(len(WORDS), 32, mask_zero=True)(ids)
    x = AddPositions()(x) if has_positions else x
    for _ in range(2):
        x = EncoderLayer(d_model=32, num_heads=4, dff=64, norm="pre")(x)
    x = keras.layers.GlobalAveragePooling1D()(x)
    model = keras.Model(ids, keras.layers.Dense(1, activation="sigmoid")(x))
    model.compile(keras.optimizers.Adam(0.002), "binary_crossentropy", metrics=["accuracy"])
    return model


def main(epochs: int = 10) -> dict[bool, float]:
    """Return the accuracy on unseen sentences with positions, and without, where it is guessing."""
    found = {}
    for has_positions in (True, False):
        keras.utils.set_random_seed(0)
        model = build(has_positions)
        model.fit(*sentences(4000, seed=1), batch_size=64, epochs=epochs, verbose=0)
        found[has_positions] = model.evaluate(*sentences(1000, seed=2), verbose=0, return_dict=True)["accuracy"]
    return found


if __name__ == "__main__":
    for has_positions, accuracy in main().items():
        print(f"accuracy {'with' if has_positions else 'without'} positions: {accuracy:.3f}")
