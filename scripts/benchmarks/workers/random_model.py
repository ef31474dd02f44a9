"""A model with random weights."""

import keras

from tf_transformer import PRESETS, Transformer


def random_model(preset: str, vocabulary: int) -> Transformer:
    """Return a model with the sizes of a preset, for so many tokens. It is always the same."""
    keras.utils.set_random_seed(0)
    config = PRESETS[preset].model
    sizes = {name: getattr(config, name) for name in ("num_layers", "d_model", "num_heads", "dff", "share_embeddings")}
    model = Transformer(**sizes, input_vocab_size=vocabulary, target_vocab_size=vocabulary)
    model.build(((None, None), (None, None)))
    return model
