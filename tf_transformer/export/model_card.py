"""What stands beside an export for whoever finds it."""

from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

from tf_transformer.errors import MAX_LISTED

CARD = """\
# {source} to {target}

A Transformer in a SavedModel: strings in, strings out. `tensorflow` and `tensorflow_text` load it; nothing else is
needed. Written by tf_transformer {version} with TensorFlow {tensorflow}.

| | |
|---|---|
| Languages | {languages} |
{history}| Parameters | {parameters:,}: {num_layers} layers of width {d_model}, {num_heads} heads, in {dtype} |
{metrics}| Search | {search} |

```python
import tensorflow as tf
import tensorflow_text

model = tf.saved_model.load("{folder}")
print(model.signatures["serving_default"](text=tf.constant(["..."]))["translation"])
```

TensorFlow Serving takes the folder above this one as a model (`--model_base_path`), and so does `tf-transformer serve`.

| Signature | Takes (string, [batch]) | Gives |
|---|---|---|
{signatures}

[{description}]({description}) has the whole configuration, the data and the metrics.
"""

LITERT_CARD = """\
# {source} to {target}, for LiteRT

A Transformer in a `.tflite` with its SentencePiece models: strings in, strings out on NumPy, `sentencepiece` and
`ai-edge-litert`, without TensorFlow. Written by tf_transformer {version} with TensorFlow {tensorflow}.

| | |
|---|---|
| Languages | {languages} |
{history}| Parameters | {parameters:,}: {num_layers} layers of width {d_model}, {num_heads} heads, in {dtype} |
{metrics}| Search | {search}, unless the translator is told otherwise |

```python
from tf_transformer.litert import Translator

translator = Translator.load("{folder}")
print(translator.translate_strings(["..."]))
```

The page docs/devices.md of tf_transformer tells what an app on a phone or a small board does with these files.
[{description}]({description}) has what it must know in `litert`, and the whole configuration, the data and the metrics.
"""


def litert_card(folder: str, description: dict[str, Any], file: str) -> str:
    """Return the README of an export for LiteRT; the arguments are as of `card`."""
    return LITERT_CARD.format(folder=folder, description=file, **_facts(description, "between any of {listed} if told"))


def card(
    folder: str, description: dict[str, Any], file: str, signatures: dict[str, tuple[list[str], list[str]]]
) -> str:
    """Return the README of an export.

    Args:
        folder: the name of its folder.
        description: what is written into `file`.
        file: the name of that.
        signatures: for each the names of what it takes and gives.
    """
    rows = [
        f"| `{signature}` | {_names(takes)} | {_names(gives)} |" for signature, (takes, gives) in signatures.items()
    ]
    return CARD.format(
        folder=folder,
        signatures="\n".join(rows),
        description=file,
        **_facts(description, "in `serving_default`; between any of {listed} in `translate_to`"),
    )


def _facts(description: dict[str, Any], others: str) -> dict[str, Any]:
    """Return what all cards say of a model; `others` says how it translates between other languages that it has."""
    config, checkpoint = description["config"], description["checkpoint"]
    decoding = config["decoding"]
    if decoding["temperature"]:
        search = f"draws at temperature {decoding['temperature']}"
    elif decoding["beam_size"] == 1:
        search = "greedy"
    else:
        search = f"beam of {decoding['beam_size']}, length penalty {decoding['length_penalty']}"
    metrics = {key: value for key, value in checkpoint.items() if key.startswith("val_") and value is not None}
    source, target = (decoding[f"{side}_language"] or config["data"][side] or side for side in ("source", "target"))
    return dict(
        source=source,
        target=target,
        languages=_languages(source, target, description.get("languages", ()), others),
        version=description["packages"]["tf-transformer"],
        tensorflow=description["packages"]["tensorflow"],
        history=_history(description),
        parameters=description["parameters"],
        metrics="".join(f"| Validation, {key[4:]} | {value:.4g} |\n" for key, value in metrics.items()),
        search=search,
        dtype=description["dtype"],
        **{key: config["model"][key] for key in ("num_layers", "d_model", "num_heads")},
    )


def _languages(source: str, target: str, known: Sequence[str], others: str) -> str:
    """Return the row of the languages: what it translates by default, and what else it knows."""
    if not known:
        return f"{source} to {target}"
    listed = ", ".join(known) if len(known) <= MAX_LISTED else f"{len(known)} languages"
    return f"{source} to {target} {others.format(listed=listed)}"


def _history(description: dict[str, Any]) -> str:
    """Return the rows that tell where the weights come from."""
    if origin := description.get("origin"):
        rows = {
            "Imported from": f"{origin['name']} ({origin['architecture']})",
            "Licence": origin["licence"] or "unknown",
        }
    else:
        corpora, pairs = _corpora(description["config"]["data"]), description["data"]["train"]["pairs"]
        rows = {"Trained on": f"{corpora}: {pairs:,} pairs", "Updates": f"{description['checkpoint']['step']:,}"}
    return "".join(f"| {name} | {value} |\n" for name, value in rows.items())


def _corpora(data: dict[str, Any]) -> str:
    """Return what the corpora are called; where they lie says nothing to whoever finds the export."""
    corpora = [data["corpus"], *data["extra_corpora"]]
    return " and ".join(name if name.startswith("tfds:") else PurePath(name).name for name in corpora)


def _names(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
