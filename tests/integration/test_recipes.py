"""The recipes run, on little text."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tf_transformer.commands.main import main
from tf_transformer.config import preset
from tf_transformer.config.overrides import override, read_toml
from tf_transformer.data.toy import pairs

RECIPES = Path(__file__).parents[2] / "scripts" / "recipes"


@pytest.mark.parametrize("path", sorted(RECIPES.glob("*.toml")), ids=lambda path: path.stem)
def test_its_settings_are_settings(path):
    settings = read_toml(path)
    given = preset(settings.pop("preset"))
    assert override(given, settings) != given


def test_wmt14_is_the_papers_base():
    settings = read_toml(RECIPES / "wmt14_en_de.toml")
    config = override(preset(settings.pop("preset")), settings)
    model, training = config.model, config.training
    assert (model.num_layers, model.d_model, model.num_heads, model.dff, model.dropout_rate) == (6, 512, 8, 2048, 0.1)
    assert (model.norm, model.share_embeddings, config.tokenizer.shared) == ("post", "all", True)
    assert (training.max_steps, training.warmup_steps, training.label_smoothing) == (100_000, 4000, 0.1)
    assert (training.learning_rate_factor, training.ema_decay, training.keep_last) == (1.0, 0.0, 5)
    assert (config.tokenizer.vocab_size, config.data.batch_tokens) == (37_000, 25_000)
    assert (config.decoding.beam_size, config.decoding.length_penalty, config.decoding.max_extra_length) == (4, 0.6, 50)


@pytest.mark.long
@pytest.mark.parametrize(
    ("recipe", "languages", "folder", "splits", "tokenizer"),
    [
        ("multi30k_en_fr", ("en", "fr"), "tok", ("val", "test_2016_flickr"), "tok:none"),
        ("wmt14_en_de", ("en", "de"), "wmt14", ("test",), "tok:13a"),
        ("ted_pt_en", ("pt", "en"), "ted", ("test",), "tok:13a"),
    ],
)
def test_it_goes_from_text_to_an_export(tmp_path, recipe, languages, folder, splits, tokenizer):
    data = tmp_path / "data" / folder
    data.mkdir(parents=True)
    chosen = pairs("train")[:300]
    for split, part in {"train": chosen, "val": chosen[:11], **dict.fromkeys(splits, chosen[:11])}.items():
        for language, side in zip(languages, zip(*part, strict=True), strict=True):
            (data / f"{split}.{language}").write_text("\n".join(side) + "\n", "utf-8")
    sizes = ("model.num_layers=1", "model.d_model=8", "model.num_heads=2", "model.dff=16", "tokenizer.vocab_size=400")
    settings = [f"--set={setting}" for setting in (*sizes, "training.checkpoint_every=1")]
    command = ["sh", str(RECIPES / f"{recipe}.sh"), str(data), "--max-steps", "11", *settings]
    prepared = tmp_path / "prepared" / "small"
    if recipe == "wmt14_en_de":  # its vocabulary of 37,000 is too large for this text
        text = ["--data", str(data), "--source", "en", "--target", "de", "--config", str(RECIPES / f"{recipe}.toml")]
        assert main(["prepare", *text, "--set=tokenizer.vocab_size=400", "--output", str(prepared)]) == 0
    programs = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=os.environ | {"PATH": programs, "TF_CPP_MIN_LOG_LEVEL": "3", "PREPARED": str(prepared)},
    )
    assert done.returncode == 0, done.stderr
    name = f"{recipe[:8]}_tok{recipe[8:]}" if folder == "tok" else recipe
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert [tokenizer in scores["signature"] for scores in found] == [True] * len(splits)
    for split in splits:
        assert (tmp_path / "runs" / name / f"{split}.{languages[1]}").read_bytes().count(b"\n") == 11
    assert (tmp_path / "saved_models" / name / "1" / "saved_model.pb").exists()
