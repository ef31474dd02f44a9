"""Pages: our own, and those of others."""

import asyncio
import dataclasses
import json
import math
import re

import numpy as np
import pytest
from starlette.testclient import TestClient

from tests.serving.conftest import TEXT
from tf_transformer.errors import InputError
from tf_transformer.serving.http.origin import origins
from tf_transformer.serving.http.rest import make_app
from tf_transformer.serving.http.texts import translated
from tf_transformer.text.documents import parts_of, segmenter

ASKED = (
    ("/v1/models/copy:predict", {"instances": [TEXT]}),
    ("/page/translate", {"text": TEXT}),
    ("/page/attention", {"text": TEXT}),
    ("/page/steps", {"text": TEXT}),
)


FOREIGN = {
    "cross-site": {"Sec-Fetch-Site": "cross-site"},
    "same-site": {"Sec-Fetch-Site": "same-site", "Origin": "http://127.0.0.1:8501"},
    "other host": {"Origin": "http://elsewhere:8501"},
    "other port": {"Origin": "http://127.0.0.1:8000"},
    "no port": {"Origin": "http://127.0.0.1"},
    "null": {"Origin": "null"},
    "no address": {"Origin": "http://["},
    "no port number": {"Origin": "http://127.0.0.1:x"},
}


OURS = {
    "no browser": {},
    "a browser": {"Sec-Fetch-Site": "same-origin", "Origin": "http://127.0.0.1:8501"},
    "by hand": {"Sec-Fetch-Site": "none"},
    "an older browser": {"Origin": "http://127.0.0.1:8501"},
    "behind a proxy": {"Origin": "https://Translate.example", "Host": "translate.example"},
    "behind a proxy that has a name of its own": {
        "Sec-Fetch-Site": "same-origin",
        "Origin": "https://translate.example",
    },
}


@pytest.mark.parametrize("name", FOREIGN)
def test_the_page_of_another_origin_is_refused(client, name):
    headers = {"Host": "127.0.0.1:8501", "Content-Type": "application/json"} | FOREIGN[name]
    for path, body in ASKED:
        response = client.post(path, content=json.dumps(body), headers=headers)
        assert response.status_code == 403
        assert "a page of another origin may not use this server. Received: " in response.json()["error"]


@pytest.mark.parametrize("name", OURS)
def test_programs_and_our_own_page_are_let_through(client, name):
    headers = {"Host": "127.0.0.1:8501", "Content-Type": "application/json; charset=utf-8"} | OURS[name]
    for path, body in ASKED:
        assert client.post(path, content=json.dumps(body), headers=headers).status_code == 200


ORIGIN = "https://app.example"


@pytest.fixture
def open_client(model):
    return TestClient(make_app(model, origins([ORIGIN])))


def test_an_origin_may_be_let_in(open_client, client):
    foreign = {"Sec-Fetch-Site": "cross-site", "Origin": ORIGIN}
    body = json.dumps({"instances": [TEXT]})
    response = open_client.post("/v1/models/copy:predict", content=body, headers=foreign)
    assert (response.status_code, response.headers["access-control-allow-origin"]) == (200, ORIGIN)
    other = open_client.post("/v1/models/copy:predict", content=body, headers=foreign | {"Origin": f"{ORIGIN}:8"})
    assert (other.status_code, other.headers.get("access-control-allow-origin")) == (403, None)
    # What is refused may be read too, and so may what the model is; the page is our own alone.
    bad = open_client.post("/v1/models/copy:predict", content=b"nope", headers=foreign)
    assert (bad.status_code, bad.headers["access-control-allow-origin"]) == (400, ORIGIN)
    for path in ("/v1/models/copy", "/v1/models/copy/metadata"):
        assert open_client.get(path, headers=foreign).headers["access-control-allow-origin"] == ORIGIN
        assert "access-control-allow-origin" not in client.get(path, headers=foreign).headers
    assert "access-control-allow-origin" not in open_client.get("/metrics", headers=foreign).headers
    assert open_client.post("/page/translate", json={"text": TEXT}, headers=foreign).status_code == 403


