"""LibreTranslate's API, by its clients, and by requests as they send them."""

import asyncio
import html
import json
import re
import shutil
import subprocess
import urllib.error
from types import SimpleNamespace

import pytest
from libretranslatepy import LibreTranslateAPI
from starlette.testclient import TestClient

from tests.data.test_slots import upper
from tf_transformer.commands.main import main
from tf_transformer.errors import InputError
from tf_transformer.serving.http.rest import make_app
from tf_transformer.serving.http.texts import Texts
from tf_transformer.serving.keys import Keys
from tf_transformer.serving.languages import Languages
from tf_transformer.serving.limits import Refused
from tf_transformer.text.placing import restored
from tf_transformer.text.with_markup import WithMarkup

ENGLISH, GERMAN = "Her friend buys a small chair.", "Der Hund kauft einen Stuhl."
KEPT = '<i translate="no">a <i>b</i> c &#97;</i>'


@pytest.fixture
def direction(model, monkeypatch):
    """Has the model that copies say that it translates English into German."""
    monkeypatch.setattr(model.version, "direction", ("en", "de"))


@pytest.fixture
def ask(client, direction):
    """Asks for translations of English."""

    def asked(status=200, path="/translate", **fields):
        # The client would not write half of an emoji.
        body = json.dumps({"source": "en", "target": "de"} | fields)
        response = client.post(path, content=body, headers={"Content-Type": "application/json"})
        assert response.status_code == status, response.text
        return response.json()

    return asked


def test_the_client_of_the_package_index(languages_served):
    api = LibreTranslateAPI(languages_served.url + "/")
    named = {one["code"]: one for one in api.languages()}
    assert {code: one["name"] for code, one in named.items()} == {"en": "English", "de": "German"}
    assert named["en"]["targets"] == ["en", "de"]
    translation = api.translate(ENGLISH, "en", "de")
    assert translation and translation != ENGLISH
    assert api.translate(ENGLISH, "eng_Latn", "de-AT") == translation
    assert api.translate(ENGLISH, "auto", "de") == translation
    assert [one["language"] for one in api.detect(GERMAN)] == ["de", "en"]
    with pytest.raises(urllib.error.HTTPError) as caught:
        api.translate(ENGLISH, "en", "fr")
    assert caught.value.code == 400
    assert json.load(caught.value)["error"] == "fr is not supported: give one of en, de"


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl")
@pytest.mark.parametrize("kind", ["json", "json called a form", "urlencoded", "multipart"])
def test_curl(languages_served, kind):
    pairs = [("q", ENGLISH), ("q", GERMAN), ("source", "auto"), ("target", "de"), ("api_key", "")]
    body = json.dumps(dict(pairs) | {"q": [ENGLISH, GERMAN]})
    given = {
        "json": ["-H", "Content-Type: application/json", "-d", body],
        "json called a form": ["-d", f" {body}"],
        "urlencoded": [word for name, value in pairs for word in ("--data-urlencode", f"{name}={value}")],
        "multipart": [word for name, value in pairs for word in ("-F", f"{name}={value}")],
    }[kind]
    command = ["curl", "-s", f"{languages_served.url}/translate", *given]
    answer = json.loads(subprocess.run(command, capture_output=True, timeout=60, check=True).stdout)
    # The texts are short, and taken to be in the language of both together.
    assert len({one["language"] for one in answer["detectedLanguage"]}) == 1
    assert len(answer["translatedText"]) == 2


@pytest.mark.parametrize("form", ["text", "html"])
def test_half_an_emoji_is_read_as_bad_utf8(ask, form):
    body = {"source": "en", "target": "de", "q": "a b \ud83d", "format": form}
    wanted = ask(**body | {"q": "a b \ufffd\ufffd\ufffd"})
    assert ask(**body) == wanted
    assert ask(**body | {"source": "de"})["translatedText"] == "a b ?"


