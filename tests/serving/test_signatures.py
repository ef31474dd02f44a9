"""SavedModels that `export` did not write."""

import json

import pytest
import tensorflow as tf

from tf_transformer.serving import saved_model
from tf_transformer.serving.jobs import Waiting
from tf_transformer.serving.limits import Limits, Refused
from tf_transformer.serving.version import Version


def saved(path, **functions):
    """A SavedModel with the functions as its signatures."""
    text = tf.TensorSpec([None], tf.string, name="text")
    module = tf.Module()
    module.functions = {name: tf.function(f, input_signature=[text]) for name, f in functions.items()}
    tf.saved_model.save(module, str(path), signatures=module.functions)
    return path


def upper(text):
    return {"upper": tf.strings.upper(text)}


def words(text):
    return {"tokens": tf.strings.split(text).row_lengths()}


def letters(text):
    return {"letters": tf.strings.unicode_split(text, "UTF-8").to_tensor("")}


def test_bytes_are_counted_where_tokens_cannot_be(tmp_path):
    texts = ["a bä".encode(), b""]
    assert saved_model.load(saved(tmp_path / "1", serving_default=upper)).count(texts) == [5, 0]
    assert saved_model.load(saved(tmp_path / "2", serving_default=upper, count_tokens=words)).count(texts) == [2, 0]
    # What is called so, and counts nothing.
    assert saved_model.load(saved(tmp_path / "3", serving_default=upper, count_tokens=upper)).count(texts) == [5, 0]
    version = Version(tmp_path / "1", 1, Limits(max_tokens=8), lambda _: None)
    assert version.run("serving_default", {"text": [b"ab", b"cdefgh"]}, Waiting())["upper"].tolist() == [
        b"AB",
        b"CDEFGH",
    ]
    with pytest.raises(Refused, match=r"a request may have at most 8 tokens\. Received: 9"):
        version.run("serving_default", {"text": [b"ab", b"cdefghi"]}, Waiting())
    version.close()


@pytest.mark.parametrize(
    ("description", "languages"),
    [
        (None, (None, None)),
        ({"format_version": 1, "config": {"model": {}}}, (None, None)),
        ({"format_version": 1, "config": {"model": {}, "data": {"source": "en", "target": "de"}}}, ("en", "de")),
        ({"format_version": 99}, (None, None)),
    ],
    ids=["foreign", "without", "with", "later"],
)
def test_languages_are_what_the_export_says(tmp_path, description, languages, caplog):
    path = saved(tmp_path / "1", serving_default=upper)
    if description:
        (path / "assets.extra").mkdir()
        (path / "assets.extra" / "tf_transformer.json").write_text(json.dumps(description))
    assert Version(path, 1, Limits(), lambda _: None).direction == languages
    assert ("format version 99" in caplog.text) == (description == {"format_version": 99})


def test_what_has_a_width_of_its_own_shares_no_batch(tmp_path):
    signatures = saved_model.load(saved(tmp_path / "1", serving_default=upper, letters=letters))
    assert signatures.regular == {"serving_default"}
    assert signatures.outputs == {"serving_default": ("upper",), "letters": ("letters",)}
    version = Version(tmp_path / "1", 1, Limits(max_batch_tokens=32), lambda _: None)
    found = version.run("letters", {"text": [b"a", b"b" * 40, b"cd"]}, Waiting())["letters"]
    assert found.shape == (3, 40)
    assert [b"".join(row) for row in found.tolist()] == [b"a", b"b" * 40, b"cd"]
    version.close()
