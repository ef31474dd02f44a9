"""The settings of a run: all sections, and what must agree between them."""

import dataclasses
from dataclasses import dataclass, field
from typing import Any

from tf_transformer.config.data import DataConfig
from tf_transformer.config.decoding import DecodingConfig
from tf_transformer.config.model import ModelConfig
from tf_transformer.config.tokenizer import TokenizerConfig
from tf_transformer.config.training import TrainingConfig
from tf_transformer.errors import InputError

WITHOUT_KEY = {"data": {"held_out_by": "pair", "tsv": "plain", "columns": None, "inline_tags": False}}
"""What settings mean that were written before a setting existed."""
NEW = {"data": {"held_out_by": "source", "tsv": "recognized"}}
"""What the same settings mean where text is read for the first time and they are None."""
MAY_BE_LEFT_OUT = {
    ("model", "input_vocab_size"),
    ("model", "target_vocab_size"),
    ("data", "source"),
    ("data", "target"),
    ("data", "held_out_by"),
    ("data", "tsv"),
    ("tokenizer", "normalization"),
}
"""The settings that may be left out where a run starts or continues, or trains on a prepared corpus. Sizes come from
the tokenizer; how a .tsv is read and split and how text is normalised come from what is there. Languages that may be
left out are names, which do not change the text."""


@dataclass(frozen=True, kw_only=True)
class Config:
    """All settings of a run. Derive one config from another with `dataclasses.replace`."""

    model: ModelConfig = field(default_factory=ModelConfig)
    tokenizer: TokenizerConfig = field(default_factory=TokenizerConfig)
    data: DataConfig = field(default_factory=DataConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    decoding: DecodingConfig = field(default_factory=DecodingConfig)

    def __post_init__(self) -> None:
        if self.model.share_embeddings == "all" and not (self.tokenizer.shared or self.tokenizer.file):
            raise InputError(
                "model.share_embeddings=all needs one vocabulary: set tokenizer.shared=true, or "
                "model.share_embeddings to target or none. Received: tokenizer.shared=false"
            )
        if self.data.bpe_dropout and not (self.tokenizer.model_type == "bpe" or self.tokenizer.file):
            raise InputError(
                "data.bpe_dropout needs a BPE: set tokenizer.model_type=bpe. "
                f"Received: tokenizer.model_type={self.tokenizer.model_type}"
            )
        if self.model.positions == "learned" and self.data.max_length > self.model.max_positions:
            raise InputError(
                "model.max_positions must be at least data.max_length if positions are learned. "
                f"Received: model.max_positions={self.model.max_positions}, data.max_length={self.data.max_length}"
            )
        layers = self.model.num_decoder_layers or self.model.num_layers
        if (self.decoding.attention_layer or 1) > layers:
            raise InputError(
                f"decoding.attention_layer must be at most the number of decoder layers, {layers}. "
                f"Received: {self.decoding.attention_layer}"
            )

    def as_dict(self) -> dict[str, Any]:
        """Return nested dictionaries that JSON and `override` take."""
        return dataclasses.asdict(self)


def is_left_out(section: str, key: str, before: Any, now: Any) -> bool:
    """Say whether two values of a setting are not compared, because one of them is not given."""
    return (section, key) in MAY_BE_LEFT_OUT and None in (before, now)
