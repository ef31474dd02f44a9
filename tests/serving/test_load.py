"""Many clients for a long time."""

import http.client
import json
import random

import pytest

from tests.serving.conftest import in_parallel

REQUESTS = 20_000
CLIENTS = 32


@pytest.mark.long
def test_every_answer_is_its_own_and_memory_stays(served, exported):
    """Of 32 clients with sentences of mixed lengths, 1 to 4 a request."""
    rng = random.Random(0)
    sentences = [" ".join(rng.choices("abcdefghij", k=rng.randint(1, 12))) for _ in range(2_000)]
    offline = {
        s: row
        for i in range(0, 2_000, 100)
        for s, row in zip(sentences[i : i + 100], exported.n_best_strings(sentences[i : i + 100], 2), strict=True)
    }
    host = served.url.removeprefix("http://")
    wrong, ties = [], []

    def client(requests: list[list[str]]) -> None:
        connection = http.client.HTTPConnection(host, timeout=120)
        for asked in requests:
            connection.request("POST", f"/v1/models/{served.name}:predict", json.dumps({"inputs": asked}))
            response = connection.getresponse()
            answer = json.loads(response.read())
            assert response.status == 200, answer
            for sentence, found in zip(asked, answer["outputs"]["translation"], strict=True):
                (best, score), (second, next_score) = offline[sentence]
                if found == second and score - next_score < 1e-3:
                    ties.append(sentence)  # other sums of a batch of another shape
                elif found != best:
                    wrong.append((sentence, found, best))
        connection.close()

    def ask(requests: int) -> None:
        asked = [[rng.sample(sentences, rng.randint(1, 4)) for _ in range(requests // CLIENTS)] for _ in range(CLIENTS)]
        in_parallel(client, asked, CLIENTS)

    ask(REQUESTS // 5)
    before = served.memory
    ask(REQUESTS * 4 // 5)
    assert wrong == []
    assert len(ties) < REQUESTS / 100
    assert served.memory < 1.05 * before, f"{before:,} bytes grew to {served.memory:,}"
