"""A MarianMT model trained by transformers, and what transformers makes of it: what an import is compared with.

    python scripts/oracles/marian.py --data FOLDER --source en --target de --output FOLDER [--steps 2000]

It needs torch, transformers and sentencepiece, and nothing of tf_transformer. `--data` has train.LANGUAGE and
test.LANGUAGE files. The output is a folder as transformers saves it, with `expected.json`: for held-out sentences their
ids, and what `generate` finds by greedy search and by beams of 4; and `expected.npz`: the logits of the first of them.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import sentencepiece
import torch
from training import SEARCH, found_by, lines, logits_of, train
from transformers import MarianConfig, MarianMTModel, MarianTokenizer


def main() -> None:
    """Train, save, and write down what is found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--source", default="en")
    parser.add_argument("--target", default="de")
    parser.add_argument("--test", default="test", help="the split that is held out (default: %(default)s)")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=2000, help="updates (default: %(default)s)")
    parser.add_argument("--sentences", type=int, default=1000, help="held out (default: %(default)s)")
    parser.add_argument("--vocabulary", type=int, default=4000, help="pieces of each side (default: %(default)s)")
    parser.add_argument("--width", type=int, default=128, help="d_model (default: %(default)s)")
    parser.add_argument("--layers", type=int, nargs=2, default=(3, 2), help="of encoder and decoder (default: 3 2)")
    options = parser.parse_args()
    torch.manual_seed(1)
    languages = (options.source, options.target)
    pairs = list(zip(*(lines(options.data / f"train.{language}") for language in languages), strict=True))
    test = lines(options.data / f"{options.test}.{options.source}")[: options.sentences]
    options.output.mkdir(parents=True)
    tokenizer = _tokenizer(options.output, pairs, languages, options.vocabulary)
    model = _model(tokenizer, options.width, *options.layers)

    def batch_of(sources: list[str], targets: list[str]) -> Any:
        return tokenizer(sources, text_target=targets, return_tensors="pt", padding=True)

    def without_bias_of_padding() -> None:  # as published models have it
        with torch.no_grad():
            model.final_logits_bias[:, tokenizer.pad_token_id] = 0.0

    train(model, [(pairs, batch_of)], options.steps, without_bias_of_padding)
    model.save_pretrained(options.output)
    tokenizer.save_pretrained(options.output)
    (options.output / "expected.json").write_text(json.dumps(_expected(options.output, model.eval(), tokenizer, test)))


def _tokenizer(folder: Path, pairs: list[tuple[str, str]], languages: tuple[str, str], size: int) -> MarianTokenizer:
    """Make tokenizers as OPUS-MT's: a SentencePiece model for each side, and one vocabulary for both."""
    vocabulary = {"</s>": 0, "<unk>": 1}
    files = {}
    for side, name in enumerate(("source", "target")):
        files[name] = folder / f"{name}.spm"
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=(pair[side] for pair in pairs),
            model_prefix=str(folder / name),
            vocab_size=size,
            minloglevel=2,
        )
        (folder / f"{name}.model").rename(files[name])
        (folder / f"{name}.vocab").unlink()
        processor = sentencepiece.SentencePieceProcessor(str(files[name]))
        for i in range(processor.get_piece_size()):
            if not (processor.is_control(i) or processor.is_unknown(i)):
                vocabulary.setdefault(processor.id_to_piece(i), len(vocabulary))
    vocabulary.setdefault(f">>{languages[1]}<<", len(vocabulary))
    vocabulary["<pad>"] = len(vocabulary)
    (folder / "vocab.json").write_text(json.dumps(vocabulary, ensure_ascii=False), "utf-8")
    return MarianTokenizer(
        source_spm=str(files["source"]),
        target_spm=str(files["target"]),
        vocab=str(folder / "vocab.json"),
        source_lang=languages[0],
        target_lang=languages[1],
        model_max_length=512,
    )


def _model(tokenizer: MarianTokenizer, width: int, encoder: int, decoder: int) -> MarianMTModel:
    pad = tokenizer.pad_token_id
    config = MarianConfig(
        vocab_size=len(tokenizer),
        d_model=width,
        encoder_layers=encoder,
        decoder_layers=decoder,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=2 * width,
        decoder_ffn_dim=2 * width,
        activation_function="swish",
        scale_embedding=True,
        pad_token_id=pad,
        eos_token_id=0,
        forced_eos_token_id=0,
        decoder_start_token_id=pad,
        bad_words_ids=[[pad]],
        max_position_embeddings=512,
    )
    return MarianMTModel(config)


def _expected(
    folder: Path, model: MarianMTModel, tokenizer: MarianTokenizer, sentences: list[str]
) -> dict[str, object]:
    np.savez(folder / "expected.npz", **logits_of(model, tokenizer, sentences[:5]))
    return {
        "sentences": sentences,
        "ids": [tokenizer(sentence)["input_ids"] for sentence in sentences],
        "search": SEARCH,
        "greedy": found_by(model, tokenizer, sentences, 1),
        "beam": found_by(model, tokenizer, sentences, SEARCH["num_beams"]),
    }


if __name__ == "__main__":
    main()
