"""A folder of NLLB-200's shapes and files with random weights, to see what memory and time its size takes.

    python scripts/oracles/random_nllb.py FOLDER [--layers 12]

It needs what tf_transformer needs. By default it is NLLB-200's distilled model of 600 million parameters: 256,206
pieces, 202 languages, 12 and 12 layers of width 1,024.
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file
from sentencepiece import sentencepiece_model_pb2

PIECES, VOCABULARY, WIDTH, INNER = 256_000, 256_206, 1024, 4096
LANGUAGES = 202
CHARACTERS = "▁etaoinshrdlcumwfgypbvkjxqzETAOINSHRDLCUMWFGYPBVKJXQZ.,!?'-0123456789äöüßéèàçñ"


def main() -> None:
    """Write the folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--layers", type=int, default=12, help="of the encoder, and of the decoder (default: 12)")
    options = parser.parse_args()
    options.folder.mkdir(parents=True)
    config = {
        "model_type": "m2m_100",
        "vocab_size": VOCABULARY,
        "d_model": WIDTH,
        "encoder_layers": options.layers,
        "decoder_layers": options.layers,
        **{f"{side}_attention_heads": 16 for side in ("encoder", "decoder")},
        **{f"{side}_ffn_dim": INNER for side in ("encoder", "decoder")},
        "activation_function": "relu",
        "scale_embedding": True,
        "max_length": 200,
    }
    (options.folder / "config.json").write_text(json.dumps(config))
    codes = [f"{chr(97 + i // 26)}{chr(97 + i % 26)}x_Latn" for i in range(LANGUAGES)]
    ids = {code: PIECES + 1 + i for i, code in enumerate(codes)}
    (options.folder / "added_tokens.json").write_text(json.dumps(ids))
    (options.folder / "sentencepiece.bpe.model").write_bytes(_pieces())
    save_file(dict(_weights(options.layers)), options.folder / "model.safetensors")


def _pieces() -> bytes:
    """Return a BPE of made-up words: each is a word before it, and a character."""
    model = sentencepiece_model_pb2.ModelProto()
    kind = sentencepiece_model_pb2.ModelProto.SentencePiece
    model.trainer_spec.model_type = model.trainer_spec.BPE
    model.normalizer_spec.name = "identity"
    special = (("<unk>", kind.UNKNOWN), ("<s>", kind.CONTROL), ("</s>", kind.CONTROL))
    words = [""]
    pieces: dict[str, None] = {}
    for word in words:
        for character in CHARACTERS:
            pieces.setdefault(word + character)
            words.append(word + character)
        if len(pieces) >= PIECES:
            break
    chosen = list(pieces)[: PIECES - len(special)]
    model.pieces.extend(kind(piece=piece, type=type) for piece, type in special)
    model.pieces.extend(kind(piece=piece, score=-float(i)) for i, piece in enumerate(chosen))
    return model.SerializeToString()


def _weights(layers: int) -> Iterator[tuple[str, np.ndarray]]:
    rng = np.random.default_rng(1)

    def normal(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape, np.float32) * np.float32(shape[-1] ** -0.5)

    yield "model.shared.weight", normal(VOCABULARY, WIDTH)
    for side in ("encoder", "decoder"):
        for i in range(layers):
            place = f"model.{side}.layers.{i}"
            attentions = ("self_attn", "encoder_attn") if side == "decoder" else ("self_attn",)
            for attention in attentions:
                for part in ("q_proj", "k_proj", "v_proj", "out_proj"):
                    yield f"{place}.{attention}.{part}.weight", normal(WIDTH, WIDTH)
                    yield f"{place}.{attention}.{part}.bias", np.zeros(WIDTH, np.float32)
            for name, (out, into) in {"fc1": (INNER, WIDTH), "fc2": (WIDTH, INNER)}.items():
                yield f"{place}.{name}.weight", normal(out, into)
                yield f"{place}.{name}.bias", np.zeros(out, np.float32)
            for norm in (*(f"{attention}_layer_norm" for attention in attentions), "final_layer_norm"):
                yield from _norm(f"{place}.{norm}")
        yield from _norm(f"model.{side}.layer_norm")


def _norm(place: str) -> Iterator[tuple[str, np.ndarray]]:
    yield f"{place}.weight", np.ones(WIDTH, np.float32)
    yield f"{place}.bias", np.zeros(WIDTH, np.float32)


if __name__ == "__main__":
    main()