def test_texts_and_lists(ask, exported):
    first, second = exported.translate_strings(["a b c", "b c d"])
    assert ask(q="a b c") == {"translatedText": first}
    wanted = [first, "", f"{first}\n\n  {second}"]
    assert ask(q=["a b c", "", "a b c\n\n  b c d"]) == {"translatedText": wanted}
    assert ask(q="x y", source="de", target="de") == {"translatedText": "x y"}


@pytest.mark.parametrize(
    "blocks",
    [
        [("<p>", "a b c"), ("</p><p>", "b c d"), ("</p>", "")],
        [("<p>", "a <b>b</b> c"), ("</p><p>", "b<br />"), ("", 'a <a href="https://a.example/?a=1&amp;b=2">b</a>')],
        [("<ul>\n <li>", "a b c"), ("</li>\n <li>", "a b"), ("</li>\n</ul>\n", "")],
        [("<p>", f"a b {KEPT} c"), ("</p><script>if (a<b) c</script>", "")],
        [("", "<!-- a -->a b <i class='x'>c</i>"), ("<hr><p></p>", "")],
    ],
    ids=["paragraphs", "tags", "list", "not translated", "comment"],
)
def test_markup_stays(ask, exported, blocks):
    """As Mastodon sends it."""
    of_text = WithMarkup(exported)
    wanted = "".join(
        before + of_text.translate_strings([text.removesuffix(end)])[0] + end if text else before
        for before, text in ((before, text.replace(KEPT, "<img/>")) for before, text in blocks)
        for end in ["<br />" if text.endswith("<br />") else ""]
    ).replace("<img/>", KEPT)
    page = "".join(map("".join, blocks))
    assert ask(q=[page], format="html", api_key=None) == {"translatedText": [wanted]}


def test_markup_is_put_back_outside_the_event_loop(ask, monkeypatch):
    """In it, a long text would hold up all other requests."""
    loops = []

    def noted(*given):
        loops.append(asyncio._get_running_loop())
        return restored(*given)

    monkeypatch.setattr("tf_transformer.serving.http.texts.restored", noted)
    ask(q="a <b>b</b> c", format="html")
    assert loops == [None]


def test_references_are_text(ask, exported):
    [wanted] = WithMarkup(exported).translate_strings(["a b <i title='&#97;'>c</i>"])
    page = "<p>&#97; &#x62; <i title='&#97;'>c</i></p>"
    assert ask(q=page, format="html")["translatedText"] == f"<p>{wanted}</p>"
    [wanted] = WithMarkup(exported).translate_strings(["a & b < c"])
    assert ask(q="a &amp; b &lt; c", format="html")["translatedText"] == html.escape(wanted)


@pytest.fixture
def shouted(monkeypatch):
    """Has texts translated into capitals; the list of what was asked for."""
    asked = []

    async def documents(self, request, version, texts, fields, has_markup=False):
        asked.extend(texts)
        return [SimpleNamespace(translation=upper(text)) for text in texts]

    monkeypatch.setattr(Texts, "documents", documents)
    return asked


SCRIPT = """<script>window.jQuery || document.write('<script src="j.js"><\\/script>')</script>"""


