"""Runs that have learned a new language and new pieces, in every format that `export` writes."""

import dataclasses
import functools

import numpy as np
import pytest

from tests.export.test_web import in_node, needs_litert, needs_node
from tests.importers.runs_to_extend import FRENCH, LANGUAGES
from tests.importers.test_all_the_way import by_ctranslate2
from tf_transformer import Translator, load
from tf_transformer.commands.export import FORMATS
from tf_transformer.commands.main import main
from tf_transformer.litert import Translator as LiteRTTranslator
from tf_transformer.runs.directory import RunDirectory
from tf_transformer.runs.runtimes import LITERT_WITHIN
from tf_transformer.translation.exported import ExportedTranslator

TEXTS = [
    *FRENCH[:2],
    "The dog sleeps.",
    "Der alte Mann liest.",
    "tyv_Cyrl >>de<< 12",
    "\u00e7\u00e0 et l\u00e0, \u00f4 c\u00f4t\u00e9",
    "\u00e9t",
]


def by_both(export, translator):
    assert ExportedTranslator(export).translate_strings(TEXTS) == translator.translate_strings(TEXTS)
    return LiteRTTranslator.load(export / LITERT_WITHIN).translate_strings(TEXTS)


def by_web(export, translator):
    [answer] = in_node("translate.mjs", export, [{"sentences": TEXTS, "options": {"n": 1}}])
    return [each["translations"][0]["text"] for each in answer["found"]]


READERS = {
    "ctranslate2": lambda export, translator: by_ctranslate2(export, TEXTS, translator),
    "web": by_web,
    "all": by_both,
}
"""How each format translates in float32, but for those that are parts of `all`: a new one needs its own."""
QUANTIZED = {"litert": ["int8"]}
"""In what the weights are held, where not in float32: `all` and `web` have the files for LiteRT in float32."""
MARKS = {"web": [needs_node, needs_litert]}


@pytest.fixture(scope="module")
def tuned(run_of, tmp_path_factory):
    """Gives a run of a kind that was extended and has learned a little, its translator, and how that decodes."""

    @functools.cache
    def get(kind):
        place, run = tmp_path_factory.mktemp("tuned"), run_of(kind)
        text, extended, output = (str(place / name) for name in ("text.tsv", "extended", "tuned"))
        (place / "text.tsv").write_text(
            "".join(f"{text} {text[:i]}\t{text[::-1]}\n" for i, text in enumerate(FRENCH[:2] * 20)), "utf-8"
        )
        data, new, between = ["--data", text, "--source", "en", "--target", "de"], [], {}
        if run.languages:
            english, german = LANGUAGES.get(kind, ("en", "de"))
            new = ["--add-language", f"tyv={german}"]
            between = {"source_language": english, "target_language": "tyv"}
        command = ["extend", "--run-dir", str(run.path), "--add-pieces", "13", *new, *data, "--output", extended]
        assert main(command) == 0
        settings = {"training.samples": 0, "data.held_out": 0.1, "training.learning_rate": 0.01}
        settings |= {"data.batch_tokens": 128, "data.max_length": 128}  # more than one update an epoch
        settings |= {"training.warmup_steps": 5} | {f"decoding.{name}": language for name, language in between.items()}
        command = ["train", "--init-from", extended, *data, "--run-dir", output, "--max-steps", "60"]
        assert main([*command, *(f"--set={name}={value}" for name, value in settings.items())]) == 0
        decoding = between | {"beam_size": 1, "max_length": 20, "max_extra_length": 20}
        loaded = load(RunDirectory(output))
        translator = Translator(*loaded[:3], dataclasses.replace(loaded.config.decoding, **decoding))
        return RunDirectory(output), translator, decoding

    return get


@pytest.mark.long
@pytest.mark.parametrize(
    "form", [pytest.param(form, marks=MARKS.get(form, ())) for form in FORMATS if form != "saved_model"]
)
@pytest.mark.parametrize("kind", ["marian", "marian_separate", "nllb", "own"])
def test_every_format_translates_as_the_run(tuned, kind, form, tmp_path):
    run, translator, decoding = tuned(kind)
    mine = translator.translate_strings(TEXTS)
    assert len(set(mine)) > 3
    command = ["export", "--run-dir", str(run.path), "--format", form]
    if not FORMATS[form].no_search:
        command += [f"--set=decoding.{name}={value}" for name, value in decoding.items()]
    for quantize in QUANTIZED.get(form, ["float32"] if FORMATS[form].quantizes else [None]):
        output = tmp_path / f"export_{quantize}"
        quantized = ["--quantize", quantize] if quantize else []
        assert main([*command, *quantized, "--output", str(output)]) == 0
        if quantize == "int8":
            pairs = list(zip(TEXTS, mine, strict=True))
            scores, theirs = (each.score_strings(pairs) for each in (translator, LiteRTTranslator.load(output)))
            for one, other in zip(scores, theirs, strict=True):
                np.testing.assert_allclose(one, other, atol=0.5)
                assert abs(np.subtract(one, other)).mean() < 0.1
        else:
            assert READERS[form](output, translator) == mine
