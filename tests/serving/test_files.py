"""Files that are translated by LibreTranslate's API."""

import dataclasses
import json
import random
import shutil
import subprocess
import urllib.request

import pytest
from starlette.testclient import TestClient

from tests.data.test_packages import docx, run, text_and_looks
from tf_transformer.commands.serve import KINDS
from tf_transformer.serving.http import files
from tf_transformer.serving.http.files import FileKinds
from tf_transformer.serving.http.form import _parts
from tf_transformer.serving.http.rest import make_app
from tf_transformer.serving.http.texts import Texts
from tf_transformer.serving.keys import Keys
from tf_transformer.text.with_markup import WithMarkup


@pytest.fixture
def direction(model, monkeypatch):
    """Has the model that copies say that it translates English into German."""
    monkeypatch.setattr(model.version, "direction", ("en", "de"))


@pytest.fixture
def send(model, direction):
    """Sends files to be translated from English."""
    with TestClient(make_app(model, kinds=FileKinds(*KINDS))) as client:

        def sent(name, content, status=200, **fields):
            given = {"source": "en", "target": "de"} | fields
            response = client.post("/translate_file", data=given, files={"file": (name, content)})
            assert response.status_code == status, response.text
            answer = response.json()
            return (answer, client.get(answer["translatedFileUrl"])) if status == 200 else answer

        sent.client = client
        yield sent


def test_a_file_comes_back_translated(send, exported):
    wanted = WithMarkup(exported).translate_strings(["a b <g1>c</g1>", "b c d"])
    page = "<p>a b <b>c</b></p>\n<p>b c d</p><pre>a</pre>"
    answer, response = send("a page.html", page)
    assert answer["translatedFileUrl"].startswith("http://testserver/download_file/")
    assert answer["translatedFileUrl"].endswith(".a%20page_de.html") and answer["textsWithLostTags"] == 0
    assert response.text == "<p>{}</p>\n<p>{}</p><pre>a</pre>".format(wanted[0].replace("g1>", "b>"), wanted[1])
    assert response.headers["content-disposition"] == "attachment; filename*=UTF-8''a%20page_de.html"
    assert response.headers["content-type"].startswith("text/html")


def test_a_document_of_word(send):
    raw = docx("<w:p>" + run("a b ") + run("c", "<w:rPr><w:b/></w:rPr>") + "</w:p><w:p>" + run("d") + "</w:p>")
    content = send("a.docx", raw)[1].content
    assert {looks for _, looks in text_and_looks(content)} == {looks for _, looks in text_and_looks(raw)}


def test_a_long_file_is_translated_piece_by_piece(send, exported):
    """More sentences and tokens than a request may have."""
    lines = [" ".join(random.Random(i).choices("abcdefgh", k=5)) for i in range(80)]
    [wanted] = exported.translate_strings([lines[-1]])
    text = send("a.txt", "\n".join([*lines, ""]))[1].text.split("\n")
    assert len(text) == 81 and text[-2] == wanted and text[-1] == ""


def test_each_batch_of_a_file_has_its_own_time(send, model, monkeypatch):
    asked = []
    predict = Texts.predict

    async def noted(self, request, version, signature, sentences, *more):
        asked.append(len(sentences))
        return await predict(self, request, version, signature, sentences, *more)

    monkeypatch.setattr(Texts, "predict", noted)
    monkeypatch.setattr(model, "limits", dataclasses.replace(model.limits, max_sentences=200))
    lines = [" ".join("abcdefgh"[: 1 + i % 8]) for i in range(20)]
    send("a.txt", "\n".join(lines))
    at_once = model.limits.max_batch_tokens // 16
    assert sum(asked) == 20 and max(asked) == at_once < 20


@pytest.mark.parametrize(
    ("said", "scheme"),
    [
        ("https", "https"),
        ("HTTPS", "https"),
        ("https, http", "https"),
        ("http", "http"),
        (None, "http"),
        ("file", "http"),
    ],
)
def test_the_link_has_the_scheme_that_a_proxy_says(send, said, scheme):
    send.client.headers |= {"X-Forwarded-Proto": said} if said else {}
    answer = send.client.post(
        "/translate_file", data={"source": "en", "target": "en"}, files={"file": ("a.txt", b"a")}
    ).json()
    assert answer["translatedFileUrl"].startswith(f"{scheme}://testserver/download_file/")