@pytest.mark.parametrize(
    ("page", "texts", "wanted"),
    [
        (
            '<p>Hello <a\n href="x">world</a>.</p>',
            ["Hello <g1>world</g1>."],
            '<p>HELLO <a\n href="x">WORLD</a>.</p>',
        ),
        ("<p>one<!--\n two\n--> three</p>", ["one<g1/> three"], "<p>ONE<!--\n two\n--> THREE</p>"),
        ("<!-- <p>old text</p> --><p>Hello.</p>", ["Hello."], "<!-- <p>old text</p> --><p>HELLO.</p>"),
        ("<!-- <pre> --><p>Hello.</p>", ["Hello."], "<!-- <pre> --><p>HELLO.</p>"),
        (f"{SCRIPT}<p>Hello.</p>", ["Hello."], f"{SCRIPT}<p>HELLO.</p>"),
        (
            '<p>See <img class="notranslate" src="a"> here.</p><p>Hello.</p>',
            ["See <g1/> here.", "Hello."],
            '<p>SEE <img class="notranslate" src="a"> HERE.</p><p>HELLO.</p>',
        ),
        (
            "<title>News</title><main>Start</main>",
            ["News", "Start"],
            "<title>NEWS</title><main>START</main>",
        ),
        (
            "<button>Save</button><button>Cancel</button>",
            ["Save", "Cancel"],
            "<button>SAVE</button><button>CANCEL</button>",
        ),
        ("<p>This is a long\nsentence.</p>", ["This is a long sentence."], "<p>THIS IS A LONG SENTENCE.</p>"),
        ("<p>a &lt; b &amp; c\xa0d</p>", ["a < b & c\xa0d"], "<p>A &lt; B &amp; C\xa0D</p>"),
        ("<p>one</p><pre>not closed", ["one", "not closed"], "<p>ONE</p><pre>NOT CLOSED"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_a_page_is_cut_and_written_as_an_html_file(ask, shouted, page, texts, wanted):
    answer = ask(q=page, format="html")["translatedText"]
    assert shouted == texts
    assert answer == wanted


def test_pages_keep_their_order(ask, shouted):
    pages = ["<p>one</p><p>two</p>", "", "<hr>", "three"]
    assert ask(q=pages, format="html")["translatedText"] == ["<p>ONE</p><p>TWO</p>", "", "<hr>", "THREE"]
    assert shouted == ["one", "two", "three"]


def test_a_server_that_opens_no_pages_says_so(model, direction):
    with TestClient(make_app(model)) as client:
        body = {"q": "a", "source": "en", "target": "de", "format": "html"}
        response = client.post("/translate", json=body)
    assert response.status_code == 400
    assert response.json()["error"] == "html format is not supported: give one of text"


def test_alternatives(ask, exported):
    found = [text for text, _ in exported.n_best_strings(["a b c"], 2)[0]]
    assert ask(q="a b c", alternatives=1) == {"translatedText": found[0], "alternatives": [found[1]]}
    assert ask(q="a b c", alternatives="0")["alternatives"] == []
    assert ask(q="a b c", alternatives=1, format="html")["alternatives"] == []
    answer = ask(q=["a b c\nd", "e"], alternatives=1000)
    assert all(len(set(others)) == len(others) for others in answer["alternatives"])
    assert [others[0].count("\n") for others in answer["alternatives"]] == [1, 0]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "missing q parameter"),
        ({"q": ""}, "missing q parameter"),
        ({"q": []}, "missing q parameter"),
        ({"q": ["a", 1]}, "q must be a text or a list of texts"),
        ({"q": "a", "source": ""}, "missing source parameter"),
        ({"q": "a", "target": None}, "missing target parameter"),
        ({"q": "a", "target": ["de"]}, "target must be the code of a language"),
        ({"q": "a", "target": "fr"}, "fr is not supported: give one of en, de"),
        ({"q": "a", "source": "no code"}, "no code is not supported"),
        ({"q": "a", "source": "de", "target": "en"}, r"English \(en\) is not available .* from German \(de\)"),
        ({"q": "a", "format": "markdown"}, "markdown format is not supported"),
        ({"q": "a", "alternatives": -1}, "alternatives must be a number"),
        ({"q": "a", "alternatives": True}, "alternatives must be a number"),
        ({"q": ["a"] * 21}, "sentences"),
    ],
    ids=str,
)
def test_what_is_refused(ask, fields, message):
    assert re.search(message, ask(400, **fields)["error"])


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("text/plain", b"q=a"),
        ("application/x-www-form-urlencoded", b'{"q": "a"}'),
        ("application/x-www-form-urlencoded", b"q=%ff&source=en&target=de"),
        ("multipart/form-data", b"q"),
        (
            "multipart/form-data; boundary=b",
            b"--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n--c\r\n\r\na\r\n",
        ),
        ("application/json", b"[]"),
    ],
)
def test_forms_that_cannot_be_read(client, direction, kind, body):
    response = client.post("/translate", content=body, headers={"Content-Type": kind})
    assert response.status_code == 400 and response.json()["error"]


