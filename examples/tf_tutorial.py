# %% [markdown]
# # Neural machine translation with a Transformer and Keras, on tf_transformer's layers
# The steps of TensorFlow's tutorial of this name, in its order. It downloads TED talks. Here the text is the toy
# corpus, so that all runs without a network; the tutorial's own is
# `DataConfig(corpus="tfds:ted_hrlr_translate/pt_to_en", source="pt", target="en")`.

# %% Data handling: text, tokenizer, batches of like lengths instead of 64 sentences that are cut at 128 tokens
import os

import keras
import tensorflow as tf

from tf_transformer import NoamSchedule, Transformer, Translator, positional_encoding
from tf_transformer.config import DataConfig, DecodingConfig, TokenizerConfig
from tf_transformer.data import Batches, encode, read
from tf_transformer.tokenizers import Tokenizer, train_tokenizer
from tf_transformer.training import SmoothedCrossEntropy, TokenAccuracy, TokenLoss
from tf_transformer.training.callbacks import EpochOrder

keras.utils.set_random_seed(0)
data = DataConfig(corpus="toy")
examples, validation = read(data, "train"), read(data, "val")
# One vocabulary for both languages; the tutorial has two.
tokenizer = Tokenizer(train_tokenizer([*examples.sources, *examples.targets], TokenizerConfig(vocab_size=1000)))
print(tokenizer.tokenize(["The cat sleeps."]))
train = Batches(encode(examples, tokenizer, tokenizer, max_length=128), 2048, seed=0)
val = Batches(encode(validation, tokenizer, tokenizer, max_length=128), 2048)

# %% The embedding and positional encoding layer: part of Encoder and Decoder here
print(positional_encoding(2048, 512).shape)

# %% The Transformer, with the tutorial's hyperparameters but for 2 layers in place of 4
model = Transformer(
    num_layers=2,
    d_model=128,
    num_heads=8,
    dff=512,
    dropout_rate=0.1,
    input_vocab_size=tokenizer.vocab_size,
    target_vocab_size=tokenizer.vocab_size,
)
model.build(((None, None), (None, None)))
model.summary()

# %% Training: the schedule and optimizer of the paper; loss and accuracy leave padding out
learning_rate = NoamSchedule(d_model=128, warmup_steps=400)
optimizer = keras.optimizers.Adam(learning_rate, beta_1=0.9, beta_2=0.98, epsilon=1e-9)
metrics = [TokenLoss(0.0), TokenAccuracy()]
model.compile(optimizer, SmoothedCrossEntropy(0.0), metrics=metrics, jit_compile=False)  # batches have many shapes
steps = int(os.environ.get("TUTORIAL_STEPS", "600"))  # two minutes on two cores
order = EpochOrder(train, max_steps=steps)
history = model.fit(train.dataset(), validation_data=val.dataset(), epochs=9, callbacks=[order], shuffle=False)

# %% Inference: greedy, as in the tutorial; a beam of 4 is the default
translator = Translator(model, tokenizer, tokenizer, DecodingConfig(beam_size=1))
sentence = "The old woman gives the small child a red book."
print(translator(tf.constant(sentence)).numpy().decode())

# %% Attention: [layers, heads, target tokens, source tokens]; tf_transformer.plotting.attention draws it
print(translator.attention(sentence).weights.shape)
