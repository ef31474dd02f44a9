"""Whether our tokenizers give the ids of transformers' on lines of many scripts: first made there, then compared here.

    python scripts/oracles/tokens.py make FOLDER --text FILE...      # where transformers and sentencepiece are
    python scripts/oracles/tokens.py compare FOLDER                  # where tf_transformer is
    python scripts/oracles/tokens.py scripts FOLDER                  # where Node and Chromium are too

Each kind of model is also made with tokenizer.json alone, and then compared with the library tokenizers.
The last compares the tokenizer of the export for browsers with SentencePiece, on the same lines.
The lines are those of the files and as many made-up ones: words of 24 scripts, digits, punctuation, emoji, characters
of several code points, odd spaces. Half of all lines train the SentencePiece models, all are tokenised.
"""

import argparse
import functools
import http.server
import itertools
import json
import random
import shutil
import subprocess
import threading
from pathlib import Path
from typing import Any

SCRIPTS = {
    "Latin": (0x61, 0x7A), "Latin, more": (0xE0, 0x17F), "Greek": (0x3B1, 0x3C9), "Cyrillic": (0x430, 0x44F),
    "Armenian": (0x561, 0x586), "Hebrew": (0x5D0, 0x5EA), "Arabic": (0x628, 0x64A), "Devanagari": (0x905, 0x94D),
    "Bengali": (0x985, 0x9CD), "Gurmukhi": (0xA05, 0xA4D), "Gujarati": (0xA85, 0xACD), "Tamil": (0xB85, 0xBCD),
    "Telugu": (0xC05, 0xC4D), "Kannada": (0xC85, 0xCCD), "Malayalam": (0xD05, 0xD4D), "Thai": (0xE01, 0xE4E),
    "Lao": (0xE81, 0xECD), "Tibetan": (0xF40, 0xFB9), "Georgian": (0x10D0, 0x10F0), "Ethiopic": (0x1200, 0x1357),
    "Khmer": (0x1780, 0x17D2), "Hiragana": (0x3041, 0x3096), "CJK": (0x4E00, 0x5200), "Hangul": (0xAC00, 0xAF00),
}  # fmt: skip
ODD = ["  ", "\u00a0", "\u3000", "\u200b", "\u00ad", "e\u0301", "\ufb01", "\uff21\uff22", "\u2026", "\U0001f600",
       "\U0001f468\u200d\U0001f469\u200d\U0001f467", "<unk>", "</s>", "\u2581", "&amp;", "\u2028", "\t"]  # fmt: skip
SIZE = 12_000
KINDS = ("marian", "m2m100", "nllb")


