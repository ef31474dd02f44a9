"""A Transformer of OpenNMT-tf, in an environment of its own, because OpenNMT-tf supports TensorFlow up to 2.13."""

import tempfile
from pathlib import Path
from typing import Any

import opennmt

SPECIAL = ["<blank>", "<s>", "</s>"]


def opennmt_model(given: dict[str, Any], **params: Any) -> opennmt.models.Transformer:
    """Return a model of the given sizes, with tied embeddings, dropout where ours has it, and post-norm."""
    model = opennmt.models.Transformer(
        num_layers=given["num_layers"],
        num_units=given["d_model"],
        num_heads=given["num_heads"],
        ffn_inner_dim=given["dff"],
        dropout=0.1,
        attention_dropout=0,
        ffn_dropout=0,
        share_embeddings=opennmt.models.EmbeddingsSharingLevel.ALL,
        pre_norm=False,
        output_layer_bias=False,
    )
    with tempfile.TemporaryDirectory() as folder:
        words = Path(folder) / "vocabulary.txt"
        # The unknown token is added to what the file has.
        count = given["vocabulary"] - len(SPECIAL) - 1
        words.write_text("\n".join([*SPECIAL, *(f"word{i}" for i in range(count))]) + "\n")
        model.initialize({"source_vocabulary": str(words), "target_vocabulary": str(words)}, params)
        model.create_variables()
    return model
