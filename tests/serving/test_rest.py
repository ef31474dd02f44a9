"""The REST API: TensorFlow Serving's forms, and what is refused."""

import asyncio
import base64
import dataclasses
import gzip
import json
import subprocess
import sys
from pathlib import Path

import httpx
import numpy as np
import pytest
import tensorflow as tf

from tests.serving.conftest import TEXT, predict
from tf_transformer.data.corpora import copy_task
from tf_transformer.serving import jobs
from tf_transformer.serving.http import json_form
from tf_transformer.serving.http.rest import make_app
from tf_transformer.serving.limits import Limits

B64 = {"b64": base64.b64encode(TEXT.encode()).decode()}


@pytest.mark.parametrize("row", [TEXT, {"text": TEXT}, B64, {"text": B64}], ids=["string", "named", "b64", "named b64"])
def test_rows_are_answered_by_rows(client, exported, row):
    status, answer = predict(client, {"instances": [row, row]})
    assert status == 200
    assert list(answer) == ["predictions"]
    [translation] = exported.translate_strings([TEXT])
    [scores] = exported.score_strings([(TEXT, translation)])
    for prediction in answer["predictions"]:
        assert prediction["translation"] == translation
        assert prediction["is_truncated"] is False
        assert prediction["score"] == pytest.approx(sum(scores), abs=1e-4)


@pytest.mark.parametrize("inputs", [[TEXT, "d"], {"text": [TEXT, "d"]}], ids=["list", "named"])
@pytest.mark.parametrize("path", ["/v1/models/copy:predict", "/v1/models/copy/versions/1:predict"])
def test_columns_are_answered_by_columns(client, exported, inputs, path):
    status, answer = predict(client, {"inputs": inputs, "signature_name": "serving_default"}, path)
    assert status == 200
    assert answer["outputs"]["translation"] == exported.translate_strings([TEXT, "d"])
    assert answer["outputs"].keys() == {"translation", "score", "is_truncated"}


def test_a_single_output_has_no_name(client):
    assert predict(client, {"instances": [TEXT, "d"], "signature_name": "count_tokens"})[1] == {"predictions": [4, 2]}
    assert predict(client, {"inputs": [TEXT, "d"], "signature_name": "count_tokens"})[1] == {"outputs": [4, 2]}


def test_two_inputs_are_named(client, exported):
    pairs = [(TEXT, "a b"), ("d", "d")]
    wanted = [sum(scores) for scores in exported.score_strings(pairs)]
    rows = [{"source": source, "target": target} for source, target in pairs]
    columns = {name: [row[name] for row in rows] for name in ("source", "target")}
    _, answer = predict(client, {"instances": rows, "signature_name": "score"})
    assert [row["log_probability"] for row in answer["predictions"]] == pytest.approx(wanted, abs=1e-3)
    _, answer = predict(client, {"inputs": columns, "signature_name": "score"})
    assert answer["outputs"]["log_probability"] == pytest.approx(wanted, abs=1e-3)


@pytest.mark.parametrize("signature", ["serving_default", "translate_n_best", "translate_with_attention"])
def test_more_than_a_batch_is_split_and_keeps_its_order(client, exported, signature):
    sentences = [" ".join("abcdefgh"[: 1 + (5 * i) % 7]) for i in range(19)]
    _, answer = predict(client, {"inputs": sentences, "signature_name": signature})
    found = answer["outputs"].get("translation") or [row[0] for row in answer["outputs"]["translations"]]
    assert found == exported.translate_strings(sentences)
    if signature == "translate_with_attention":
        attention, tokens = answer["outputs"]["attention"], answer["outputs"]["source_tokens"]
        for sentence, pieces, weights in zip(sentences, tokens, attention, strict=True):
            real = [piece for piece in pieces if piece]
            assert len(real) == len(sentence.split()) + 1
            assert np.sum(weights, axis=1)[: len(real)] == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize("form", ["instances", "inputs"])
def test_no_sentence_is_no_error(client, form):
    status, answer = predict(client, {form: []})
    assert status == 200
    assert answer in ({"predictions": []}, {"outputs": {"translation": [], "score": [], "is_truncated": []}})


