"""The settings of a run: sections, presets, and how a user overrides them."""

from tf_transformer.config.data import DataConfig
from tf_transformer.config.decoding import DecodingConfig
from tf_transformer.config.model import ModelConfig
from tf_transformer.config.overrides import override
from tf_transformer.config.presets import PRESETS, preset
from tf_transformer.config.sections import Config
from tf_transformer.config.tokenizer import TokenizerConfig
from tf_transformer.config.training import TrainingConfig

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
