"""How many sentences an import translates as transformers does, for the folders that folders.py writes.

    python scripts/oracles/compare.py [--exports] FOLDER...

For each folder it prints the equal ones among: the ids of the sentences, and the translations by greedy search and by a
beam of 4. With --exports it also prints both for its SavedModel, for LiteRT in float32 and int8, and for CTranslate2;
and how much int8 changes the log-probability of a token, beside how much less likely the first token is that it writes
instead. What docs/pretrained.md says to differ is left out: translations that reach the length limit, blank text,
and text that spells `<unk>`.
"""

import argparse
import dataclasses
import itertools
import json
import tempfile
from pathlib import Path
from typing import Any

import tensorflow as tf

from tf_transformer import Translator, load
from tf_transformer.config.special_tokens import END, PAD, START, UNKNOWN
from tf_transformer.export.ctranslate2 import export as export_ctranslate2
from tf_transformer.export.litert import export as export_litert
from tf_transformer.export.saved_model import export
from tf_transformer.importers.opening import import_model
from tf_transformer.litert import Translator as LiteRTTranslator
from tf_transformer.runs.directory import RunDirectory


def main() -> None:
    """Print a line for each folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--exports", action="store_true", help="compare its exports too")
    options = parser.parse_args()
    for folder in options.folders:
        with tempfile.TemporaryDirectory() as place:
            try:
                run = import_model(folder, Path(place) / "run")
            except ValueError as error:
                print(f"{folder.name} | refused: {error}", flush=True)
                continue
            loaded = load(run)
            found = compared(folder, loaded)
            if options.exports:
                found += compared_exports(folder, run, loaded, Path(place))
            print(" | ".join([folder.name, *found]), flush=True)


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


def compared_exports(folder: Path, run: RunDirectory, loaded: Any, place: Path) -> list[str]:
    """Return how many translations of each kind of export are those of transformers, by both searches."""
    expected = json.loads((folder / "expected.json").read_text("utf-8"))
    config = json.loads((folder / "config.json").read_text("utf-8"))
    is_marian = config["model_type"] == "marian"
    ours, length = ours_of(config, is_marian), expected["search"]["max_new_tokens"]
    before, counts, noise = 2 - is_marian, {}, Noise()
    for direction in expected["directions"]:
        towards = {} if is_marian else {k: direction[k] for k in ("source_language", "target_language")}
        limits = {"max_length": length - (not is_marian), "max_extra_length": length, "likely_stopping": False}
        for kind, beam_size in (("greedy", 1), ("beam", 4)):
            search = dataclasses.replace(loaded.config.decoding, **towards, **limits, beam_size=beam_size)
            translator = Translator(loaded.model, loaded.source_tokenizer, loaded.target_tokenizer, search)
            rows = []
            for text, theirs in zip(direction["sentences"], direction[kind]["ids"], strict=True):
                ids = [ours[id] for id in theirs[before:] if ours[id] not in (PAD, END)]
                if text.strip() and "<unk>" not in text and len(ids) < length - 2:
                    wanted = loaded.target_tokenizer.detokenize(tf.constant([ids], tf.int32)).numpy()[0].decode()
                    rows.append((text, wanted))
            texts, wanted = map(list, zip(*rows, strict=True))
            for name in ("SavedModel", "LiteRT", "LiteRT int8", "CTranslate2"):
                output = place / f"{name}_{kind}_{direction['source_language']}"
                if name == "SavedModel":
                    translate = tf.saved_model.load(str(export(run, output, search))).signatures["serving_default"]
                    found = [text.decode() for text in translate(text=tf.constant(texts))["translation"].numpy()]
                elif name == "CTranslate2":
                    found = by_ctranslate2(export_ctranslate2(run, output, search), translator, texts)
                else:
                    export_litert(run, output, search, "int8" if name.endswith("int8") else "float32")
                    litert = LiteRTTranslator.load(output, search)
                    found = litert.translate_strings(texts)
                    if name.endswith("int8") and kind == "greedy":
                        noise.add(translator, litert, texts, wanted)
                equal, all = counts.get((name, kind), (0, 0))
                counts[name, kind] = equal + sum(map(str.__eq__, found, wanted)), all + len(wanted)
    return [*(f"{name} {kind} {equal}/{all}" for (name, kind), (equal, all) in counts.items()), str(noise)]


class Noise:
    """How much rounded weights change the log-probabilities of tokens, and how near the ties are that they decide."""

    def __init__(self) -> None:
        self._changes: list[float] = []
        self._margins: list[float] = []

    def add(self, exact: Translator, rounded: LiteRTTranslator, texts: list[str], wanted: list[str]) -> None:
        """Take in what the exact model and the rounded one make of texts by greedy search.

        Args:
            exact: the model.
            rounded: its export of 8 bits.
            texts: the texts.
            wanted: the translations of the exact model, which both score.
        """
        pairs = list(zip(texts, wanted, strict=True))
        for one, other in zip(exact.score_strings(pairs), rounded.score_strings(pairs), strict=True):
            self._changes += [abs(a - b) for a, b in zip(one, other, strict=True)]
        tokenizer, towards = exact.target_tokenizer, exact.decoding.target_language
        first = [START] if towards is None else [START, tokenizer.languages[towards]]
        for text, found in zip(texts, rounded.search(texts), strict=True):
            source, mine = exact.search(tf.constant([text]))
            one, other = ([id for id in ids if id != PAD] for ids in (mine.ids[0, 0].numpy().tolist(), found.ids[0]))
            if one == other:
                continue
            # Up to the first different token both read the same ones.
            place = next(i for i, (a, b) in enumerate(itertools.zip_longest(one, other)) if a != b)
            target = tf.constant([[*first, *one[:place]]])
            log_probs = tf.nn.log_softmax(exact.model((source.ids, target))[0, -1]).numpy()
            ends = [(ids[place] if place < len(ids) else END) for ids in (one, other)]
            self._margins.append(float(log_probs[ends[0]] - log_probs[ends[1]]))

    def __str__(self) -> str:
        changes, margins = sorted(self._changes), sorted(self._margins)
        middle, most = changes[len(changes) // 2], changes[-1]
        said = f"int8 changes log-probabilities by {middle:.3f} (median), {most:.3f} (most)"
        if margins:
            below = sum(margin <= 2 * most for margin in margins)
            said += f"; its first other token was {margins[len(margins) // 2]:.3f} (median), {margins[-1]:.3f} (most) "
            said += f"less likely, {below}/{len(margins)} within twice the largest change"
        return said


def by_ctranslate2(output: Path, translator: Translator, texts: list[str]) -> list[str]:
    """Return what CTranslate2 writes for the pieces that our tokenizer gives it."""
    import ctranslate2

    source, target = translator.source_tokenizer, translator.target_tokenizer
    rows = translator.encode_source(tf.constant(texts)).ids.numpy().tolist()
    language = target.languages.get(translator.decoding.target_language)
    first = [] if language is None else [target.pieces[language]]
    results = ctranslate2.Translator(str(output), compute_type="float32").translate_batch(
        [[source.pieces[id] for id in row if id not in (PAD, END)] for row in rows],
        target_prefix=[first] * len(texts),
        beam_size=translator.decoding.beam_size,
        length_penalty=1,
        patience=4,  # by default it stops before it has seen the best
        max_decoding_length=translator.decoding.max_length + len(first),
        suppress_sequences=[[target.pieces[PAD]], [target.pieces[START]]],
    )
    ids = {piece: id for id, piece in enumerate(target.pieces)}
    written = [[ids[piece] for piece in each.hypotheses[0][len(first) :]] for each in results]
    return [target.detokenize(tf.constant([row], tf.int32)).numpy()[0].decode() for row in written]


def ours_of(config: dict[str, Any], is_marian: bool) -> dict[int, int]:
    """Return our id for each of theirs."""
    pad, unknown, end = (config["pad_token_id"], 1, 0) if is_marian else (1, 3, 2)
    special = {pad: PAD, unknown: UNKNOWN, end: END}
    others = [i for i in range(config["vocab_size"]) if i not in special]
    return special | {theirs: 4 + i for i, theirs in enumerate(others)}


if __name__ == "__main__":
    main()
