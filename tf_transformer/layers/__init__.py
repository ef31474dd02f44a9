"""The layers of the Transformer, in pure Keras: they run on every Keras backend."""

from tf_transformer.layers.attention import MultiHeadAttention, scaled_dot_product_attention
from tf_transformer.layers.decoder import Decoder, DecoderLayer
from tf_transformer.layers.encoder import Encoder, EncoderLayer, FeedForward
from tf_transformer.layers.masks import causal_mask, padding_mask
from tf_transformer.layers.positions import positional_encoding

__all__ = [
    "Decoder",
    "DecoderLayer",
    "Encoder",
    "EncoderLayer",
    "FeedForward",
    "MultiHeadAttention",
    "causal_mask",
    "padding_mask",
    "positional_encoding",
    "scaled_dot_product_attention",
]
