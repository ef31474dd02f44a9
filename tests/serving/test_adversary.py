"""The dearest requests that are admitted, beside a bystander with one sentence at a time."""

import http.client
import json
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest

LONG = "a " * 511
TERMS = "\t".join(["a " * 7] * 32)
ATTACKERS = 2
SECONDS = 4
"""How long a bystander is watched."""


def predict(signature: str, *rows) -> tuple[str, dict]:
    return "/v1/models/copy:predict", {"signature_name": signature, "instances": rows}


def translate(text: str) -> tuple[str, dict]:
    return "/v1/models/copy:translate", {"text": text}


DEAREST = {
    "many sentences": predict("serving_default", *["a " * 30] * 1024),
    "long sentences": predict("translate_n_best", *[LONG] * 64),
    "attention of a sentence": predict("translate_with_attention", *[LONG] * 3),
    "all attention": predict("attention", *["a " * 14] * 60),
    "too much attention": predict("attention", LONG),
    "scores": predict("score", *[{"source": LONG, "target": LONG}] * 32),
    "steps": predict("search_steps", *[{"text": LONG, "prefix_ids": ""}] * 64),
    "terms": predict("translate_with_terms", *[{"text": LONG, "terms": TERMS}] * 42),
    "too many terms": predict("translate_with_terms", {"text": "a", "terms": "\t".join("a" * 1000)}),
    "counting": predict("count_tokens", "a" * 1_000_000),
    "a long word": translate("a" * 1_000_000),
    "a long document": translate("A b c d e f g. " * 1024),
    "a document that is too long": translate("A b c. " * 140_000),
    "the page's attention": ("/page/attention", {"text": "a " * 170}),
    "the page's steps": ("/page/steps", {"text": LONG}),
    "deep JSON": ("/v1/models/copy:predict", {"instances": [["a"] * 200_000]}),
}


def ask(address: str, path: str, body: bytes, timeout: float = 120) -> int:
    connection = http.client.HTTPConnection(address, timeout=timeout)
    try:
        connection.request("POST", path, body, {"Content-Type": "application/json"})
        response = connection.getresponse()
        response.read()
        return response.status
    finally:
        connection.close()


def waits(address: str, seconds: float) -> Iterator[float]:
    """How long a bystander waits for each of his sentences."""
    end = time.monotonic() + seconds
    path, body = predict("serving_default", "a b c")
    while (began := time.monotonic()) < end:
        assert ask(address, path, json.dumps(body).encode()) == 200
        yield time.monotonic() - began
        time.sleep(0.02)


def p99(address: str, path: str, asked: dict, seconds: float) -> float:
    """What a bystander waits at most, of 99 of 100 sentences, beside attackers."""
    stop, body = threading.Event(), json.dumps(asked).encode()

    def attack() -> None:
        while not stop.is_set():
            assert ask(address, path, body) in (200, 400, 504)

    attackers = [threading.Thread(target=attack) for _ in range(ATTACKERS)]
    for attacker in attackers:
        attacker.start()
    found = list(waits(address, seconds))
    stop.set()
    for attacker in attackers:
        attacker.join()
    return float(np.percentile(found, 99))


@pytest.fixture(scope="module")
def address(copy_export, start_server):
    return start_server(copy_export.parent, "--name", "copy").url.removeprefix("http://")


@pytest.mark.long
@pytest.mark.parametrize("name", DEAREST)
def test_a_bystander_is_served_beside_the_dearest(address, name):
    """Within a second on 2 cores that have nothing else to do, as is printed; not for seconds wherever it runs.

    The first of these meet signatures that are cold.
    """
    found = p99(address, *DEAREST[name], SECONDS)
    print(f"{name}: {found:.2f} s")
    assert found < 8
