"""Layer norm after and before each sub-layer, and batch norm, trained side by side on the toy corpus."""

from collections.abc import Callable

import keras

from tf_transformer import NoamSchedule, Transformer
from tf_transformer.config import DataConfig, TokenizerConfig
from tf_transformer.data import Batches, encode, read
from tf_transformer.model.residual import Residual
from tf_transformer.tokenizers import Tokenizer, train_tokenizer
from tf_transformer.training import Adam, SmoothedCrossEntropy, TokenAccuracy, TokenLoss, Trainer

SIZES = dict(num_layers=3, d_model=128, num_heads=4, dff=256, dropout_rate=0.05, share_embeddings="all")
Change = Callable[[Transformer, str], None]


def with_norm(model: Transformer, norm: str) -> None:
    """Replace the layer norms by batch norms, if that is asked for."""
    layers = [*model.encoder.layers, *model.decoder.layers] if norm == "batch" else []
    for layer in layers:
        for residual in [value for value in vars(layer).values() if isinstance(value, Residual)]:
            residual.norm = keras.layers.BatchNormalization()


def compare(variants: dict[str, str], change: Change, updates: int) -> dict[str, list[float]]:
    """Train every variant from the same seed, and return the validation losses after each sixth of the updates.

    Args:
        variants: the name of each, with the arrangement of norms in its model.
        change: changes a new model to the variant of a name.
        updates: for each variant.
    """
    text, held_out = (read(DataConfig(corpus="toy"), split) for split in ("train", "val"))
    tokenizer = Tokenizer(train_tokenizer([*text.sources, *text.targets], TokenizerConfig(vocab_size=1000)))
    train, val = (Batches(encode(pairs, tokenizer, tokenizer, 64), 1000, seed=0) for pairs in (text, held_out))
    vocabulary, found = tokenizer.vocab_size, {}
    for name, norm in variants.items():
        keras.utils.set_random_seed(0)
        model = Transformer(**SIZES, norm=norm, input_vocab_size=vocabulary, target_vocab_size=vocabulary)
        change(model, name)
        trainer, schedule = Trainer(model), NoamSchedule(128, warmup_steps=300, factor=0.6)
        metrics = [TokenLoss(), TokenAccuracy()]
        trainer.compile(Adam(schedule), SmoothedCrossEntropy(0.1), metrics=metrics, jit_compile=False)
        steps = dict(epochs=6, steps_per_epoch=max(updates // 6, 1), verbose=0, validation_data=val.dataset())
        past = trainer.fit(train.dataset().repeat(), **steps).history
        found[name] = past["val_loss"]
        print(name, *(f"{loss:.2f}" for loss in found[name]), f"accuracy {past['val_accuracy'][-1]:.1%}", flush=True)
    return found


def main(updates: int = 1200) -> dict[str, list[float]]:
    """Compare the norms."""
    return compare({"post": "post", "pre": "pre", "batch": "post"}, with_norm, updates)


if __name__ == "__main__":
    main()
