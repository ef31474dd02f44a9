"""A small translator by plain `model.fit` on any backend of Keras: KERAS_BACKEND=jax python examples/any_backend.py."""

import keras
import numpy as np

from tf_transformer import NoamSchedule, Transformer
from tf_transformer.config import DataConfig, TokenizerConfig
from tf_transformer.data import read
from tf_transformer.tokenizers import END, PAD, START, Vocabulary, train_tokenizer
from tf_transformer.training import Perplexity, SmoothedCrossEntropy, TokenAccuracy

LENGTH = 32  # of all sentences, in tokens: backends that compile need shapes that do not change


def padded(vocabulary: Vocabulary, sentences: list[str]) -> np.ndarray:
    """Return the ids of sentences with the end token, padded: [N, LENGTH]."""
    ids = [[*tokens[: LENGTH - 1], END] for tokens in vocabulary.encode(sentences)]
    return np.array([tokens + [PAD] * (LENGTH - len(tokens)) for tokens in ids])


def translated(model: Transformer, source: np.ndarray) -> list[list[int]]:
    """Return the ids of translations, decoded greedily with a cache of a fixed size."""
    memory, cache = model.encode(source), model.empty_cache(len(source), LENGTH)
    token, written = keras.ops.full((len(source),), START), []
    for position in range(LENGTH):
        logits, _, cache = model.decode_step(token, position, cache, memory)
        token = keras.ops.argmax(logits, axis=-1)
        written.append(keras.ops.convert_to_numpy(token))
    rows = np.stack(written, axis=1).tolist()
    return [row[: row.index(END)] if END in row else row for row in rows]


def main(epochs: int = 2, pairs: int | None = None) -> list[float]:
    """Train, print some translations of unseen sentences, and return the perplexity after each epoch."""
    text, unseen = (read(DataConfig(corpus="toy"), split) for split in ("train", "val"))
    vocabulary = Vocabulary(train_tokenizer([*text.sources, *text.targets], TokenizerConfig(vocab_size=1000)))
    size = vocabulary.vocab_size
    source, target = (padded(vocabulary, list(side)[:pairs]) for side in (text.sources, text.targets))
    shifted = np.pad(target[:, :-1], ((0, 0), (1, 0)), constant_values=START)

    keras.utils.set_random_seed(0)
    model = Transformer(
        num_layers=2, d_model=64, num_heads=4, dff=256, input_vocab_size=size, target_vocab_size=size, norm="pre"
    )
    model.compile(
        keras.optimizers.Adam(NoamSchedule(64, warmup_steps=400), beta_1=0.9, beta_2=0.98, epsilon=1e-9),
        loss=SmoothedCrossEntropy(0.1, reduction="sum_over_batch_size"),
        metrics=[Perplexity(), TokenAccuracy()],
    )
    history = model.fit((source, shifted), target, batch_size=64, epochs=epochs, verbose=2).history
    questions = list(unseen.sources)[:3]
    for sentence, ids in zip(questions, translated(model, padded(vocabulary, questions)), strict=True):
        print(f"{sentence} -> {vocabulary.processor.decode(ids)}")
    return history["perplexity"]


if __name__ == "__main__":
    main()