def main() -> None:
    """Make the folders with transformers, or compare with them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=("make", "compare", "scripts"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--text", type=Path, nargs="+", default=[])
    options = parser.parse_args()
    if options.task == "make":
        make(options.folder, options.text)
    elif options.task == "compare":
        compare(options.folder)
    else:
        compare_scripts(options.folder)


def make(folder: Path, files: list[Path]) -> None:
    """Write for each kind of model its files, and the ids of all lines."""
    import sentencepiece
    from transformers import M2M100Tokenizer, MarianTokenizer, NllbTokenizer

    real = [line for file in files for line in file.read_text("utf-8").splitlines()]
    lines = real + list(itertools.islice(_made_up(), max(len(real), 60_000)))
    for kind, model_type in (("marian", "unigram"), ("m2m100", "bpe"), ("nllb", "bpe")):
        place = folder / kind
        place.mkdir(parents=True)
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines[::2]),
            model_prefix=str(place / "pieces"),
            model_type=model_type,
            vocab_size=SIZE,
            character_coverage=0.9995,
            minloglevel=2,
        )
        model = place / ("source.spm" if kind == "marian" else "sentencepiece.bpe.model")
        (place / "pieces.model").rename(model)
        (place / "pieces.vocab").unlink()
        processor = sentencepiece.SentencePieceProcessor(str(model))
        pieces = [processor.id_to_piece(i) for i in range(3, processor.vocab_size())]
        if kind == "marian":
            _write_ids(place, ["</s>", "<unk>", *pieces[50:], "<pad>"])
            (place / "target.spm").write_bytes(model.read_bytes())
            paths = {f"{side}_spm": str(place / f"{side}.spm") for side in ("source", "target")}
            tokenizer: Any = MarianTokenizer(**paths, vocab=str(place / "vocab.json"))
        elif kind == "m2m100":
            _write_ids(place, ["<s>", "<pad>", "</s>", "<unk>", *pieces[50:]])
            tokenizer = M2M100Tokenizer(str(place / "vocab.json"), str(model), src_lang="en")
        else:
            tokenizer = NllbTokenizer.from_pretrained(
                place, additional_special_tokens=["eng_Latn", "deu_Latn"], src_lang="eng_Latn"
            )
        size = len(tokenizer) if kind != "m2m100" else tokenizer.encoder_size + 108
        if kind != "marian":
            tokenizer.save_pretrained(place)
        _write_expected(place, kind, size, lines, [tokenizer(line)["input_ids"] for line in lines])
        _make_alone(kind, place, folder / f"{kind}_alone", lines)


def _make_alone(kind: str, whole: Path, place: Path, lines: list[str]) -> None:
    """Write a folder that has tokenizer.json alone, and the ids that the tokenizers library gives for the lines."""
    from sentencepiece import sentencepiece_model_pb2
    from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers
    from transformers.convert_slow_tokenizer import generate_merges

    place.mkdir()
    file = whole / ("source.spm" if kind == "marian" else "sentencepiece.bpe.model")
    proto = sentencepiece_model_pb2.ModelProto.FromString(file.read_bytes())
    scores = {piece.piece: piece.score for piece in proto.pieces if piece.type == piece.NORMAL}
    if kind == "nllb":
        tokenizer = Tokenizer.from_file(str(whole / "tokenizer.json"))
    else:
        if kind == "marian":
            special = ["</s>", "<unk>"]
            model: Any = models.Unigram([*((text, -100.0) for text in special), *scores.items()], 1)
        else:
            special = ["<s>", "<pad>", "</s>", "<unk>"]
            ids = {piece: i for i, piece in enumerate([*special, *scores])}
            model = models.BPE(ids, generate_merges(ids, scores), unk_token="<unk>", fuse_unk=True)
            special += ["__en__", "__de__"]
        tokenizer = Tokenizer(model)
        spaces = normalizers.Replace(Regex(" {2,}"), " ")
        steps = [normalizers.Precompiled(proto.normalizer_spec.precompiled_charsmap), normalizers.Strip(), spaces]
        tokenizer.normalizer = normalizers.Sequence(steps)
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
        tokenizer.add_special_tokens([AddedToken(text, normalized=False) for text in special])
    tokenizer.save(str(place / "tokenizer.json"))
    found = [row.ids for row in tokenizer.encode_batch(lines, add_special_tokens=False)]
    _write_expected(
        place, kind, tokenizer.get_vocab_size() + 1, lines, [[0][: kind != "marian"] + row + [2] for row in found]
    )


def _write_expected(place: Path, kind: str, size: int, lines: list[str], ids: list[list[int]]) -> None:
    config = {"model_type": "marian" if kind == "marian" else "m2m_100", "vocab_size": size}
    (place / "config.json").write_text(json.dumps(config))
    (place / "ids.json").write_text(json.dumps({"lines": lines, "ids": ids}))


def compare(folder: Path) -> None:
    """Print for each kind how many lines get the same ids, and some that do not."""
    import tensorflow as tf

    from tf_transformer.importers.vocabulary import Vocabulary
    from tf_transformer.tokenizers import Tokenizer

    for name, kind in itertools.product(("", "_alone"), KINDS):
        place = folder / f"{kind}{name}"
        imported, config = _imported(kind, place)
        said = json.loads((place / "ids.json").read_text())
        file = "source.model" if kind == "marian" else "tokenizer.model"
        size = imported.config.model.input_vocab_size
        tokenizer = Tokenizer(imported.tokenizers[file], vocab_size=size, languages=imported.languages)
        special = {"marian": (config["vocab_size"] - 1, 1, config["vocab_size"] - 1, 0)}.get(kind, (1, 3, 2, 2))
        vocabulary = Vocabulary([""] * config["vocab_size"], *special)
        theirs_of = [theirs for theirs in vocabulary.order()]
        before = int(kind != "marian")
        equal, different = 0, []
        for i in range(0, len(said["lines"]), 1000):
            lines = said["lines"][i : i + 1000]
            for line, ours, theirs in zip(
                lines, tokenizer.tokenize(tf.constant(lines)).to_list(), said["ids"][i : i + 1000], strict=True
            ):
                if [theirs_of[id] for id in ours] == theirs[before:-1]:
                    equal += 1
                else:
                    different.append((line, [tokenizer.pieces[id] for id in ours]))
        count = len(said["lines"])
        spelled = [line for line, _ in different if "<unk>" in line or "</s>" in line]
        others = f"{len(spelled)} others spell <unk> or </s>"
        print(f"{place.name}: {equal} of {count} lines equal, {equal / count:.4%}; {others}")
        for line, pieces in [row for row in different if row[0] not in spelled][:8]:
            print("   ", ascii(line)[:300], ascii(pieces)[:300])


def compare_scripts(folder: Path) -> None:
    """Print for each kind how many lines get the ids of SentencePiece in Node and in Chromium, and some that do not."""
    from playwright.sync_api import sync_playwright

    from tf_transformer.export import web
    from tf_transformer.tokenizers.vocabulary import Vocabulary

    node = Path(__file__).parents[2] / "tests" / "export" / "web" / "tokens.mjs"
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(http.server.SimpleHTTPRequestHandler, directory=web.SCRIPTS)
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    for kind in KINDS:
        imported, _ = _imported(kind, folder / kind)
        model = imported.tokenizers["source.model" if kind == "marian" else "tokenizer.model"]
        (folder / kind / "web.model").write_bytes(model)
        size = imported.config.model.input_vocab_size
        lines = json.loads((folder / kind / "ids.json").read_text())["lines"]
        expected = Vocabulary(model, vocab_size=size).encode(lines)
        one = {"model": str(folder / kind / "web.model"), "size": size, "lines": lines, "ids": []}
        given = json.dumps({"blanks": web.BLANKS, "of": [one]})
        done = subprocess.run(
            ["node", str(node), str(web.SCRIPTS)], input=given, capture_output=True, text=True, check=True
        )
        found = {"Node": json.loads(done.stdout)[0]["ids"]}
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
            page = browser.new_page()
            page.goto(f"http://127.0.0.1:{server.server_port}/files.js")
            found["Chromium"] = page.evaluate(
                """async ([model, size, blanks, lines]) => {
                  const {Vocabulary} = await import("/vocabulary.js");
                  const vocabulary = new Vocabulary(Uint8Array.from(model), size, blanks);
                  return lines.map((line) => vocabulary.encode(line));
                }""",
                [list(model), size, web.BLANKS, lines],
            )
            browser.close()
        for where, ids in found.items():
            different = [line for line, *both in zip(lines, ids, expected, strict=True) if both[0] != both[1]]
            print(
                f"{kind}, {where}: {len(lines) - len(different)} of {len(lines)} lines equal",
                *map(ascii, different[:8]),
            )


def _imported(kind: str, place: Path) -> tuple[Any, dict[str, Any]]:
    """Import a folder, with the sizes that its settings lack, and return it with the settings."""
    from tf_transformer.importers import m2m100, marian

    sizes = {"encoder_layers": 1, "decoder_layers": 1, "d_model": 2, "activation_function": "relu"}
    sizes |= {f"{side}_{name}": 1 for side in ("encoder", "decoder") for name in ("attention_heads", "ffn_dim")}
    sizes |= {"scale_embedding": True}
    config = json.loads((place / "config.json").read_text())
    padding = {"pad_token_id": config["vocab_size"] - 1} if kind == "marian" else {}
    (place / "config.json").write_text(json.dumps(config | sizes | padding))
    return (marian if kind == "marian" else m2m100).read(place), config


def _made_up() -> Any:
    """Yield lines of words of a script, with something odd now and then."""
    rng = random.Random(1)
    words = {
        script: ["".join(chr(rng.randint(*bounds)) for _ in range(rng.randint(1, 8))) for _ in range(400)]
        for script, bounds in SCRIPTS.items()
    }
    scripts = list(SCRIPTS)
    while True:
        script = rng.choice(scripts)
        parts = [words[script][min(int(rng.expovariate(0.02)), 399)] for _ in range(rng.randint(1, 12))]
        if rng.random() < 0.3:
            parts.insert(
                rng.randint(0, len(parts)), rng.choice(["2026", "3,14", "A1", "(x)", "!?", "\u3002", "\u061f"])
            )
        if rng.random() < 0.1:
            parts.insert(rng.randint(0, len(parts)), rng.choice(ODD))
        if rng.random() < 0.05:
            parts += rng.choices(words[rng.choice(scripts)], k=2)
        yield " ".join(parts)


def _write_ids(place: Path, pieces: list[str]) -> None:
    ids = {piece: i for i, piece in enumerate(pieces)}
    (place / "vocab.json").write_text(json.dumps(ids, ensure_ascii=False), "utf-8")


if __name__ == "__main__":
    main()
