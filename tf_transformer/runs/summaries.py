"""What people want to know first of a run or an export."""

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

from tf_transformer.errors import MAX_LISTED

MOST_CORPORA = 5
"""The most corpora that are named; of more, their number is said."""


def summary_of(description: Mapping[str, Any], others: str = "between any of {listed}") -> dict[str, str]:
    """Return the rows of a table about a model: languages, where its weights come from, size, metrics and search.

    Args:
        description: the description of a run or an export, as `describe` returns it. That of a run may have its
            `checkpoint` too.
        others: words for translating between other languages than the default ones, if the model has several.
    """
    config = description["config"]
    source, target = direction_of(config)
    known = description.get("languages", ())
    is_named = known or (source, target) != ("source", "target")
    return {
        **({"Languages": _languages(source, target, known, others)} if is_named else {}),
        **_history(description),
        **_size(description),
        **_metrics(description.get("checkpoint") or {}),
        "Search": _search(config["decoding"]),
    }


def direction_of(config: Mapping[str, Any]) -> tuple[str, str]:
    """Return the names of the languages that a model translates from and to by default."""
    source, target = (
        config["decoding"].get(f"{side}_language") or config["data"][side] or side for side in ("source", "target")
    )
    return source, target


def _languages(source: str, target: str, known: Sequence[str], others: str) -> str:
    if not known:
        return f"{source} to {target}"
    listed = ", ".join(known) if len(known) <= MAX_LISTED else f"{len(known)} languages"
    return f"{source} to {target} {others.format(listed=listed)}"


def _history(description: Mapping[str, Any]) -> dict[str, str]:
    """Return the rows that say where the weights come from."""
    if origin := description.get("origin"):
        return {
            "Imported from": f"{origin['name']} ({origin['architecture']})",
            "Licence": origin["licence"] or "unknown",
        }
    pairs = description.get("data", {}).get("train", {}).get("pairs")
    corpora = _corpora(description["config"]["data"])
    rows = {"Trained on": corpora if pairs is None else f"{corpora}: {pairs:,} pairs"}
    if ensemble := description.get("ensemble"):
        rows["Ensemble of"] = ", ".join(f"{one['run']} ({one['checkpoint']['step']:,} updates)" for one in ensemble)
    elif averaged := description.get("averaged"):
        rows["Average of"] = "updates " + ", ".join(f"{step:,}" for step in averaged["steps"])
    elif checkpoint := description.get("checkpoint"):
        rows["Updates"] = f"{checkpoint['step']:,}"
    else:
        rows["Updates"] = "no checkpoint yet"
    return rows


def _corpora(data: Mapping[str, Any]) -> str:
    """Return the names of the corpora, without their paths, which mean nothing to readers of an export."""
    corpora = [data["corpus"], *data["extra_corpora"]]
    names = [name if name.startswith("tfds:") else PurePath(name).name for name in corpora]
    if len(names) > MOST_CORPORA:
        names[MOST_CORPORA - 1 :] = [f"{len(names) - MOST_CORPORA + 1} more"]
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def _size(description: Mapping[str, Any]) -> dict[str, str]:
    model = description["config"]["model"]
    layers = f"{model['num_layers']} layers"
    if (decoder := model.get("num_decoder_layers")) not in (None, model["num_layers"]):
        layers = f"{model['num_layers']} layers of the encoder and {decoder} of the decoder"
    parameters = description.get("parameters")
    return {
        "Parameters": (f"{parameters:,}: " if parameters else "")
        + f"{layers} of width {model['d_model']}, {model['num_heads']} heads, in {description.get('dtype', 'float32')}"
    }


def _metrics(checkpoint: Mapping[str, Any]) -> dict[str, str]:
    return {
        f"Validation, {name[4:]}": f"{value:.4g}"
        for name, value in checkpoint.items()
        if name.startswith("val_") and value is not None
    }


def _search(decoding: Mapping[str, Any]) -> str:
    if decoding["temperature"]:
        return f"sampling at temperature {decoding['temperature']}"
    if decoding["beam_size"] == 1:
        return "greedy"
    return f"beam of {decoding['beam_size']}, length penalty {decoding['length_penalty']}"
