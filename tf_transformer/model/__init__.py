"""The Transformer and its layers in pure Keras, which run on every Keras backend."""

from tf_transformer.model.attention import MultiHeadAttention, scaled_dot_product_attention
from tf_transformer.model.decoder import Decoder, DecoderLayer
from tf_transformer.model.encoder import Encoder, EncoderLayer
from tf_transformer.model.ensemble import Ensemble
from tf_transformer.model.feed_forward import FeedForward
from tf_transformer.model.masks import causal_mask, padding_mask
from tf_transformer.model.positions import positional_encoding
from tf_transformer.model.transformer import Transformer

__all__ = [
    "Decoder",
    "DecoderLayer",
    "Encoder",
    "EncoderLayer",
    "Ensemble",
    "FeedForward",
    "MultiHeadAttention",
    "Transformer",
    "causal_mask",
    "padding_mask",
    "positional_encoding",
    "scaled_dot_product_attention",
]
