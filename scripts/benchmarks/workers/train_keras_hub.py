"""A training step of KerasHub's `TransformerEncoder` and `TransformerDecoder` under `model.fit`."""

import keras
import keras_hub
from protocol import random_ids, spec
from repeated import repeated, serve_fit

given = spec()
if given["dtype"] != "float32":
    keras.config.set_dtype_policy(f"mixed_{given['dtype']}")
layers, width, heads, inner = given["num_layers"], given["d_model"], given["num_heads"], given["dff"]
tokens = keras_hub.layers.ReversibleEmbedding(given["vocabulary"], width, tie_weights=True)
positions = keras_hub.layers.SinePositionEncoding()


def embed(ids):
    """Return the embeddings of tokens and positions."""
    x = tokens(ids) * width**0.5
    return keras.layers.Dropout(0.1)(x + positions(x))


source, target = keras.Input((None,), dtype="int32"), keras.Input((None,), dtype="int32")
context, x = embed(source), embed(target)
for _ in range(layers):
    context = keras_hub.layers.TransformerEncoder(inner, heads, dropout=0.1)(context)
for _ in range(layers):
    x = keras_hub.layers.TransformerDecoder(inner, heads, dropout=0.1)(x, context)
model = keras.Model([source, target], tokens(x, reverse=True))
model.compile(
    keras.optimizers.Adam(1e-4, beta_2=0.98, epsilon=1e-9),
    keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    jit_compile=False,
)
ids, labels = random_ids(given)
serve_fit(model, repeated(((ids, labels[:, :-1]), labels[:, 1:])), model.count_params())
