"""Named settings to start from."""

import types
from collections.abc import Mapping

from tf_transformer.config.data import DataConfig
from tf_transformer.config.model import ModelConfig
from tf_transformer.config.sections import Config
from tf_transformer.config.tokenizer import TokenizerConfig
from tf_transformer.config.training import TrainingConfig
from tf_transformer.errors import unknown

PRESETS: Mapping[str, Config] = types.MappingProxyType(
    {
        # 4 layers of width 128, which a laptop trains on tens of thousands of sentences in half an hour.
        "tiny": Config(
            model=ModelConfig(
                num_layers=4,
                d_model=128,
                num_heads=4,
                dff=512,
                dropout_rate=0.2,
                # With so few updates, pre-norm learns several times faster than post-norm.
                norm="pre",
                share_embeddings="all",
            ),
            tokenizer=TokenizerConfig(vocab_size=10_000),
            # Small batches and a high rate learn more from each token; the moving average removes the noise.
            data=DataConfig(batch_tokens=1_500),
            training=TrainingConfig(max_steps=6_000, warmup_steps=1_000, learning_rate_factor=1.8, ema_decay=0.998),
        ),
        # The sizes of the TensorFlow tutorial.
        "small": Config(
            model=ModelConfig(num_layers=4, d_model=128, num_heads=8, dff=512, share_embeddings="all"),
            training=TrainingConfig(max_steps=20_000, learning_rate_factor=2.0),
        ),
        # The paper's table 3.
        "base": Config(
            model=ModelConfig(share_embeddings="all"),
            tokenizer=TokenizerConfig(vocab_size=37_000),
            data=DataConfig(batch_tokens=25_000),
        ),
        "big": Config(
            model=ModelConfig(d_model=1024, num_heads=16, dff=4096, dropout_rate=0.3, share_embeddings="all"),
            tokenizer=TokenizerConfig(vocab_size=37_000),
            data=DataConfig(batch_tokens=25_000),
            training=TrainingConfig(max_steps=300_000, keep_last=20),
        ),
    }
)


def preset(name: str) -> Config:
    """Return the preset called `name`; for an unknown name, InputError suggests the nearest."""
    if name not in PRESETS:
        raise unknown("preset", name, PRESETS)
    return PRESETS[name]