def test_what_is_in_the_target_language_stays(send):
    assert send("a.srt", b"\xef\xbb\xbfa", target="en")[1].content == b"\xef\xbb\xbfa"
    german = "Der Hund kauft einen kleinen Stuhl."
    assert send("a.txt", german, source="auto")[1].text == german


@pytest.mark.parametrize(
    ("name", "content", "fields", "status", "part"),
    [
        ("a.docx", b"no zip", {}, 400, "a.docx is damaged, or no .docx"),
        ("a.pdf", b"a", {}, 400, "file format not supported: give one of .xliff"),
        ("../../a.po", b"msgid a", {}, 400, "a.po, line 1 is no line"),
        ("a.txt", b"a", {"target": "fr"}, 400, "fr is not supported"),
        ("a.txt", b"a", {"target": "en", "source": "de"}, 400, "not available as a target"),
        ("a.txt", b"a", {"source": ""}, 400, "missing source"),
        ("a.txt", bytes(2000), {}, 413, "a file may have at most 1000 bytes"),
        ("a.txt", bytes(4000), {}, 413, "the body may have at most 3000 bytes"),
    ],
)
def test_files_that_are_refused(send, model, monkeypatch, name, content, fields, status, part):
    monkeypatch.setattr(model, "limits", model.limits.__class__(max_file=1000, max_body=2000))
    assert part in send(name, content, status, **fields)["error"]


def test_no_file_and_no_key(send, model, direction, tmp_path):
    body = {"source": "en", "target": "de", "file": "a"}
    assert "missing file" in send.client.post("/translate_file", data=body).json()["error"]
    assert "missing file" in send.client.post("/translate_file", json=body).json()["error"]
    settings = send.client.get("/frontend/settings").json()
    assert settings["filesTranslation"] is True and {".docx", ".md", ".txt"} <= {*settings["supportedFilesFormat"]}
    (tmp_path / "keys").write_text("key\n")
    with TestClient(make_app(model, keys=Keys(tmp_path / "keys"), kinds=FileKinds(*KINDS))) as client:
        for key, status in ((None, 403), ("no", 403), ("key", 200)):
            form = body | ({"api_key": key} if key else {})
            given = {"file": ("a.txt", b"a")}
            del form["file"]
            assert client.post("/translate_file", data=form, files=given).status_code == status


def test_translations_are_kept_for_a_while(send, model, monkeypatch):
    monkeypatch.setattr(files, "SECONDS", 0)
    _, response = send("a.txt", "12")
    assert response.status_code == 404 and "no longer" in response.json()["error"]
    monkeypatch.setattr(files, "SECONDS", 60)
    monkeypatch.setattr(model, "limits", model.limits.__class__(max_file=10, max_body=2000))
    urls = [send("a.txt", "1" * 10)[0]["translatedFileUrl"] for _ in range(files.MOST + 1)]
    assert [send.client.get(url).status_code for url in (urls[0], urls[1], urls[-1])] == [404, 200, 200]


@pytest.mark.parametrize("name", ["a.docx", "é ü.docx", "文.docx", 'a"b.docx'])
def test_any_bytes_and_names_in_a_form(name):
    content = random.Random(1).randbytes(70_000) + b"\r\n--\r\n\n\r"
    quoted = name.replace('"', "%22")
    head = f'--b\r\nContent-Disposition: form-data; name="file"; filename="{quoted}"\r\n\r\n'.encode()
    [(field, upload)] = _parts("multipart/form-data; boundary=b", head + content + b"\r\n--b--\r\n")
    assert field == "file" and tuple(upload) == (quoted, content)


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl")
def test_curl(languages_served, tmp_path):
    """As LibreTranslate's documentation shows it."""
    (tmp_path / "letter.docx").write_bytes(docx("<w:p>" + run("Her friend buys a small chair.") + "</w:p>"))
    form = ["-F", f"file=@{tmp_path / 'letter.docx'}", "-F", "source=en", "-F", "target=de", "-F", "api_key="]
    command = ["curl", "-s", f"{languages_served.url}/translate_file", *form]
    answer = json.loads(subprocess.run(command, capture_output=True, timeout=60, check=True).stdout)
    with urllib.request.urlopen(answer["translatedFileUrl"], timeout=60) as response:
        letters = "".join(letter for letter, _ in text_and_looks(response.read()))
    assert letters and letters != "Her friend buys a small chair."
