"""Write a folder of MarianMT as transformers.js reads it; needs optimum-onnx, onnxruntime and sentencepiece."""

import base64
import json
from pathlib import Path
from typing import Any

from onnxruntime.quantization import QuantType, quantize_dynamic
from optimum.exporters.onnx import main_export
from protocol import spec
from sentencepiece import sentencepiece_model_pb2

SPACE = {"type": "Metaspace", "replacement": "\u2581", "add_prefix_space": True}
given = spec()
source, output = Path(given["model"]), Path(given["folder"]) / "transformers_js" / "model"


def tokenizer() -> dict[str, Any]:
    """Return the tokenizer of the source, in the ids of both sides, as `tokenizer.json`, which Marian has not."""
    model = sentencepiece_model_pb2.ModelProto.FromString((source / "source.spm").read_bytes())
    scores = {piece.piece: piece.score for piece in model.pieces if piece.type == piece.NORMAL}
    ids = json.loads((source / "vocab.json").read_text("utf-8"))
    never = min(scores.values()) - 100  # a piece of the target alone
    special = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    end = {"id": "</s>", "ids": [ids["</s>"]], "tokens": ["</s>"]}
    parts = [{"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "</s>", "type_id": 0}}]
    rules = base64.b64encode(model.normalizer_spec.precompiled_charsmap).decode()
    return {
        "added_tokens": [{"id": ids[text], "content": text} | special for text in ("</s>", "<unk>", "<pad>")],
        "normalizer": {"type": "Precompiled", "precompiled_charsmap": rules},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, SPACE]},
        "post_processor": {"type": "TemplateProcessing", "single": parts, "pair": [], "special_tokens": {"</s>": end}},
        "decoder": SPACE,
        "model": {
            "type": "Unigram",
            "unk_id": ids["<unk>"],
            "vocab": [[piece, scores.get(piece, never)] for piece in sorted(ids, key=ids.__getitem__)],
        },
    }


main_export(str(source), output, task="text2text-generation-with-past", do_validation=False)
(output / "onnx").mkdir()
for name in ("encoder_model", "decoder_model_merged"):
    quantized = output / "onnx" / f"{name}_quantized.onnx"
    within = {"EnableSubgraph": True}  # the steps with a cache and without one are in branches
    quantize_dynamic(output / f"{name}.onnx", quantized, weight_type=QuantType.QInt8, extra_options=within)
(output / "tokenizer.json").write_text(json.dumps(tokenizer()))
print(json.dumps({}))
