"""The settings of a run: sections, presets, and how a user overrides them."""

from tf_transformer.config.overrides import override
from tf_transformer.config.presets import PRESETS, preset
from tf_transformer.config.sections import (
    Config,
    DataConfig,
    DecodingConfig,
    ModelConfig,
    TokenizerConfig,
    TrainingConfig,
)

__all__ = [
    "PRESETS",
    "Config",
    "DataConfig",
    "DecodingConfig",
    "ModelConfig",
    "TokenizerConfig",
    "TrainingConfig",
    "override",
    "preset",
]
