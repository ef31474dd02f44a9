"""The Transformer, in pure Keras."""

from typing import Any, NamedTuple

import keras
from keras import ops

from tf_transformer.model.cache import Cache
from tf_transformer.model.decoder import Decoder, Memory
from tf_transformer.model.encoder import Encoder
from tf_transformer.model.linear import Linear
from tf_transformer.model.low_rank import LowRank
from tf_transformer.model.masks import padding_mask


class AttentionWeights(NamedTuple):
    """The weights of the three kinds of attention (paper 3.2.3), for every layer."""

    encoder: tuple[Any, ...]
    """of the source to itself, each [B, H, S, S]"""
    decoder: tuple[Any, ...]
    """of the target to itself, each [B, H, T, T]"""
    cross: tuple[Any, ...]
    """of the target to the source, each [B, H, T, S]"""


@keras.saving.register_keras_serializable("tf_transformer")
class Transformer(LowRank, keras.Model):
    """The encoder-decoder Transformer of "Attention Is All You Need" (paper section 3).

    It takes one argument, the pair `(source_ids [B, S], target_ids [B, T])` of integers with padding 0, and gives the
    logits [B, T, V] in float32: at position t those of the token after `target_ids[:, t]`. Padding of source and
    target is masked inside.

    Args:
        num_layers: layers of the encoder, and of the decoder.
        num_decoder_layers: layers of the decoder; num_layers by default.
        d_model: width, D: a multiple of num_heads unless their widths are given, and even unless positions are learned.
        num_heads: attention heads, H.
        dff: width inside the feed-forward sub-layers.
        input_vocab_size: number of source tokens.
        target_vocab_size: number of target tokens, V.
        dropout_rate: on sub-layer outputs and on the embedding sums (paper 5.4).
        share_embeddings: "none"; "target" ties the output to the target embedding; "all" ties the source embedding
            as well (paper 3.4) and needs one vocabulary for both languages.
        output_bias: whether the logits have a bias, initially zero; the paper has none.
        attention_dropout_rate: on attention weights; the paper has none there.
        activation: of the feed-forward sub-layer, an element-wise one of Keras.
        activation_dropout_rate: inside the feed-forward sub-layer, after the activation; the paper has none there.
        norm: "post" normalises after each sub-layer, as the paper does; "pre" before it.
        norm_epsilon: added to the variance in layer norms.
        key_dim: width of the queries and keys of a head, d_k, if not d_model / num_heads (paper table 3, row B).
        value_dim: width of the values of a head, d_v, if not d_model / num_heads.
        positions: "sinusoidal" (any length; the paper), "learned" (up to max_positions; paper table 3, row E), or the
            sinusoids of "opus", "marian" or "m2m100" models.
        max_positions: rows of the learned position table. A longer input is an error where its length is known;
            elsewhere the caller must see to it.

    Raises:
        ValueError: d_model is not a multiple of num_heads, and no widths of heads are given; an unknown word for an
            option; embeddings all shared between vocabularies of different sizes.
    """

    def __init__(
        self,
        *,
        num_layers: int,
        d_model: int,
        num_heads: int,
        dff: int,
        input_vocab_size: int,
        target_vocab_size: int,
        dropout_rate: float = 0.1,
        share_embeddings: str = "none",
        num_decoder_layers: int | None = None,
        output_bias: bool = False,
        attention_dropout_rate: float = 0.0,
        activation: str = "relu",
        activation_dropout_rate: float = 0.0,
        norm: str = "post",
        norm_epsilon: float = 1e-6,
        key_dim: int | None = None,
        value_dim: int | None = None,
        positions: str = "sinusoidal",
        max_positions: int = 1024,
        **kwargs: Any,
    ):
        super().__init__(**{"name": "transformer", **kwargs})
        self.autocast = False  # ids that are floats would become others in a shorter type
        if share_embeddings not in ("none", "target", "all"):
            raise ValueError(f'share_embeddings must be "none", "target" or "all". Received: {share_embeddings=}')
        if share_embeddings == "all" and input_vocab_size != target_vocab_size:
            raise ValueError(
                'share_embeddings="all" needs one vocabulary for both languages. '
                f"Received: {input_vocab_size=}, {target_vocab_size=}"
            )
        decoder_layers = num_layers if num_decoder_layers is None else num_decoder_layers
        sizes = (num_layers, decoder_layers, d_model, num_heads, dff, input_vocab_size, target_vocab_size)
        if not all(isinstance(size, int) and size > 0 for size in sizes):
            raise ValueError(
                "sizes must be integers above 0. Received: "
                f"{num_layers=}, {num_decoder_layers=}, {d_model=}, {num_heads=}, {dff=}, {input_vocab_size=}, "
                f"{target_vocab_size=}"
            )
        stack: dict[str, Any] = dict(
            num_layers=num_layers,
            d_model=d_model,
            num_heads=num_heads,
            dff=dff,
            dropout_rate=dropout_rate,
            attention_dropout_rate=attention_dropout_rate,
            activation=activation,
            activation_dropout_rate=activation_dropout_rate,
            norm=norm,
            norm_epsilon=norm_epsilon,
            key_dim=key_dim,
            value_dim=value_dim,
            positions=positions,
            max_positions=max_positions,
        )
        self.config: dict[str, Any] = dict(
            stack,
            num_decoder_layers=num_decoder_layers,
            output_bias=output_bias,
            input_vocab_size=input_vocab_size,
            target_vocab_size=target_vocab_size,
            share_embeddings=share_embeddings,
        )
        policy = self.dtype_policy
        self.encoder = Encoder(**stack, vocab_size=input_vocab_size, name="encoder", dtype=policy)
        shared = self.encoder.embedding.tokens if share_embeddings == "all" else None
        stack |= {"num_layers": decoder_layers}
        self.decoder = Decoder(**stack, vocab_size=target_vocab_size, tokens=shared, name="decoder", dtype=policy)
        self.output_projection = None
        self.output_bias = None
        if share_embeddings == "none":
            # In the type of the variables, also under mixed precision, as tied logits are.
            variables = policy.variable_dtype
            self.output_projection = Linear(target_vocab_size, use_bias=False, name="output", dtype=variables)

    def build(self, input_shape: Any) -> None:
        """Create the weights for a pair of shapes [B, S], [B, T]."""
        source, target = _pair(input_shape, all(isinstance(shape, tuple | list) for shape in input_shape))
        d_model = self.config["d_model"]
        self.encoder.build(source)
        self.decoder.build(target, (*source, d_model))
        if self.output_projection is not None:
            self.output_projection.build((*target, d_model))
        if self.config["output_bias"]:
            self.output_bias = self.add_weight(
                name="output_bias",
                shape=(self.config["target_vocab_size"],),
                dtype="float32",
                initializer="zeros",
                autocast=False,
            )

    def enable_lora(
        self, rank: int, lora_alpha: float | None = None, new_tokens: tuple[int, int] | list[int] = (0, 0)
    ) -> None:
        """Freeze all weights, and learn factors of low rank and the embeddings of new tokens, as in `LowRank`.

        Args:
            rank: the rank of the products.
            lora_alpha: scales them; the rank by default.
            new_tokens: how many of the last tokens of the source and of the target are new.

        Raises:
            ValueError: a model that is not built, or has such factors already; more new tokens than there are.
        """
        tables = (self.encoder.embedding.tokens, self.decoder.embedding.tokens)
        for table, rows in dict(zip(tables, new_tokens, strict=True)).items():
            if rows:
                table.enable_lora(rows)
        super().enable_lora(rank, lora_alpha)
        if any(new_tokens):
            self.lora = {**(self.lora or {}), "new_tokens": [*new_tokens]}

    def __call__(self, inputs: Any, *others: Any, **settings: Any) -> Any:
        """As `call`, but refuse a second argument, which Keras would take for `training`."""
        _pair(inputs, not others)
        return super().__call__(inputs, **settings)

    def call(self, inputs: tuple[Any, Any], training: bool | None = None, return_attention_scores: bool = False) -> Any:
        """Return the logits [B, T, V], float32, for `(source_ids [B, S], target_ids [B, T])`.

        Args:
            inputs: the pair.
            training: whether to apply dropout.
            return_attention_scores: whether to return the `AttentionWeights` as well.

        Raises:
            ValueError: the input is not such a pair.
        """
        source_ids, target_ids = _pair(inputs)
        mask, source_mask = padding_mask(target_ids), padding_mask(source_ids)
        settings = dict(training=training, return_attention_scores=True)
        context, encoder = self.encoder(source_ids, mask=source_mask, **settings)
        x, decoder, cross = self.decoder(target_ids, context, mask=mask, context_mask=source_mask, **settings)
        logits = self._logits(x)
        return (logits, AttentionWeights(encoder, decoder, cross)) if return_attention_scores else logits

    def encode(self, source_ids: Any) -> Memory:
        """Encode source_ids [B, S] for decoding, without dropout."""
        self._build_if_new()
        mask = padding_mask(source_ids)
        return self.decoder.project_context(self.encoder(source_ids, mask=mask, training=False), mask)

    def empty_cache(self, batch: Any, length: Any = None) -> tuple[Cache, ...]:
        """Return the cache of `decode_step` before the first step, for `batch` hypotheses.

        It grows with every step, or has room for `length` steps. In that case no shape changes, as XLA requires.
        """
        return self.decoder.empty_cache(batch, length)

    def decode_step(
        self, ids: Any, position: Any, cache: tuple[Cache, ...], memory: Memory, num_hypotheses: int | None = None
    ) -> tuple[Any, Any, Any]:
        """Decode one position of K hypotheses for each of B sources, without dropout; rows are ordered by source.

        Args:
            ids: the tokens at `position`, [B * K]; the start token at position 0.
            position: 0 or more, scalar.
            cache: what the step at the position before returned; at position 0 `empty_cache`.
            memory: what `encode` returned.
            num_hypotheses: K, where it is known. The step takes fewer operations then than where K has to be found from
                the sizes of the tensors.

        Returns:
            The logits [B * K, V] of the next token, float32; for every layer the weights of the attention to the
            source, [B, H, K, S]; the cache for the next step.
        """
        x, weights, cache = self.decoder.step(ids, position, cache, memory, num_hypotheses)
        return self._logits(x), weights, cache

    def attention(self, inputs: tuple[Any, Any]) -> AttentionWeights:
        """Return the weights of all attention in a pass through `(source_ids [B, S], target_ids [B, T])`, no dropout.

        Row t of the decoder's weights shows what was attended to in predicting the token after `target_ids[:, t]`.
        """
        return self(inputs, training=False, return_attention_scores=True)[1]

    @property
    def num_decoder_layers(self) -> int:
        """The number of layers of the decoder."""
        return len(self.decoder.layers)

    @property
    def max_positions(self) -> int | None:
        """The number of positions that the model has learned; None if it takes any."""
        return self.config["max_positions"] if self.config["positions"] == "learned" else None

    def _build_if_new(self) -> None:
        """Create the weights, which Keras does only where a model is called as a whole."""
        if not self.built:
            self.build(((None, None), (None, None)))

    def _logits(self, x: Any) -> Any:
        logits = self.decoder.embedding.tokens.logits if self.output_projection is None else self.output_projection
        y = ops.cast(logits(x), "float32")
        return y if self.output_bias is None else y + self.output_bias

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return super().get_config() | self.config


def _pair(inputs: Any, has_no_more: bool = True) -> Any:
    """Return inputs, or their shapes, if they are a pair and all that was given; otherwise raise ValueError."""
    if not (has_no_more and isinstance(inputs, tuple | list) and len(inputs) == 2):
        raise ValueError("call the model with a pair, model((source_ids, target_ids)): each is [B, length], integers")
    return inputs