REFUSED = {
    "no JSON": (b"nope", "JSON Parse error"),
    "no UTF-8": (b'{"instances": ["\xff"]}', "JSON Parse error"),
    "deep": (b'{"instances": ' + b"[" * 1900, "JSON Parse error"),
    "a key twice": (b'{"instances": ["a"], "instances": ["b"]}', "an object has the key 'instances' twice"),
    "a key twice within": (b'{"instances": [{"text": "a", "text": "b"}]}', "an object has the key 'text' twice"),
    "no object": ([], "must be a JSON object. Received: list"),
    "no form": ({}, "either 'instances' or 'inputs'. Received: neither"),
    "both forms": ({"instances": [TEXT], "inputs": [TEXT]}, "Received: instances and inputs"),
    "no list": ({"instances": TEXT}, "'instances' must be a list. Received: str"),
    "a number": ({"instances": [1]}, "must be a list of strings. Received: int"),
    "null": ({"inputs": [None]}, "Received: NoneType"),
    "nested": ({"inputs": [[TEXT]]}, "Received: list"),
    "other name": ({"instances": [{"texts": TEXT}]}, "the signature takes text. Received: texts"),
    "one name too many": ({"inputs": {"text": [TEXT], "x": [TEXT]}}, "Received: text, x"),
    "mixed": ({"instances": [{"text": TEXT}, TEXT]}, "must all be objects of named inputs, or all be strings"),
    "base64": ({"instances": [{"b64": "?"}]}, "b64 value that is not base64"),
    "signature": (
        {"instances": [TEXT], "signature_name": "x"},
        "there is no signature 'x': call one of attention,",
    ),
    "empty signature type": ({"instances": [TEXT], "signature_name": {}}, "must be a string. Received: dict"),
    "signature type": ({"instances": [TEXT], "signature_name": 3}, "must be a string. Received: int"),
    "unnamed of two": ({"instances": [TEXT], "signature_name": "score"}, "name the inputs of this signature: source"),
    "unequal": (
        {"inputs": {"source": [TEXT], "target": []}, "signature_name": "score"},
        "the same number of sentences. Received: [0, 1]",
    ),
    "many": ({"instances": ["a"] * 21}, "a request may have at most 20 sentences. Received: 21"),
    "long": ({"instances": ["a " * 149, "b " * 150]}, "a request may have at most 300 tokens. Received: 301"),
    "long of two inputs": (
        {"instances": [{"source": "a " * 149, "target": "b " * 150}], "signature_name": "score"},
        "a request may have at most 300 tokens. Received: 301",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bad_input_is_refused_with_a_reason(client, name):
    body, message = REFUSED[name]
    status, answer = predict(client, body)
    assert status == 400
    assert list(answer) == ["error"]
    assert message in answer["error"]
    assert predict(client, {"instances": [TEXT]})[0] == 200


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/v1/models/other:predict", 404),
        ("/v1/models/copy/versions/2:predict", 404),
        ("/v1/models/copy/versions/x:predict", 400),
        (f"/v1/models/copy/versions/{'9' * 5000}:predict", 404),
        ("/v1/models/%2e%2e%2fcopy:predict", 404),
        ("/elsewhere", 404),
        ("/v1/models/copy", 405),
        ("/healthz", 405),
        ("/v1/models/copy:predict/", 404),
        ("/page/translate/", 404),
    ],
)
def test_other_places_say_so(client, path, status):
    found, answer = predict(client, {"instances": [TEXT]}, path)
    assert found == status
    assert list(answer) == ["error"]


def test_only_post_predicts(client):
    response = client.get("/v1/models/copy:predict")
    assert (response.status_code, response.headers["allow"]) == (405, "POST")


@pytest.mark.parametrize("path", ["/v1/models/copy/", "/v1/models/copy/metadata/", "/healthz/", "/metrics/"])
def test_a_slash_at_the_end_is_another_place(client, path):
    response = client.get(path, headers={"Host": "elsewhere"}, follow_redirects=False)
    assert (response.status_code, response.headers.get("location")) == (404, None)


