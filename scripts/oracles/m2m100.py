"""An M2M100 or NLLB model trained by transformers, and what transformers makes of it: what an import is compared with.

    python scripts/oracles/m2m100.py --data FOLDER --kind nllb --languages en de fr --output FOLDER [--steps 2000]

It needs torch, transformers, sentencepiece and protobuf, and nothing of tf_transformer. `--data` has train.LANGUAGE and
test.LANGUAGE files that go line by line; the model learns from the first language to each other one, and back. The
output is a folder as the Hugging Face Hub has them (`--kind m2m100`: with a vocab.json; `nllb`: by SentencePiece's own
ids), with `expected.json`: for held-out sentences in each direction their ids, and what `generate` finds by greedy
search and by beams of 4; and `expected.npz`: the logits of some.
"""

import argparse
import itertools
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import sentencepiece
import torch
from training import SEARCH, found_by, lines, logits_of, train
from transformers import M2M100Config, M2M100ForConditionalGeneration, M2M100Tokenizer, NllbTokenizer

NLLB = {"en": "eng_Latn", "de": "deu_Latn", "fr": "fra_Latn"}
"""What NLLB calls the languages."""
MODEL = "sentencepiece.bpe.model"
LAYERS = {"encoder_layers": 3, "decoder_layers": 2}


def main() -> None:
    """Train, save, and write down what is found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--kind", choices=("m2m100", "nllb"), required=True)
    parser.add_argument("--languages", nargs="+", default=["en", "de"])
    parser.add_argument("--test", default="test", help="the split that is held out (default: %(default)s)")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=2000, help="updates (default: %(default)s)")
    parser.add_argument("--sentences", type=int, default=1000, help="held out, in all (default: %(default)s)")
    parser.add_argument("--vocabulary", type=int, default=6000, help="pieces (default: %(default)s)")
    parser.add_argument("--width", type=int, default=128, help="d_model (default: %(default)s)")
    options = parser.parse_args()
    torch.manual_seed(1)
    text = {language: lines(options.data / f"train.{language}") for language in options.languages}
    test = {language: lines(options.data / f"{options.test}.{language}") for language in options.languages}
    options.output.mkdir(parents=True)
    _train_pieces(options.output, itertools.chain(*text.values()), options.vocabulary, options.kind)
    tokenizer = _tokenizer(options.output, options.kind, options.languages)
    size = len(tokenizer)
    if options.kind == "m2m100":
        size = tokenizer.encoder_size + len(tokenizer.lang_code_to_id) + tokenizer.num_madeup_words
    model = _model(size, options.width)
    named = NLLB if options.kind == "nllb" else {language: language for language in options.languages}
    first, *others = options.languages
    directions = [pair for other in others for pair in ((first, other), (other, first))]

    def batches_of(source: str, target: str) -> Any:
        def batch_of(sources: list[str], targets: list[str]) -> Any:
            tokenizer.src_lang, tokenizer.tgt_lang = named[source], named[target]
            return tokenizer(sources, text_target=targets, return_tensors="pt", padding=True)

        return list(zip(text[source], text[target], strict=True)), batch_of

    train(model, [batches_of(*direction) for direction in directions], options.steps)
    model.save_pretrained(options.output)
    count = options.sentences // len(directions)
    expected = _expected(options.output, model.eval(), tokenizer, directions, test, named, count)
    (options.output / "expected.json").write_text(json.dumps(expected), "utf-8")


def _train_pieces(folder: Path, text: Iterator[str], size: int, kind: str) -> None:
    """Make the SentencePiece model, and the vocabulary of M2M100."""
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=text, model_prefix=str(folder / "pieces"), model_type="bpe", vocab_size=size, minloglevel=2
    )
    (folder / "pieces.model").rename(folder / MODEL)
    (folder / "pieces.vocab").unlink()
    processor = sentencepiece.SentencePieceProcessor(str(folder / MODEL))
    pieces = [processor.id_to_piece(i) for i in range(processor.vocab_size())][3:]  # <unk>, <s>, </s>
    if kind == "m2m100":
        # Not all of them: those that are missing are unknown.
        vocabulary = ["<s>", "<pad>", "</s>", "<unk>", *sorted(pieces[:-7])]
        ids = {piece: i for i, piece in enumerate(vocabulary)}
        (folder / "vocab.json").write_text(json.dumps(ids, ensure_ascii=False), "utf-8")


def _tokenizer(folder: Path, kind: str, languages: list[str]) -> Any:
    if kind == "m2m100":
        tokenizer = M2M100Tokenizer(str(folder / "vocab.json"), str(folder / MODEL), src_lang=languages[0])
        tokenizer.save_pretrained(folder)
        return tokenizer
    with tempfile.TemporaryDirectory() as place:  # it takes the model for its own only in a folder of its own
        (Path(place) / MODEL).write_bytes((folder / MODEL).read_bytes())
        tokenizer = NllbTokenizer.from_pretrained(
            place, additional_special_tokens=[NLLB[language] for language in languages], src_lang=NLLB[languages[0]]
        )
    tokenizer.save_pretrained(folder)
    return tokenizer


def _model(size: int, width: int) -> M2M100ForConditionalGeneration:
    config = M2M100Config(
        vocab_size=size,
        d_model=width,
        **LAYERS,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=2 * width,
        decoder_ffn_dim=2 * width,
        encoder_layerdrop=0.0,
        decoder_layerdrop=0.0,
        max_length=200,
    )
    return M2M100ForConditionalGeneration(config)


def _expected(
    folder: Path,
    model: M2M100ForConditionalGeneration,
    tokenizer: Any,
    directions: list[tuple[str, str]],
    test: dict[str, list[str]],
    named: dict[str, str],
    count: int,
) -> dict[str, Any]:
    found: dict[str, Any] = {"search": SEARCH, "directions": []}
    for number, (source, target) in enumerate(directions):
        tokenizer.src_lang = named[source]
        sentences = test[source][:count]
        code = f"__{target}__" if target == named[target] else named[target]
        forced = {"forced_bos_token_id": tokenizer.convert_tokens_to_ids(code)}
        if number == 1:
            np.savez(folder / "expected.npz", **logits_of(model, tokenizer, sentences[:5], **forced))
        found["directions"].append(
            {
                "source_language": named[source],
                "target_language": named[target],
                "sentences": sentences,
                "ids": [tokenizer(sentence)["input_ids"] for sentence in sentences],
                "greedy": found_by(model, tokenizer, sentences, 1, **forced),
                "beam": found_by(model, tokenizer, sentences, SEARCH["num_beams"], **forced),
            }
        )
    return found


if __name__ == "__main__":
    main()
