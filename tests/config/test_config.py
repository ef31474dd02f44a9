"""Tests of presets, overrides and what a user may write in them."""

import dataclasses
import inspect
import json
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

from tf_transformer import Transformer
from tf_transformer.config import PRESETS, Config, DataConfig, DecodingConfig, ModelConfig, preset
from tf_transformer.config.model import ACTIVATIONS
from tf_transformer.config.overrides import override, parse_setting, read_toml, settings_help
from tf_transformer.errors import InputError, unknown

BASE = Config()


@pytest.mark.parametrize("name", PRESETS)
def test_json_and_back(name: str) -> None:
    assert override(BASE, json.loads(json.dumps(PRESETS[name].as_dict()))) == PRESETS[name]


def test_presets_of_the_paper() -> None:
    base, big = PRESETS["base"].model, PRESETS["big"].model
    assert (base.num_layers, base.d_model, base.num_heads, base.dff, base.dropout_rate) == (6, 512, 8, 2048, 0.1)
    assert (big.num_layers, big.d_model, big.num_heads, big.dff, big.dropout_rate) == (6, 1024, 16, 4096, 0.3)


def test_model_settings_are_the_arguments_of_the_model() -> None:
    arguments = inspect.signature(Transformer).parameters.keys() - {"kwargs"}
    assert {field.name for field in dataclasses.fields(ModelConfig)} == arguments


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_are_those_of_keras(name: str) -> None:
    x = np.linspace(-3, 3, 7, dtype="float32")
    each = [keras.activations.get(name)(x[i : i + 1])[0] for i in range(len(x))]
    np.testing.assert_allclose(keras.activations.get(name)(x), each, atol=1e-6)


def test_override_changes_what_it_names_and_nothing_else() -> None:
    changed = override(BASE, {"model": {"dropout_rate": 0.3}}).as_dict()
    assert changed["model"].pop("dropout_rate") == 0.3
    before = BASE.as_dict()
    del before["model"]["dropout_rate"]
    assert changed == before


def test_a_later_layer_wins() -> None:
    layers = [{"training": {"seed": 1, "max_steps": 11}}, {"training": {"seed": 2}}, {"training": {"seed": 3}}]
    training = override(BASE, *layers).training
    assert (training.seed, training.max_steps) == (3, 11)


@pytest.mark.parametrize(
    "layers",
    [
        [{"model": {"d_model": 90}}, {"model": {"num_heads": 5}}],
        [{"model": {"num_heads": 5}}, {"model": {"d_model": 90}}],
        [{"data": {"max_length": 9000}}, {"data": {"batch_tokens": 9001}}],
    ],
)
def test_only_the_outcome_must_be_valid(layers: list[dict[str, Any]]) -> None:
    with pytest.raises(InputError):
        override(BASE, layers[0])
    changed = override(BASE, *layers).as_dict()
    for layer in layers:
        for section, settings in layer.items():
            assert changed[section].items() >= settings.items()


def test_an_integer_is_a_number() -> None:
    rate = override(BASE, {"model": {"dropout_rate": 0}}).model.dropout_rate
    assert isinstance(rate, float) and rate == 0


def test_none_where_it_is_allowed() -> None:
    named = override(BASE, {"data": {"source": "en"}})
    assert override(named, {"data": {"source": None}}).data.source is None


def test_none_is_a_word_where_only_words_are_allowed() -> None:
    words = override(BASE, {"model": {"share_embeddings": "all"}}, parse_setting("model.share_embeddings=none"))
    assert words.model.share_embeddings == "none"
    assert override(BASE, parse_setting("training.bleu_tokenize=none")).training.bleu_tokenize == "none"