@pytest.mark.parametrize("chunked", [False, True])
def test_a_large_body_is_refused(client, chunked):
    body = json.dumps({"instances": [TEXT], "padding": "x" * 2000}).encode()
    response = client.post("/v1/models/copy:predict", content=iter([body[:99], body[99:]]) if chunked else body)
    assert (response.status_code, response.json()) == (413, {"error": "the body may have at most 2000 bytes"})


def test_a_slow_body_is_refused(model, monkeypatch):
    monkeypatch.setattr(model, "limits", Limits(timeout=0.05))

    async def slow():
        yield b'{"instances": '
        await asyncio.sleep(20)
        yield b'["a"]}'

    async def post():
        transport = httpx.ASGITransport(make_app(model))
        async with httpx.AsyncClient(transport=transport, base_url="http://server") as client:
            return await client.post("/v1/models/copy:predict", content=slow())

    response = asyncio.run(post())
    assert (response.status_code, response.json()) == (408, {"error": "the body took more than 0.05 s"})


def test_half_a_surrogate_is_read_as_bad_utf8(client, copy_export):
    status, answer = predict(client, b'{"instances": ["\\ud800 a", "a b c"]}')
    assert status == 200
    text = tf.constant([b"\xed\xa0\x80 a", b"a b c"])
    wanted = tf.saved_model.load(str(copy_export)).signatures["serving_default"](text=text)["translation"]
    assert [row["translation"].encode() for row in answer["predictions"]] == wanted.numpy().tolist()


@pytest.mark.parametrize("path", ["/v1/models/copy:translate", "/page/translate"])
def test_half_an_emoji_in_a_text_is_read_as_bad_utf8(client, path):
    headers = {"Content-Type": "application/json"}
    found, wanted = (
        client.post(path, content=json.dumps({"text": f"half an emoji {end}"}), headers=headers)
        for end in ("\ud83d", 3 * "\ufffd")
    )
    assert found.status_code == 200 and found.json() == wanted.json()


BODY = json.dumps({"instances": [TEXT]}).encode()
PACKED = gzip.compress(BODY, mtime=0)  # test processes would disagree on the names of tests that tell the time


