"""Several models that translate as one."""

import math
from collections.abc import Sequence
from typing import Any

from keras import ops

from tf_transformer.model.transformer import AttentionWeights, Transformer


class Ensemble:
    """Models that translate as one: at every step, the probability of a token is the mean of theirs.

    It can be searched with like a `Transformer`, but not trained. Each model keeps a cache of its own.

    Args:
        models: built models with the same vocabularies; their sizes may differ.

    Raises:
        ValueError: no model; vocabularies of different sizes.
    """

    def __init__(self, models: Sequence[Transformer]):
        self.models = tuple(models)
        sizes = {(model.config["input_vocab_size"], model.config["target_vocab_size"]) for model in models}
        if len(sizes) != 1:
            raise ValueError(f"models of an ensemble must have the same vocabularies. Received sizes: {sorted(sizes)}")

    def __call__(self, inputs: tuple[Any, Any], training: bool = False) -> Any:
        """Return the logarithms of the mean probabilities [B, T, V], float32, as `Transformer` returns logits.

        Raises:
            ValueError: it is called for training.
        """
        if training:
            raise ValueError("an ensemble cannot be trained: train its models")
        return self._mean([model(inputs, training=False) for model in self.models])

    def encode(self, source_ids: Any) -> tuple[Any, ...]:
        """As `Transformer.encode`: what each model has encoded."""
        return tuple(model.encode(source_ids) for model in self.models)

    def empty_cache(self, batch: Any, length: Any = None) -> tuple[Any, ...]:
        """As `Transformer.empty_cache`: the cache of each model."""
        return tuple(model.empty_cache(batch, length) for model in self.models)

    def decode_step(
        self, ids: Any, position: Any, cache: Any, memory: Any, num_hypotheses: int | None = None
    ) -> tuple[Any, Any, Any]:
        """As `Transformer.decode_step`; the weights of a layer have the heads of all models: [B, all heads, K, S]."""
        steps = [
            model.decode_step(ids, position, kept, encoded, num_hypotheses)
            for model, kept, encoded in zip(self.models, cache, memory, strict=True)
        ]
        logits, weights, caches = zip(*steps, strict=True)
        return self._mean(logits), self._heads_of_all(weights), tuple(caches)

    def attention(self, inputs: tuple[Any, Any]) -> AttentionWeights:
        """As `Transformer.attention`; a layer has the heads of all models."""
        kinds = zip(*(model.attention(inputs) for model in self.models), strict=True)
        return AttentionWeights(*map(self._heads_of_all, kinds))

    @property
    def num_decoder_layers(self) -> int:
        """The smallest number of decoder layers of a model."""
        return min(model.num_decoder_layers for model in self.models)

    @property
    def max_positions(self) -> int | None:
        """The smallest number of positions that a model has learned; None if all take any."""
        return min((most for model in self.models if (most := model.max_positions) is not None), default=None)

    @property
    def weights(self) -> list[Any]:
        """The weights of all models."""
        return [weight for model in self.models for weight in model.weights]

    def _mean(self, logits: Sequence[Any]) -> Any:
        """Return the logarithm of the mean probability for logits [..., V] of each model."""
        all_logs = ops.stack([ops.log_softmax(of_model, axis=-1) for of_model in logits])
        return ops.logsumexp(all_logs, axis=0) - math.log(len(self.models))

    def _heads_of_all(self, weights: Sequence[Sequence[Any]]) -> tuple[Any, ...]:
        """Return for each layer the heads of all models. Where depths differ, layers are counted from the last."""
        depth = min(map(len, weights))
        layers = zip(*(of_model[len(of_model) - depth :] for of_model in weights), strict=True)
        return tuple(ops.concatenate(of_layer, axis=1) for of_layer in layers)
