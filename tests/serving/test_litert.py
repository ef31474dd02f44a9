"""An export for LiteRT is served as a SavedModel is: the same signatures, the same answers."""

import json
import urllib.request

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.eager.cancellation import CancellationManager

from tests.serving.conftest import SENTENCES
from tf_transformer.data.corpora import copy_task
from tf_transformer.serving import litert, saved_model
from tf_transformer.serving.limits import Limits
from tf_transformer.serving.metrics import Metrics
from tf_transformer.serving.model import ServedModel

TEXT = copy_task.pairs("test")[0][0]
ODD = ["", "a b", "z" * 40, "\u2581 x", "h g f e d c b a"]


@pytest.fixture(scope="module")
def folder(copy_litert):
    return copy_litert("float32").parent


@pytest.mark.long
def test_signatures_are_those_of_a_saved_model(folder, copy_export):
    ours, theirs = litert.load(folder / "1", 2048), saved_model.load(copy_export)
    # A step in LiteRT gives the attention of one layer, and its search records nothing and takes no terms.
    only_theirs = {"attention", "search_steps", "translate_with_terms"}
    assert ours.inputs == {name: of for name, of in theirs.inputs.items() if name not in only_theirs}
    assert ours.outputs == {name: of for name, of in theirs.outputs.items() if name not in only_theirs}
    assert ours.regular == theirs.regular - only_theirs
    for name, shown in theirs.metadata["signature_def"]["signature_def"].items():
        if name in only_theirs:
            continue
        for side in ("inputs", "outputs"):
            for key, tensor in shown[side].items():
                other = ours.metadata["signature_def"]["signature_def"][name][side][key]
                assert other["dtype"] == tensor["dtype"]
                assert len(other["tensor_shape"]["dim"]) == len(tensor["tensor_shape"]["dim"])
    sentences = [*SENTENCES[:9], *ODD]
    for name, inputs in ours.inputs.items():
        rows = [tuple(sentences[(i + j) % len(sentences)].encode() for j in range(len(inputs))) for i in range(14)]
        answers = [signatures.call(name, rows) for signatures in (ours, theirs)]
        texts = [row[0] for row in rows]
        assert ours.count(texts) == theirs.count(texts)
        for key, expected in answers[1].items():
            found = answers[0][key]
            assert found.shape == expected.shape, (name, key)
            if expected.dtype == np.float32:
                np.testing.assert_allclose(found, expected, atol=2e-3)
            else:
                assert found.tolist() == expected.tolist()
                assert found.dtype == expected.dtype


def test_it_is_one_of_the_versions(folder, copy_export, tmp_path):
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / "1").symlink_to(copy_export)
    (tmp_path / "copy" / "2").symlink_to(folder / "1")
    model = ServedModel(tmp_path / "copy", None, Limits(), Metrics())
    assert model.version.number == 2


def test_a_server_serves_it(folder, start_server):
    served = start_server(folder)
    body = json.dumps({"instances": [TEXT, *ODD]}).encode()
    request = urllib.request.Request(f"{served.url}/v1/models/{served.name}:predict", body)
    with urllib.request.urlopen(request) as answer:
        predictions = json.load(answer)["predictions"]
    assert predictions[0]["translation"] == TEXT
    assert predictions[1]["translation"] == ""
    for path, asked in (("translate", {"text": TEXT}), ("attention", {"text": TEXT})):
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{served.url}/page/{path}", json.dumps(asked).encode(), headers)
        with urllib.request.urlopen(request) as answer:
            found = json.load(answer)
    assert list(found["kinds"]) == ["cross"]
    assert np.shape(found["kinds"]["cross"]) == (1, 1, len(found["target_tokens"]), len(found["source_tokens"]))


def test_it_stops_between_two_steps(folder):
    """Whatever it computes. Without that, a batch that nobody waits for would hold up all others."""
    ours = litert.load(folder / "1", 2048)
    row = SENTENCES[0].encode()
    for name in ours.inputs.keys() - {"count_tokens"}:
        cancellation = CancellationManager()
        cancellation.start_cancel()
        with pytest.raises(tf.errors.CancelledError):
            ours.call(name, [(row,) * len(ours.inputs[name])], cancellation)