@pytest.mark.parametrize(
    ("packing", "body", "status", "part"),
    [
        ("gzip", PACKED, 200, ""),
        ("GZIP", PACKED, 200, ""),
        ("identity", BODY, 200, ""),
        ("gzip", BODY, 400, "the body is not gzip"),
        ("gzip", PACKED[:-9], 400, "the body is not complete gzip"),
        ("gzip", gzip.compress(BODY + bytes(10_000_000), mtime=0), 413, "the body may have at most 20000 bytes"),
        ("br", BODY, 415, "send the body without Content-Encoding, or packed by gzip. Received: br"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_a_body_may_be_packed_by_gzip(client, monkeypatch, model, packing, body, status, part):
    monkeypatch.setattr(model, "limits", dataclasses.replace(model.limits, max_body=20_000))
    answer = client.post("/v1/models/copy:predict", content=body, headers={"Content-Encoding": packing})
    assert answer.status_code == status and part in answer.json().get("error", "")


def test_it_says_what_it_serves(client):
    for path in ("/v1/models/copy", "/v1/models/copy/versions/1"):
        (state,) = client.get(path).json()["model_version_status"]
        assert state == {"version": "1", "state": "AVAILABLE", "status": {"error_code": "OK", "error_message": ""}}
    metadata = client.get("/v1/models/copy/metadata").json()
    assert metadata["model_spec"] == {"name": "copy", "signature_name": "", "version": "1"}
    (text,) = metadata["metadata"]["signature_def"]["signature_def"]["serving_default"]["inputs"].values()
    assert text["dtype"] == "DT_STRING"
    assert text["tensor_shape"] == {"dim": [{"size": "-1", "name": ""}], "unknown_rank": False}
    assert client.get("/healthz").text == "ok\n"


def test_it_is_ready_once_all_signatures_are_warm(client, model, monkeypatch):
    ready = client.get("/readyz")
    assert ready.status_code == 200
    assert ready.json() == {"version": 1, "warm": sorted(model.version.signatures.inputs), "cold": []}
    monkeypatch.setattr(model.version, "cold", {"score"})
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()["cold"]) == (503, ["score"])
    assert "score" not in answer.json()["warm"] and client.get("/healthz").text == "ok\n"


class Panic(BaseException):
    """What Rust raises."""


@pytest.mark.parametrize("error", [KeyError, Panic, tf.errors.InternalError(None, None, "no memory")])
@pytest.mark.parametrize("path", ["/v1/models/copy:predict", "/v1/models/copy:translate", "/page/attention"])
def test_whatever_goes_wrong_inside_is_said_in_json(client, model, monkeypatch, error, path):
    def fail(*_):
        raise error

    monkeypatch.setattr(model.version, "run", fail)
    answer = client.post(path, json={"instances": [TEXT]} if "predict" in path else {"text": TEXT})
    assert answer.status_code == 500
    assert answer.json()["error"] in ("the server failed; its log says why", "the model failed: no memory")


def test_what_goes_wrong_outside_a_model_is_said_in_json(client, model, monkeypatch):
    monkeypatch.setattr(model, "find", lambda *_: {}["a"])
    status, answer = predict(client, {"instances": [TEXT]})
    assert (status, answer) == (500, {"error": "the server failed at POST /v1/models/copy:predict; its log says why"})


def test_an_answer_without_bound_is_refused(client, monkeypatch):
    monkeypatch.setattr(jobs, "MAX_VALUES", 100)
    status, answer = predict(client, {"inputs": ["a b c d e f g"] * 3, "signature_name": "translate_with_attention"})
    assert status == 400
    assert "values, but may have 100: send less" in answer["error"]


def test_numbers_have_the_digits_of_their_type():
    outputs = {"x": np.array([0.1, -np.inf], np.float32), "n": np.array([3, 4])}
    text = json.dumps(json_form.answer(outputs, by_rows=True))
    assert text == '{"predictions": [{"x": 0.1, "n": 3}, {"x": -Infinity, "n": 4}]}'


def test_the_client_of_the_examples_keeps_the_order_of_lines(served):
    """More lines than it sends at once, to a model that copies nearly all of them."""
    client = Path(__file__).parents[2] / "examples" / "batch_client.py"
    lines = [source for source, _ in copy_task.pairs("test")[:150]]
    text = "".join(f"{line}\n" for line in lines)
    model = f"{served.url}/v1/models/{served.name}"
    done = subprocess.run([sys.executable, str(client), model], input=text, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    found = done.stdout.splitlines()
    assert len(found) == len(lines)
    assert sum(map(str.__eq__, found, lines)) > 140
    done = subprocess.run([sys.executable, str(client), model + "x"], input=text, capture_output=True, text=True)
    assert done.returncode == 1 and "404" in done.stderr and done.stderr.count("\n") == 1


def test_a_glossary_says_what_translations_contain(client):
    path = "/v1/models/copy:translate"

    def translated(**asked):
        response = client.post(path, json={"text": "a b c.\nd e", **asked})
        return response.status_code, response.json()

    plain = translated()[1]
    status, found = translated(glossary={"d": "h g", "zz": "a", "B": "h"})
    assert status == 200
    assert found["sentences"][0] == plain["sentences"][0] and "h g" not in plain["translation"]
    assert "h g" in found["sentences"][1]["translation"]
    assert found["translation"] == "\n".join(sentence["translation"] for sentence in found["sentences"])
    assert translated(glossary={}) == translated()
    for glossary in ([], "d = h", {"d": ""}, {"d": 1}, {" ": "h"}, {"d": "h\tg"}):
        status, found = translated(glossary=glossary)
        assert status == 400 and "glossary" in found["error"], glossary
    assert translated(glossary={"d": "\u200b"})[0] == 400
    assert "at most" in translated(glossary={letter: "h" for letter in "de"} | {"d e": "h " * 300})[1]["error"]
