"""Models that transformers trains here and now, imported: what tests/importers has samples of, with what is there."""

import dataclasses
import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from tf_transformer import Translator, load
from tf_transformer.data.corpora import toy
from tf_transformer.importers.opening import import_model

ORACLES = Path(__file__).parents[2] / "scripts" / "oracles"
UNKNOWN = "\u2047"
"""What we write for a token that has no text, and transformers leaves out."""
SIZES = ["--steps", "600", "--sentences", "40", "--width", "32"]
COMMANDS = {
    "marian": ["marian.py", "--vocabulary", "160"],
    "m2m100": ["m2m100.py", "--kind", "m2m100", "--vocabulary", "300"],
    "nllb": ["m2m100.py", "--kind", "nllb", "--vocabulary", "300"],
}

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        not (importlib.util.find_spec("transformers") and importlib.util.find_spec("torch")),
        reason="needs the extra oracles",
    ),
]


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    folder = tmp_path_factory.mktemp("toy")
    for split in ("train", "test"):
        for side, language in enumerate(("en", "de")):
            lines = "".join(f"{pair[side]}\n" for pair in toy.pairs(split))
            (folder / f"{split}.{language}").write_text(lines, "utf-8")
    return folder


@pytest.fixture(scope="module", params=COMMANDS)
def made(request, text, tmp_path_factory):
    """The folder of a model that transformers has trained, and what it finds."""
    folder = tmp_path_factory.mktemp("made") / request.param
    script, *options = COMMANDS[request.param]
    command = [sys.executable, script, *options, *SIZES, "--data", str(text), "--output", str(folder)]
    subprocess.run(command, cwd=ORACLES, check=True, timeout=1200)
    return folder, json.loads((folder / "expected.json").read_text("utf-8"))


@pytest.mark.parametrize(("name", "beam_size"), [("greedy", 1), ("beam", 4)])
def test_the_same_translations_and_scores(made, tmp_path, name, beam_size):
    folder, expected = made
    run = import_model(folder, tmp_path / "run")
    loaded = load(run.path)
    most = expected["search"]["max_new_tokens"]
    counted = int(bool(run.languages))  # transformers counts the language as a token
    compared = 0
    for direction in expected.get("directions", [expected]):
        settings = {key: direction[key] for key in ("source_language", "target_language") if key in direction}
        settings |= {"beam_size": beam_size, "max_length": most - counted, "max_extra_length": most}
        settings["likely_stopping"] = False
        search = dataclasses.replace(loaded.config.decoding, **settings)
        translator = Translator(loaded.model, loaded.source_tokenizer, loaded.target_tokenizer, search)
        _, found = translator.search(tf.constant(direction["sentences"]))
        texts = translator.target_tokenizer.detokenize(found.ids[:, 0]).numpy()
        theirs = direction[name]
        for i, text in enumerate(text.decode() for text in texts):
            is_whole = np.count_nonzero(found.ids[i, 0]) < most - 2  # else transformers forces the end token
            if is_whole and UNKNOWN not in text:
                # Its tokenizer does not know that the tokens of M2M100's languages are special.
                assert text == theirs["texts"][i].removeprefix(f"__{direction.get('target_language')}__").strip()
                if beam_size > 1:
                    assert float(found.scores[i, 0]) / 2**counted == pytest.approx(theirs["scores"][i], abs=1e-3)
                compared += 1
    assert compared > 10