def test_a_model_without_languages_says_so(client):
    response = client.post("/translate", json={"q": "a", "source": "en", "target": "de"})
    assert response.status_code == 400 and "does not say its languages" in response.json()["error"]
    assert client.get("/languages").json() == []


def test_settings_and_what_there_is_not(client, ask):
    settings = client.get("/frontend/settings").json()
    assert settings["language"]["target"] == {"code": "de", "name": "German"}
    assert settings["keyRequired"] is settings["filesTranslation"] is False
    assert settings["supportedFilesFormat"] == []
    assert client.get("/health").json() == {"status": "ok"}
    assert "disabled" in ask(403, "/translate_file")["error"] and "disabled" in ask(403, "/suggest")["error"]


def test_text_of_no_language_has_no_confidence(ask):
    assert {one["confidence"] for one in ask(path="/detect", q="123")} == {0.0}


@pytest.mark.parametrize(
    ("names", "asked", "found"),
    [
        (("en_US", "de_DE"), "de", "de-DE"),
        (("eng_Latn", "zho_Hans", "zho_Hant"), "zh-TW", "zh-Hant"),
        (("eng_Latn", "zho_Hans", "zho_Hant"), "zh", "zh-Hans"),
        (("da", "en"), "nb", None),
        (("first", "second"), "first", "first"),
        (("one thing", "other"), "one thing", "one thing"),
    ],
    ids=str,
)
def test_codes(model, monkeypatch, names, asked, found):
    monkeypatch.setattr(model.version.admission, "languages", names)
    languages = Languages(model.version)
    assert languages.find(asked) == found
    assert list(languages.names.values()) == list(names)
    assert [languages.find(name) for name in names] == list(languages.names)


@pytest.fixture
def keys(tmp_path):
    file = tmp_path / "keys"
    file.write_text("# of the team\nopen\n\nslow 2\n")
    return Keys(file)


def test_keys(model, direction, keys, exported):
    body = {"q": "a b c", "source": "en", "target": "de"}
    wanted = {"translatedText": exported.translate_strings(["a b c"])[0]}
    predict = "/v1/models/copy:predict"
    with TestClient(make_app(model, keys=keys)) as client:
        for wrong in (None, "", "no key"):
            assert client.post("/translate", json=body | {"api_key": wrong}).status_code == 403
        assert client.post("/page/translate", json={"text": "a"}).status_code == 403
        assert client.post(predict, json={"instances": ["a"]}).status_code == 403
        assert client.get("/languages").status_code == 200
        assert client.get("/frontend/settings").json()["keyRequired"] is True
        by_header = {"Authorization": "Bearer open"}
        assert client.post("/translate", data=body | {"api_key": "open"}).json() == wanted
        assert client.post(predict, json={"instances": ["a"]}, headers=by_header).status_code == 200
        found = [client.post("/translate", json=body | {"api_key": "slow"}) for _ in range(3)]
        assert [answer.status_code for answer in found] == [200, 200, 429]
        assert "Slowdown" in found[2].json()["error"]


def test_a_limit_is_one_of_each_minute(tmp_path):
    file = tmp_path / "keys"
    file.write_text("slow 2")
    times = iter([0.0, 30.0, 59.0, 60.0, 61.0, 90.0])
    keys = Keys(file, now=lambda: next(times))
    let = []
    for _ in range(6):
        try:
            keys.check("slow")
            let.append(True)
        except Refused:
            let.append(False)
    assert let == [True, True, False, True, False, True]


@pytest.mark.parametrize(
    "text", ["", "# none\n", "key many", "key 0", "key " + "1" * 5_000, "key 1 2", "twice\ntwice 3"]
)
def test_files_without_good_keys(tmp_path, text):
    (tmp_path / "keys").write_text(text)
    with pytest.raises(InputError):
        Keys(tmp_path / "keys")


def test_the_command_refuses_a_missing_file_of_keys(copy_export, tmp_path, capsys):
    assert main(["serve", str(copy_export), "--api-key", str(tmp_path / "none")]) == 2
    assert capsys.readouterr().err.count("\n") == 1