@pytest.mark.parametrize(
    ("values", "parts"),
    [
        ({"modell": {}}, ["section 'modell'", "did you mean 'model'", "training"]),
        ({"model": 3}, ["model must be a table", "3"]),
        ({"model": {"d_modle": 3}}, ["key 'model.d_modle'", "did you mean 'model.d_model'"]),
        ({"training": {"d_model": 3}}, ["key 'training.d_model'", "training.seed"]),
        ({"model": {"d_model": "ten"}}, ["model.d_model must be an integer", "'ten'"]),
        ({"model": {"d_model": 8.0}}, ["model.d_model must be an integer", "8.0"]),
        ({"model": {"d_model": True}}, ["model.d_model must be an integer", "True"]),
        ({"model": {"d_model": None}}, ["model.d_model must be an integer", "None"]),
        ({"model": {"dropout_rate": "0.1"}}, ["model.dropout_rate must be a number", "'0.1'"]),
        ({"tokenizer": {"shared": 1}}, ["tokenizer.shared must be true or false", "1"]),
        ({"data": {"source": 3}}, ["data.source must be", "a string", "none", "3"]),
        ({"data": {"source": ["en"]}}, ["data.source must be", "['en']"]),
        ({"model": {"d_model": 0}}, ["model.d_model must be at least 1", "0"]),
        ({"model": {"num_layers": -2}}, ["model.num_layers must be at least 1", "-2"]),
        ({"model": {"d_model": 510}}, ["d_model must be divisible by num_heads", "d_model=510", "num_heads=8"]),
        ({"model": {"d_model": 9, "num_heads": 3}}, ["model.d_model must be even", "9"]),
        ({"model": {"dropout_rate": 1.0}}, ["model.dropout_rate", "below 1", "1.0"]),
        ({"model": {"dropout_rate": -0.1}}, ["model.dropout_rate", "-0.1"]),
        ({"model": {"dropout_rate": float("nan")}}, ["model.dropout_rate", "nan"]),
        ({"model": {"norm": "pst"}}, ["model.norm", "'pst'", "did you mean 'post'", "post, pre"]),
        ({"model": {"activation": "rellu"}}, ["model.activation", "'rellu'", "did you mean 'relu'"]),
        ({"model": {"target_vocab_size": 4}}, ["model.target_vocab_size must be at least 5", "4"]),
        ({"tokenizer": {"vocab_size": 4}}, ["tokenizer.vocab_size must be at least 5", "4"]),
        ({"tokenizer": {"model_type": "bpee"}}, ["tokenizer.model_type", "did you mean 'bpe'"]),
        ({"tokenizer": {"character_coverage": 99.0}}, ["tokenizer.character_coverage", "99.0"]),
        ({"data": {"held_out": 0.5}}, ["data.held_out", "0.5"]),
        ({"data": {"held_out": float("nan")}}, ["data.held_out", "nan"]),
        ({"data": {"batch_tokens": 100}}, ["at least max_length", "batch_tokens=100", "max_length=128"]),
        ({"training": {"max_steps": 0}}, ["training.max_steps must be at least 1", "0"]),
        ({"training": {"seed": -1}}, ["training.seed must be at least 0", "-1"]),
        ({"training": {"seed": 2**32}}, ["training.seed must be below", str(2**32)]),
        ({"decoding": {"max_length": 2**31}}, ["decoding.max_length must be at most 1000000", str(2**31)]),
        ({"decoding": {"max_extra_length": 2**31 - 1}}, ["decoding.max_extra_length must be at most 1000000"]),
        ({"decoding": {"no_repeat_ngram": 200_000_000}}, ["decoding.no_repeat_ngram must be at most 100", "200000000"]),
        ({"training": {"weight_decay": float("inf")}}, ["training.weight_decay must be a finite number", "inf"]),
        ({"training": {"clip_norm": float("-inf")}}, ["training.clip_norm must be at least 0", "-inf"]),
        ({"decoding": {"top_k": 10**10}}, ["decoding.top_k must be at most 1000000", str(10**10)]),
        ({"training": {"learning_rate_factor": float("inf")}}, ["training.learning_rate_factor", "inf"]),
        ({"training": {"label_smoothing": 1.0}}, ["training.label_smoothing", "1.0"]),
        ({"decoding": {"max_extra_length": 0}}, ["decoding.max_extra_length must be at least 1", "0"]),
        ({"model": {"share_embeddings": "all"}, "tokenizer": {"shared": False}}, ["share_embeddings", "shared=false"]),
        (
            {"model": {"positions": "learned", "max_positions": 100}},
            ["model.max_positions=100", "data.max_length=128"],
        ),
    ],
)
def test_wrong_values(values: dict[str, Any], parts: list[str]) -> None:
    with pytest.raises(InputError) as error:
        override(BASE, values)
    for part in parts:
        assert part in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("model.d_model=64", {"model": {"d_model": 64}}),
        (" model.d_model = 64 ", {"model": {"d_model": 64}}),
        ("model.dropout_rate=1e-1", {"model": {"dropout_rate": 0.1}}),
        ("tokenizer.shared=false", {"tokenizer": {"shared": False}}),
        ("data.corpus=my/data.tsv", {"data": {"corpus": "my/data.tsv"}}),
        ("data.corpus=a=b", {"data": {"corpus": "a=b"}}),
        ('data.source="none"', {"data": {"source": "none"}}),
        ("data.source=none", {"data": {"source": None}}),
        ("model.share_embeddings=none", {"model": {"share_embeddings": None}}),
        ("data.source=", {"data": {"source": ""}}),
        ("model.a.b=1", {"model": {"a.b": 1}}),
        # What the setting is, not what the value looks like, decides.
        ("data.train_split=2014", {"data": {"train_split": "2014"}}),
        ("data.validation_split = 2014-05-27", {"data": {"validation_split": "2014-05-27"}}),
        ('data.train_split="2014"', {"data": {"train_split": "2014"}}),
        ("tokenizer.file=[a].model", {"tokenizer": {"file": "[a].model"}}),
        ("model.d_model=[64]", {"model": {"d_model": [64]}}),
    ],
)
def test_settings(text: str, meaning: dict[str, Any]) -> None:
    assert parse_setting(text) == meaning


