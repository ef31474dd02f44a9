"""A model of several languages: its signatures by REST, and the choice on the page."""

import dataclasses

import pytest
from playwright.sync_api import expect
from starlette.testclient import TestClient

from tests.serving.conftest import LIMITS, predict
from tf_transformer.runs.descriptions import Described
from tf_transformer.serving.http.rest import make_app
from tf_transformer.serving.metrics import Metrics
from tf_transformer.serving.model import ServedModel
from tf_transformer.translation.exported import ExportedTranslator

ENGLISH, GERMAN = "Her friend buys a small chair.", "Der Hund kauft einen Stuhl."

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def translate(languages_export):
    """What the export itself finds."""

    def translated(text, source, target):
        described = Described(languages_export)
        search = dataclasses.replace(described.config.decoding, source_language=source, target_language=target)
        [translation] = ExportedTranslator(described, search).translate_strings([text])
        return translation

    return translated


@pytest.fixture(scope="module")
def client(languages_export):
    model = ServedModel(languages_export, "nllb", LIMITS, Metrics())
    with TestClient(make_app(model), raise_server_exceptions=False) as client:
        yield client


PATH = "/v1/models/nllb:predict"


def row(text, source, target):
    return {"text": text, "source_language": source, "target_language": target}


def test_rows_of_one_request_have_languages_of_their_own(client, translate):
    rows = [row(ENGLISH, "eng_Latn", "deu_Latn"), row(GERMAN, "deu_Latn", "eng_Latn")]
    status, answer = predict(client, {"instances": rows, "signature_name": "translate_to"}, PATH)
    assert status == 200
    assert [one["translation"] for one in answer["predictions"]] == [translate(*one.values()) for one in rows]
    _, answer = predict(client, {"instances": [ENGLISH]}, PATH)
    assert answer["predictions"][0]["translation"] == translate(ENGLISH, "eng_Latn", "deu_Latn")


def test_an_unknown_language_is_refused_alone(client):
    body = {"instances": [row(ENGLISH, "eng_Latn", "de")], "signature_name": "translate_to"}
    status, answer = predict(client, body, PATH)
    assert status == 400
    assert "target_language" in answer["error"] and "did you mean 'deu_Latn'" in answer["error"]


def test_a_language_that_is_not_given_is_asked_for(client):
    answer = client.post("/v1/models/nllb:translate", json={"text": ENGLISH, "source_language": None})
    assert answer.status_code == 400
    assert answer.json()["error"].startswith("give 'source_language', one of ")
    assert "eng_Latn" in answer.json()["error"]


def test_languages_count_as_no_tokens(client):
    rows = [row("a", "eng_Latn", "deu_Latn")] * 20
    status, _ = predict(client, {"instances": rows, "signature_name": "translate_to"}, PATH)
    assert status == 200  # names of languages would be more than the 300 tokens of these limits


def test_a_language_is_read_once_for_many_lines(client):
    """A long one for each of many lines would take all memory."""
    body = {"text": "a\n" * 10, "source_language": "x" * 1000, "target_language": "eng_Latn"}
    answer = client.post("/page/translate", json=body)
    assert answer.status_code == 400 and "unknown language 'xxx" in answer.json()["error"]
    answer = client.post("/page/translate", json=body | {"text": "a\n" * 400, "source_language": "eng_Latn"})
    assert answer.status_code == 400 and "sentences" in answer.json()["error"]


@pytest.fixture
def page(context, languages_served):
    page = context.new_page()
    page.goto(languages_served.url)
    return page


def test_the_page_offers_the_languages(page, translate):
    expect(page.locator("#languages")).to_be_visible()
    for side, preset in (("source", "eng_Latn"), ("target", "deu_Latn")):
        choice = page.locator(f"#{side}_language")
        assert choice.locator("option").all_inner_texts() == ["eng_Latn", "deu_Latn"]
        expect(choice).to_have_value(preset)
    page.locator("#source_language").select_option("deu_Latn")
    page.locator("#target_language").select_option("eng_Latn")
    page.locator("#text").fill(GERMAN)
    page.keyboard.press("Enter")
    expect(page.locator("#translation")).to_have_text(translate(GERMAN, "deu_Latn", "eng_Latn"))
    expect(page.locator("#target_language")).to_have_value("eng_Latn")
    expect(page.locator(".attention thead th").first).to_have_text("deu_Latn")
