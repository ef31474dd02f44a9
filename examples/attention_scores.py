"""Other scores of attention than the scaled dot product, trained side by side on the toy corpus."""

from typing import Any

from keras import ops
from norms import compare

from tf_transformer import MultiHeadAttention, Transformer

SCORES = ("scaled_dot", "dot", "cosine", "additive")


class Scored(MultiHeadAttention):
    """Multi-head attention with another score, for training; a translator would need the score in `step` as well."""

    score = "dot"

    def build(self, query_shape: Any, context_shape: Any = None) -> None:
        """Create the weights, and those of the score."""
        super().build(query_shape, context_shape)
        if self.score == "additive":
            self.v = self.add_weight(name="v", shape=(self.num_heads, 1, 1, self.key_dim), initializer="ones")
        if self.score == "cosine":
            self.factor = self.add_weight(name="factor", shape=(self.num_heads, 1, 1), initializer="ones")

    def scores(self, q: Any, k: Any) -> Any:
        """Return the scores [B, H, T, S] of queries and keys."""
        if self.score == "additive":  # v tanh(W1 q + W2 k): a hidden vector for every pair
            return ops.sum(self.v * ops.tanh(ops.expand_dims(q, 3) + ops.expand_dims(k, 2)), axis=-1)
        if self.score == "cosine":  # with a learned factor for each head, at first 10
            q, k = 10 * self.factor * ops.normalize(q, axis=-1), ops.normalize(k, axis=-1)
        return ops.matmul(q, ops.swapaxes(k, -1, -2))

    def call(self, query: Any, context: Any = None, mask: Any = None, training: bool | None = None) -> Any:
        """As in the parent."""
        if context is None:
            q, k, v = self.project(self.query_key_value, query)
        else:
            q, (k, v) = self.split_heads(self.query(query)), self.project_context(context)
        weights = ops.softmax(self.scores(q, k) + (1 - ops.cast(ops.expand_dims(mask, 1), "float32")) * -1e9)
        return self.output_projection(self.merge_heads(ops.matmul(weights, v))), weights


def with_score(model: Transformer, score: str) -> None:
    """Replace the attention of all layers by one with another score."""
    for layer in (*model.encoder.layers, *model.decoder.layers) if score != "scaled_dot" else ():
        for name in {"self_attention", "cross_attention"} & {*vars(layer)}:
            attention = Scored(d_model=model.config["d_model"], num_heads=model.config["num_heads"], name=name)
            attention.score = score
            setattr(layer, name, attention)


def main(updates: int = 1200) -> dict[str, list[float]]:
    """Compare the scores."""
    return compare(dict.fromkeys(SCORES, "pre"), with_score, updates)


if __name__ == "__main__":
    main()
