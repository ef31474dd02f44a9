"""Embeddings with positions (paper 3.4 and 3.5)."""

import math
from typing import Any

import keras
from keras import ops

from tf_transformer.model import gradients
from tf_transformer.model.gradients import on_tensorflow
from tf_transformer.model.linear import not_quantized
from tf_transformer.model.low_rank import ROWS
from tf_transformer.model.positions import KINDS, positional_encoding


@on_tensorflow(gradients.take_rows)
def take_rows(table: Any, ids: Any, training: bool | None = None) -> Any:
    """Return the rows of table [V, D] that ids [B, T] name, [B, T, D]."""
    return ops.take(table, ids, axis=0)


@keras.saving.register_keras_serializable("tf_transformer")
class TokenEmbedding(keras.layers.Layer):
    """A vector for every token; the same weights may give the logits (paper 3.4).

    ids [B, T] -> [B, T, D], already multiplied by sqrt(D). The table is drawn with standard deviation D^-0.5, so
    that the output has unit variance.
    """

    def __init__(self, vocab_size: int, d_model: int, **kwargs: Any):
        super().__init__(**kwargs)
        self.autocast = False  # ids that are floats would become others in a shorter type
        self.vocab_size = vocab_size
        self.d_model = d_model
        self.lora_rows: Any = None

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        """Create the table [V, D]."""
        self.table = self.add_weight(
            name="table",
            shape=(self.vocab_size, self.d_model),
            initializer=keras.initializers.RandomNormal(stddev=self.d_model**-0.5),
            autocast=False,
        )

    def enable_lora(self, rows: int) -> None:
        """Freeze the table, and learn what is added to its last rows, those of new tokens; zero at first.

        Raises:
            ValueError: a layer that is not built, or learns such rows already; more rows than the table has.
        """
        if not self.built or self.lora_rows is not None:
            raise ValueError("LoRA can be enabled only once, on a layer that is built")
        if not 0 < rows <= self.vocab_size:
            raise ValueError(f"rows must be 1 to {self.vocab_size}. Received: {rows}")
        self._tracker.unlock()
        self.lora_rows = self.add_weight(name=ROWS, shape=(rows, self.d_model), initializer="zeros", autocast=False)
        self._tracker.lock()
        self.table.trainable = False

    def _rows(self) -> Any:
        """Return the table [V, D] with what is added to its last rows."""
        if self.lora_rows is None:
            return self.table
        before = self.vocab_size - self.lora_rows.shape[0]
        return ops.add(self.table, ops.pad(self.lora_rows, ((before, 0), (0, 0))))

    def call(self, ids: Any, training: bool | None = None) -> Any:
        """Embed ids [B, T] -> [B, T, D]; the gradient of a row is summed in the type of the table."""
        # With several replicas, Keras builds its losses from a first batch that it averages, including the ids.
        ids = ops.cast(ids, "int32")
        return ops.cast(take_rows(self._rows(), ids, training=training), self.compute_dtype) * math.sqrt(self.d_model)

    def logits(self, x: Any) -> Any:
        """Project x [..., D] on the table: [..., V], in the type of the table, whatever the type of x."""
        x = ops.cast(x, self.variable_dtype)
        if len(x.shape) == 2:
            # For the few rows of a decoding step, TensorFlow's product with a transposed table is several times slower
            # than this one on a CPU without oneDNN.
            return ops.transpose(ops.matmul(self._rows(), ops.transpose(x)))
        rows = ops.reshape(x, (-1, self.d_model))
        return ops.reshape(ops.matmul(rows, ops.transpose(self._rows())), (*ops.shape(x)[:-1], self.vocab_size))

    def quantize(self, mode: str | None = None, **_: Any) -> None:
        """Refuse quantisation, as `Linear.quantize` does."""
        raise NotImplementedError(not_quantized(self, mode))

    def compute_output_shape(self, input_shape: tuple[int | None, ...]) -> tuple[int | None, ...]:
        """Return [B, T, D]."""
        return (*input_shape, self.d_model)

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return super().get_config() | {"vocab_size": self.vocab_size, "d_model": self.d_model}


@keras.saving.register_keras_serializable("tf_transformer")
class PositionalEmbedding(keras.layers.Layer):
    """Tokens plus positions, then dropout (paper 3.4, 3.5 and 5.4). ids [B, T] -> [B, T, D].

    Args:
        vocab_size: number of tokens, V.
        d_model: width of the model, D.
        dropout_rate: on the sum.
        tokens: a `TokenEmbedding` to share; a new one by default.
        positions: "sinusoidal" (any length; the paper), "learned" (up to max_positions; paper table 3, row E), or the
            sinusoids of "opus", "marian" or "m2m100" models.
        max_positions: rows of the learned position table. A longer input is an error where its length is known;
            elsewhere the caller must see to it.
    """

    def __init__(
        self,
        vocab_size: int,
        d_model: int,
        *,
        dropout_rate: float = 0.1,
        tokens: TokenEmbedding | None = None,
        positions: str = "sinusoidal",
        max_positions: int = 1024,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.autocast = False  # as above
        if positions not in ("learned", *KINDS):
            raise ValueError(f"positions must be learned, or one of {', '.join(KINDS)}. Received: {positions!r}")
        if positions != "learned" and d_model % 2:
            raise ValueError(f"d_model must be even for {positions} positions. Received: {d_model=}")
        self.positions = positions
        self.max_positions = max_positions
        self.d_model = d_model
        self.tokens = tokens or TokenEmbedding(vocab_size, d_model, name="tokens", dtype=self.dtype_policy)
        self.dropout = keras.layers.Dropout(dropout_rate, name="dropout", dtype=self.dtype_policy)

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        """Create the tables."""
        if not self.tokens.built:
            self.tokens.build(input_shape)
        if self.positions == "learned":
            self.table = self.add_weight(
                name="positions", shape=(self.max_positions, self.d_model), initializer="random_normal"
            )

    def call(self, ids: Any, start: Any = 0, training: bool | None = None) -> Any:
        """Embed ids [B, T], the first of which is at position `start`, -> [B, T, D].

        Raises:
            ValueError: ragged ids; ids beyond the table of learned positions.
        """
        if hasattr(ids, "to_tensor"):
            raise ValueError("ids must be padded with 0: give ids.to_tensor(0). Received: ragged ids")
        length = ids.shape[1] or ops.shape(ids)[1]
        if self.positions != "learned":
            positions = positional_encoding(length, self.d_model, start, self.positions)
        else:
            if isinstance(length, int) and isinstance(start, int) and start + length > self.max_positions:
                raise ValueError(
                    f"the input is longer than the table of learned positions. Received: {start + length} tokens, "
                    f"max_positions={self.max_positions}"
                )
            positions = ops.take(self.table, ops.arange(length) + start, axis=0)
        x = self.tokens(ids)
        return self.dropout(x + ops.cast(positions, x.dtype), training=training)

    def compute_output_shape(self, input_shape: tuple[int | None, ...]) -> tuple[int | None, ...]:
        """Return [B, T, D]."""
        return (*input_shape, self.d_model)