@pytest.mark.parametrize("path", ["/v1/models/copy:predict", "/v1/models/copy", "/v1/models/copy/metadata"])
def test_a_browser_may_ask_first(open_client, client, path):
    asked = {
        "Origin": ORIGIN,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "content-type",
    }
    answer = open_client.options(path, headers=asked)
    assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (200, ORIGIN)
    assert "POST" in answer.headers["access-control-allow-methods"]
    assert "Content-Type" in answer.headers["access-control-allow-headers"]
    refused = open_client.options(path, headers=asked | {"Origin": "https://other.example"})
    assert (refused.status_code, refused.headers.get("access-control-allow-origin")) == (400, None)
    assert client.options(path, headers=asked).status_code == 405


def test_every_origin_may_be_let_in(model):
    client = TestClient(make_app(model, origins(["*"])))
    foreign = {"Sec-Fetch-Site": "cross-site", "Origin": ORIGIN}
    response = client.post("/v1/models/copy:predict", content=json.dumps({"instances": [TEXT]}), headers=foreign)
    assert (response.status_code, response.headers["access-control-allow-origin"]) == (200, "*")


@pytest.mark.parametrize(
    "given",
    ["app.example", "https://app.example/", "https://App.example", "https://", "", "null", "http://[", "https://[::1"],
)
def test_what_is_no_origin_is_refused(given):
    wanted = rf"an origin must be like https://app.example or .* Received: '{re.escape(given)}'"
    with pytest.raises(InputError, match=wanted):
        origins([ORIGIN, given])


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
def test_the_page_sends_json_alone(client, kind):
    """What any page may send to any server is not that."""
    response = client.post("/page/translate", content=json.dumps({"text": TEXT}), headers={"Content-Type": kind})
    assert response.status_code == 415
    assert response.json() == {"error": f"the body must be of type application/json. Received: {kind!r}"}


def test_the_page_gets_all_there_is_to_show(client, exported):
    answer = client.post("/page/translate", json={"text": TEXT}).json()
    (sentence,) = answer["sentences"]
    assert [row["translation"] for row in sentence["n_best"]] == [
        text for text, _ in exported.n_best_strings([TEXT], 4)[0]
    ]
    assert all(math.isfinite(row["score"]) for row in sentence["n_best"])
    assert (sentence["text"], sentence["is_truncated"]) == (TEXT, False)
    assert answer["translation"] == sentence["n_best"][0]["translation"]
    shown = client.post("/page/attention", json={"text": TEXT}).json()
    target, source, read = (len(shown[f"{kind}_tokens"]) for kind in ("target", "source", "read"))
    sizes = {"cross": (target, source), "encoder": (source, source), "decoder": (target, read)}
    layers = {np.shape(shown["kinds"][kind])[:2] for kind in sizes}
    assert len(layers) == 1
    assert {kind: np.shape(weights)[2:] for kind, weights in shown["kinds"].items()} == sizes
    assert source == 4
    for path in ("/page/translate", "/page/attention", "/page/steps"):
        refused = client.post(path, json={"text": " \n "})
        assert (refused.status_code, refused.json()) == (400, {"error": "give 'text', a sentence or several lines"})


def test_the_page_gets_the_steps_of_a_search_and_chooses_others(client, exported):
    steps = client.post("/page/steps", json={"text": TEXT}).json()
    assert steps["translation"] == exported.translate_strings([TEXT])[0]
    assert len(steps["tokens"]) == len(steps["ids"]) == len(steps["next"])
    for token, of_step in zip(steps["tokens"], steps["next"], strict=True):
        assert token in [other["token"] for other in of_step]
        assert sum(other["probability"] for other in of_step) <= 1 + 1e-4
    best = [node["token"] for step in steps["tree"] for node in step if node["is_best"]]
    assert best == steps["tokens"]
    other = next(other for other in steps["next"][1] if other["id"] != steps["ids"][1])
    chosen = client.post("/page/steps", json={"text": TEXT, "prefix": [steps["ids"][0], other["id"]]}).json()
    assert chosen["tokens"][:2] == [steps["tokens"][0], other["token"]]
    for wrong in (["1"], "1", [[1]], [True]):
        refused = client.post("/page/steps", json={"text": TEXT, "prefix": wrong})
        assert refused.status_code == 400 and "'prefix' must be a list of numbers" in refused.json()["error"]


