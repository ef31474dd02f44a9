"""Who waits and who no longer does, and how that is counted and logged."""

import asyncio
import json
import logging
import time

import pytest

from tests.serving.conftest import LIMITS, SECONDS, TEXT, predict, wait_for
from tf_transformer.serving.http.middleware import ACCESS
from tf_transformer.serving.http.rest import make_app
from tf_transformer.serving.jobs import Waiting
from tf_transformer.serving.limits import Limits, Refused


def counted(client) -> dict[str, float]:
    lines = [line.rsplit(" ", 1) for line in client.get("/metrics").text.splitlines() if line[0] != "#"]
    return {name: float(value) for name, value in lines}


def grown(before: dict[str, float], after: dict[str, float]) -> dict[str, float]:
    return {name: after[name] - before.get(name, 0) for name in after if after[name] != before.get(name, 0)}


def test_what_happens_is_counted(client):
    before = counted(client)
    predict(client, {"instances": ["a", "b", "c"]})
    predict(client, b"nope")
    after = counted(client)
    found = grown(before, after)
    assert found['tf_transformer_requests_total{api="rest",status="200"}'] == 1
    assert found['tf_transformer_requests_total{api="rest",status="400"}'] == 1
    assert found["tf_transformer_sentences_total"] == 3
    assert found["tf_transformer_batches"] == 1
    assert after["tf_transformer_running"] == 0
    assert after["tf_transformer_version"] == 1
    assert after["process_resident_memory_bytes"] > 1e8
    assert 0 < time.time() - after["process_start_time_seconds"] < 1e6


def test_requests_are_logged(client, caplog):
    caplog.set_level(logging.INFO, ACCESS)
    predict(client, {"instances": [TEXT]})
    predict(client, b"nope", "/v1/models/copy/versions/1:predict?x=1")
    client.get("/a%0Arest GET / 200")
    lines = [record.getMessage().rsplit(" ", 2) for record in caplog.records if record.name == ACCESS]
    assert [line[0] for line in lines] == [
        "rest POST /v1/models/copy:predict 200",
        "rest POST /v1/models/copy/versions/1:predict 400",
        "rest GET /a%0Arest%20GET%20/%20200 404",
    ]
    assert all(float(line[1]) > 0 and line[2] == "ms" for line in lines)


def test_a_full_queue_is_said_to_be(model, client, monkeypatch):
    monkeypatch.setattr(model, "_running", LIMITS.max_queue)
    status, answer = predict(client, {"instances": [TEXT]})
    assert (status, answer["error"][:26]) == (429, "the server has 128 request")


def test_a_late_answer_is_given_up(model, client, monkeypatch, held_back):
    """Its place is free at once; the batch that runs ends, and what has not begun is not begun."""
    before = counted(client)
    with monkeypatch.context() as patch:
        patch.setattr(model, "limits", Limits(timeout=0.05))
        gate = held_back(model.version)
        status, answer = predict(client, {"instances": ["a"] * 20})
        assert (status, answer["error"][:31]) == (504, "no translation within 0.05 s: s")
    assert len(gate.begun()) == 8
    wait_for(lambda: model.running == 0)
    gate.go_on(2)
    assert predict(client, {"instances": ["b c"]})[0] == 200
    assert gate.begun() == [(b"b c",)]
    assert grown(before, counted(client))["tf_transformer_sentences_total"] == 1  # the batch was cancelled


def test_a_client_that_goes_is_given_up(model, client, held_back):
    gate = held_back(model.version)
    before = counted(client)

    async def leave() -> None:
        received: asyncio.Queue[dict] = asyncio.Queue()
        path = "/v1/models/copy:predict"
        scope = {"type": "http", "method": "POST", "path": path, "raw_path": path.encode(), "headers": []}
        body = json.dumps({"instances": ["a"] * 20}).encode()
        await received.put({"type": "http.request", "body": body})
        handling = asyncio.create_task(make_app(model)(scope, received.get, unsent))
        assert len(await asyncio.to_thread(gate.begun)) == 8
        await received.put({"type": "http.disconnect"})
        await asyncio.wait_for(handling, SECONDS)
        while model.running:
            await asyncio.sleep(0.01)

    async def unsent(_) -> None:
        """What is sent to nobody."""

    asyncio.run(leave())
    gate.go_on(2)
    assert predict(client, {"instances": ["b c"]})[0] == 200
    assert gate.begun() == [(b"b c",)]
    found = grown(before, counted(client))
    assert found['tf_transformer_requests_total{api="rest",status="499"}'] == 1
    assert found["tf_transformer_sentences_total"] == 1


def test_what_nobody_waits_for_is_not_begun(model, held_back):
    gate = held_back(model.version)
    over = Waiting()
    over.set()
    with pytest.raises(Refused, match="nobody waits"):
        model.version.run("translate_with_attention", {"text": [b"a"]}, over)
    gate.go_on()
    model.version.run("serving_default", {"text": [b"b"]}, Waiting())
    assert gate.begun() == [(b"b",)]
