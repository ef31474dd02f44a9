"""A MarianMT model trained by transformers, and what transformers makes of it: what an import is compared with.

    python scripts/oracles/marian.py --data FOLDER --source en --target de --output FOLDER [--steps 2000]

It needs torch, transformers and sentencepiece, and nothing of tf_transformer. `--data` has train.LANGUAGE and
test.LANGUAGE files. The output is a folder as transformers saves it, with `expected.json`: for held-out sentences their
ids, and what `generate` finds by greedy search and by beams of 4; and `expected.npz`: the logits of the first of them.
"""

import argparse
import json
import random
import time
from pathlib import Path

import numpy as np
import sentencepiece
import torch
from transformers import MarianConfig, MarianMTModel, MarianTokenizer

RATE = 1.5e-3
"""The highest learning rate; it falls to a twentieth of that."""
LAYERS = {"encoder_layers": 3, "decoder_layers": 2}
SEARCH = {"max_new_tokens": 60, "num_beams": 4, "length_penalty": 1.0, "early_stopping": "never"}


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
    options = parser.parse_args()
    torch.manual_seed(1)
    languages = (options.source, options.target)
    train = list(zip(*(_lines(options.data / f"train.{language}") for language in languages), strict=True))
    test = _lines(options.data / f"{options.test}.{options.source}")[: options.sentences]
    options.output.mkdir(parents=True)
    tokenizer = _tokenizer(options.output, train, languages, options.vocabulary)
    model = _model(tokenizer, options.width)
    _train(model, tokenizer, train, options.steps)
    model.save_pretrained(options.output)
    tokenizer.save_pretrained(options.output)
    (options.output / "expected.json").write_text(json.dumps(_expected(options.output, model.eval(), tokenizer, test)))


def _lines(path: Path) -> list[str]:
    return path.read_text("utf-8").splitlines()


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


def _model(tokenizer: MarianTokenizer, width: int) -> MarianMTModel:
    pad = tokenizer.pad_token_id
    config = MarianConfig(
        vocab_size=len(tokenizer),
        d_model=width,
        **LAYERS,
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


def _train(model: MarianMTModel, tokenizer: MarianTokenizer, pairs: list[tuple[str, str]], steps: int) -> None:
    rng, start = random.Random(1), time.monotonic()
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, betas=(0.9, 0.98), weight_decay=0.0)
    model.train()
    for step in range(steps):
        rate = min((step + 1) / 400, 1.0) * max(0.05, 1 - step / steps)
        for group in optimizer.param_groups:
            group["lr"] = RATE * rate
        # Like lengths together.
        chosen = sorted(rng.sample(pairs, 64 * 8), key=lambda pair: len(pair[0]))
        first = rng.randrange(8) * 64
        sources, targets = zip(*chosen[first : first + 64], strict=True)
        batch = tokenizer(list(sources), text_target=list(targets), return_tensors="pt", padding=True)
        batch["labels"][batch["labels"] == tokenizer.pad_token_id] = -100
        loss = model(**batch).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        with torch.no_grad():  # as published models have it
            model.final_logits_bias[:, tokenizer.pad_token_id] = 0.0
        if step % 100 == 99:
            print(f"step {step + 1}, {time.monotonic() - start:.0f} s, loss {loss.item():.3f}", flush=True)


@torch.no_grad()
def _expected(
    folder: Path, model: MarianMTModel, tokenizer: MarianTokenizer, sentences: list[str]
) -> dict[str, object]:
    first = tokenizer(sentences[:5], return_tensors="pt", padding=True)
    generated = model.generate(**first, num_beams=1, max_new_tokens=SEARCH["max_new_tokens"])
    logits = model(**first, decoder_input_ids=generated[:, :-1]).logits
    np.savez(folder / "expected.npz", source=first["input_ids"], target=generated[:, :-1], logits=logits)
    found: dict[str, object] = {
        "sentences": sentences,
        "ids": [tokenizer(sentence)["input_ids"] for sentence in sentences],
        "search": SEARCH,
    }
    for name, beams in (("greedy", 1), ("beam", SEARCH["num_beams"])):
        texts, scores, ids = [], [], []
        for i in range(0, len(sentences), 32):
            batch = tokenizer(sentences[i : i + 32], return_tensors="pt", padding=True)
            search = SEARCH | {"num_beams": beams} if beams > 1 else {"max_new_tokens": SEARCH["max_new_tokens"]}
            result = model.generate(**batch, **search, output_scores=True, return_dict_in_generate=True)
            texts += tokenizer.batch_decode(result.sequences, skip_special_tokens=True)
            ids += result.sequences.tolist()
            if beams > 1:
                scores += result.sequences_scores.tolist()
        found[name] = {"texts": texts, "scores": scores, "ids": ids}
    return found


if __name__ == "__main__":
    main()
