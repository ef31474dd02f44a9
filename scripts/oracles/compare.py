"""How many sentences an import translates as transformers does, for the folders that folders.py writes.

    python scripts/oracles/compare.py FOLDER...

For each folder it prints the equal ones among: the ids of the sentences, and the translations by greedy search and by a
beam of 4. What docs/pretrained.md says to differ is left out: translations that reach the length limit, blank text, and
text that spells `<unk>`.
"""

import argparse
import dataclasses
import json
import tempfile
from pathlib import Path
from typing import Any

import tensorflow as tf

from tf_transformer import Translator, load
from tf_transformer.config.special_tokens import END, PAD, UNKNOWN
from tf_transformer.importers.opening import import_model


def main() -> None:
    """Print a line for each folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="+")
    for folder in parser.parse_args().folders:
        with tempfile.TemporaryDirectory() as place:
            try:
                run = import_model(folder, Path(place) / "run")
            except ValueError as error:
                print(f"{folder.name} | refused: {error}", flush=True)
                continue
            print(" | ".join([folder.name, *compared(folder, load(run))]), flush=True)


def compared(folder: Path, loaded: Any) -> list[str]:
    """Return what is equal, as fractions of what was compared."""
    expected = json.loads((folder / "expected.json").read_text("utf-8"))
    config = json.loads((folder / "config.json").read_text("utf-8"))
    is_marian = config["model_type"] == "marian"
    ours, length = ours_of(config, is_marian), expected["search"]["max_new_tokens"]
    counts = {"ids": [0, 0], "greedy": [0, 0], "beam": [0, 0]}
    for direction in expected["directions"]:
        towards = {} if is_marian else {k: direction[k] for k in ("source_language", "target_language")}
        for name, beam_size in (("ids", 1), ("greedy", 1), ("beam", 4)):
            limits = {"max_length": length - (not is_marian), "max_extra_length": length, "likely_stopping": False}
            search = dataclasses.replace(loaded.config.decoding, **towards, **limits, beam_size=beam_size)
            translator = Translator(loaded.model, loaded.source_tokenizer, loaded.target_tokenizer, search)
            texts = tf.constant(direction["sentences"])
            if name == "ids":
                mine = translator.encode_source(texts).ids.numpy().tolist()
                theirs = direction["ids"]
            else:
                mine = translator.search(texts)[1].ids[:, 0].numpy().tolist()
                theirs = [row[1 if is_marian else 2 :] for row in direction[name]["ids"]]
            for text, one, other in zip(direction["sentences"], mine, theirs, strict=True):
                one, other = ([i for i in row if i not in (PAD, END)] for row in (one, [ours[i] for i in other]))
                if not text.strip() or "<unk>" in text or (name != "ids" and max(len(one), len(other)) >= length - 2):
                    continue
                counts[name][1] += 1
                counts[name][0] += one == other
                if one != other and counts[name][1] - counts[name][0] < 6:
                    print("   ", folder.name, name, ascii(text)[:60], one[:12], other[:12])
    return [f"{name} {equal}/{all}" for name, (equal, all) in counts.items()]


def ours_of(config: dict[str, Any], is_marian: bool) -> dict[int, int]:
    """Return our id for each of theirs."""
    pad, unknown, end = (config["pad_token_id"], 1, 0) if is_marian else (1, 3, 2)
    special = {pad: PAD, unknown: UNKNOWN, end: END}
    others = [i for i in range(config["vocab_size"]) if i not in special]
    return special | {theirs: 4 + i for i, theirs in enumerate(others)}


if __name__ == "__main__":
    main()
