"""The README.md beside an export, for whoever finds it."""

from collections.abc import Iterable, Mapping
from typing import Any

from tf_transformer.runs.signatures import Signature
from tf_transformer.runs.summaries import direction_of, summary_of

CARD = """\
# {source} to {target}

A Transformer in a SavedModel: strings in, strings out. `tensorflow` and `tensorflow_text` load it; nothing else is
needed. Written by tf_transformer {version} with TensorFlow {tensorflow}.

| | |
|---|---|
{summary}

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
{summary}

```python
from tf_transformer.litert import Translator

translator = Translator.load("{folder}")
print(translator.translate_strings(["..."]))
```

`Translator.load` takes another search as well. The page docs/devices.md of tf_transformer tells what an app on a phone
or a small board does with these files.
[{description}]({description}) has what it must know in `litert`, and the whole configuration, the data and the metrics.
"""

WEB_CARD = """\
# {source} to {target}, in a browser

A page that translates in the browser itself: a Transformer, its SentencePiece models, and LiteRT in WebAssembly.
Written by tf_transformer {version} with TensorFlow {tensorflow}.

| | |
|---|---|
{summary}

Any web server serves the folder, such as `python -m http.server --bind 127.0.0.1` in it. A browser does not run it from
a file without one. It needs nothing from elsewhere, and works without a network once it has been loaded from `https://`,
localhost or 127.0.0.1.

A page of your own translates like this:

```html
<script type="module">
  import {{Translator}} from "./translator.js";

  const translator = await Translator.load("./");
  const [{{translations}}] = await translator.translate(["..."]);
  console.log(translations[0].text, translations[0].score);
</script>
```

The page docs/devices.md of tf_transformer says more. [{description}]({description}) has the whole configuration, the
data and the metrics. The scripts of the page are those of tf_transformer, under the Apache License 2.0;
[runtime/LICENSE](runtime/LICENSE) says whose LiteRT is. The licence of the model is in the table above if it is known.
"""


def web_card(description: dict[str, Any], file: str) -> str:
    """Return the README of an export for browsers; the arguments are as in `card`."""
    return WEB_CARD.format(description=file, **_facts(description, "between any of {listed} as chosen on the page"))


def litert_card(folder: str, description: dict[str, Any], file: str) -> str:
    """Return the README of an export for LiteRT; the arguments are as in `card`."""
    return LITERT_CARD.format(folder=folder, description=file, **_facts(description, "between any of {listed} if told"))


def card(folder: str, description: dict[str, Any], file: str, signatures: Mapping[str, Signature]) -> str:
    """Return the README of an export.

    Args:
        folder: the name of its folder.
        description: what is written into `file`.
        file: the name of the description file.
        signatures: its signatures, by name.
    """
    rows = [f"| `{name}` | {_names(each.takes)} | {_names(each.gives)} |" for name, each in signatures.items()]
    return CARD.format(
        folder=folder,
        signatures="\n".join(rows),
        description=file,
        **_facts(description, "in `serving_default`; between any of {listed} in `translate_to`"),
    )


def _facts(description: dict[str, Any], others: str) -> dict[str, str]:
    """Return what all cards say of a model; `others` says how to translate between its other languages."""
    source, target = direction_of(description["config"])
    rows = summary_of(description, others)
    return dict(
        source=source,
        target=target,
        version=description["packages"]["tf-transformer"],
        tensorflow=description["packages"]["tensorflow"],
        summary="\n".join(f"| {name} | {value} |" for name, value in rows.items()),
    )


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