@pytest.mark.parametrize("text", ["", "model.d_model", "d_model=3", "=", "model=3", "0.3"])
def test_what_is_no_setting(text: str) -> None:
    with pytest.raises(InputError, match="SECTION.KEY=VALUE") as error:
        parse_setting(text)
    assert repr(text) in str(error.value)


def test_toml(tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    file.write_bytes(b'\xef\xbb\xbfpreset = "base"\r\n[model]\r\nd_model = 64 # narrow\r\n')
    assert read_toml(file) == {"preset": "base", "model": {"d_model": 64}}


@pytest.mark.parametrize("raw", [b"d_model 3", b"[model\n", b"a = 1\na = 2\n", b"a = '\xff'"])
def test_what_is_no_toml(tmp_path: Path, raw: bytes) -> None:
    file = tmp_path / "run.toml"
    file.write_bytes(raw)
    with pytest.raises(InputError) as error:
        read_toml(file)
    assert f"{file} is not a TOML file" in str(error.value)


@pytest.mark.parametrize("name", ["missing.toml", "."])
def test_toml_that_cannot_be_read(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError) as error:
        read_toml(tmp_path / name)
    assert f"cannot read {tmp_path / name}" in str(error.value)


def test_what_help_shows_of_every_setting_can_be_typed_and_is_the_default() -> None:
    shown = [line.strip().partition("  ") for line in settings_help().splitlines()]
    assert all(meaning for _, _, meaning in shown)
    named = {setting.partition("=")[0] for setting, _, _ in shown}
    assert named == {f"{section}.{key}" for section, settings in BASE.as_dict().items() for key in settings}
    other = Config(
        model=ModelConfig(d_model=16, num_heads=2, norm="pre", attention_dropout_rate=0.5),
        data=DataConfig(weights=(3.0,), drop_duplicates=True, source="en"),
        decoding=DecodingConfig(beam_size=1, max_length=5),
    )
    assert override(other, *(parse_setting(setting) for setting, _, _ in shown)) == BASE


@pytest.mark.parametrize("name", PRESETS)
def test_what_help_shows_of_a_preset_makes_it(name: str) -> None:
    settings = []
    for line in settings_help().splitlines():
        setting, _, values = line.strip().partition("=")
        if values.endswith("]"):
            of_presets = dict(value.split(" ", 1) for value in values.rpartition("[")[2].rstrip("]").split(", "))
            settings.append(parse_setting(f"{setting}={of_presets[name]}"))
    assert len(settings) > 9
    assert override(Config(), *settings) == PRESETS[name]


@pytest.mark.parametrize(("place", "name"), list(enumerate(PRESETS, 1)))
def test_the_docs_have_the_values_of_the_presets(place: int, name: str) -> None:
    docs = (Path(__file__).parents[2] / "docs" / "training.md").read_text("utf-8")
    rows = [line.split("|")[1:-1] for line in docs.partition("## Presets")[2].partition("## The")[0].splitlines()[5:]]
    said = [row[place].strip().replace(",", "") for row in rows if len(row) > place]
    preset = PRESETS[name]
    model, training = preset.model, preset.training
    assert said == [
        f"`{name}`",
        "---",
        f"{model.num_layers} {model.d_model} {model.num_heads} {model.dff}",
        model.norm,
        str(model.dropout_rate),
        str(preset.tokenizer.vocab_size),
        str(preset.data.batch_tokens),
        f"{training.max_steps} {training.warmup_steps}",
        f"{training.learning_rate_factor:g}",
        str(training.ema_decay or "none"),
    ]


def test_unknown_preset() -> None:
    with pytest.raises(InputError, match="unknown preset 'smal': did you mean 'small'"):
        preset("smal")


def test_unknown_lists_the_names_while_they_are_few() -> None:
    assert str(unknown("fruit", "aple", ["pear", "apple"], where=" in the bowl")) == (
        "unknown fruit 'aple' in the bowl: did you mean 'apple'? Valid: apple, pear"
    )
    assert str(unknown("fruit", "x", [])) == "unknown fruit 'x'. Valid: none"
    many = str(unknown("number", "n77x", [f"n{i}" for i in range(100)]))
    assert "did you mean 'n77'?" in many and "100" in many and "n50" not in many