@pytest.mark.parametrize(
    "path", ["/page/translate", "/v1/models/copy:translate", "/v1/models/copy/versions/1:translate"]
)
def test_text_is_translated_sentence_by_sentence(client, exported, path):
    answer = client.post(path, json={"text": " a b c! d e! \r\n\n\td e\n"}).json()
    texts = ["a b c!", "d e!", "d e"]
    assert [sentence["text"] for sentence in answer["sentences"]] == texts
    one, two, three = exported.translate_strings(texts)
    assert answer["translation"] == f" {one} {two} \r\n\n\t{three}\n"


def test_a_text_that_is_refused(client):
    path = "/v1/models/copy:translate"
    assert client.post(path, content='{"text": "a b c"}').status_code == 200  # as curl sends it
    assert client.post("/v1/models/other:translate", json={"text": "a"}).status_code == 404
    assert client.get(path).status_code == 405
    assert client.post(path, json={"text": 5}).json() == {"error": "give 'text', a sentence or several lines"}
    foreign = {"Origin": "https://elsewhere.example"}
    assert client.post(path, json={"text": "a"}, headers=foreign).status_code == 403


def test_a_sentence_that_was_cut_off_is_translated_in_parts():
    """By a translator that reads 11 characters, and makes them upper case."""

    async def shout(sentences):
        asked.append(sentences)
        return [{"translations": [text[:11].upper()], "is_truncated": len(text) > 11} for text in sentences]

    asked = []
    text = "  one two three, four five six. x\n\n" + "y" * 23
    lines = [parts_of(line, segmenter("en"), lambda sentence: True) for line in text.splitlines(keepends=True)]
    document = asyncio.run(translated(lines, shout))
    assert document.translation == text.upper()
    assert [part.sentence.text for part in document.parts][:3] == ["one two", "three,", "four five"]
    assert asked[0] == ["one two three, four five six.", "x", "y" * 23]
    assert "x" not in asked[1]  # what is done is not asked for again


def test_a_sentence_that_is_too_long_is_translated_in_parts(client, exported, model, monkeypatch):
    """By a model that reads 11 characters. All sentences are cut before any of them is translated."""
    monkeypatch.setattr(model.version, "fits", lambda text: len(text) <= 11)
    text = "  a b c d e f, g h i j kind. X\n\n" + "y" * 23
    answer = client.post("/v1/models/copy:translate", json={"text": text}).json()
    sentences = [sentence["text"] for sentence in answer["sentences"]]
    assert sentences[:5] == ["a b c", "d e f,", "g h i", "j kind.", "X"]
    assert all(len(sentence) <= 11 for sentence in sentences) and "".join(sentences[5:]) == "y" * 23
    assert answer["translation"].split("\n\n")[0].startswith(f"  {exported.translate_strings(['a b c'])[0]} ")
    monkeypatch.setattr(model, "limits", dataclasses.replace(model.limits, max_sentences=4))
    monkeypatch.setattr(model.version, "run", lambda *_: pytest.fail("it was translated"))
    refused = client.post("/v1/models/copy:translate", json={"text": text})
    assert refused.status_code == 400 and "at most 4 sentences" in refused.json()["error"]


def test_the_server_knows_what_fits_into_the_model(model):
    """The model reads 512 tokens; a letter is one."""
    assert model.version.fits("a " * 510) and not model.version.fits("a " * 511 + "a")


def test_the_page_names_model_version_and_languages(client, model, monkeypatch):
    unknown = {
        "name": "copy",
        "version": 1,
        "source": None,
        "target": None,
        "languages": [],
        "has_steps": True,
        "has_terms": True,
    }
    assert client.get("/page/model").json() == unknown
    monkeypatch.setattr(model.version, "direction", ("en", "de"))
    known = unknown | {"source": "en", "target": "de"}
    assert client.get("/page/model").json() == known
    assert client.post("/page/translate", json={"text": TEXT}).json()["model"] == known
