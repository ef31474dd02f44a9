"""A file of sentences through TensorFlow Serving's REST API, or that of `tf-transformer serve`; standard library alone.

Usage: python examples/batch_client.py http://localhost:8501/v1/models/toy_en_de < source.txt > translation.txt
"""

import itertools
import json
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor

BATCH, AT_ONCE, ATTEMPTS = 32, 4, 5


def translate(model: str, sentences: list[str]) -> list[str]:
    """Translate a batch; a server that is busy (429) or restarts (503) is asked again."""
    body = json.dumps({"inputs": {"text": sentences}}).encode()
    request = urllib.request.Request(f"{model}:predict", body, {"Content-Type": "application/json"})
    for attempt in range(ATTEMPTS):
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return json.load(answer)["outputs"]["translation"]
        except urllib.error.HTTPError as error:
            if error.code not in (429, 503) or attempt == ATTEMPTS - 1:
                raise SystemExit(f"{model}: {error.code} {error.read().decode()}") from None
            time.sleep(2**attempt)
    raise AssertionError("unreachable")


def translated(model: str, lines: Iterable[str]) -> Iterator[str]:
    """Translate lines, in their order, a few batches at once."""
    lines = iter(lines)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        # As many batches are read ahead as are asked for at once, so that memory does not grow with the file.
        while group := [list(batch) for batch in (itertools.islice(lines, BATCH) for _ in range(AT_ONCE))]:
            group = [batch for batch in group if batch]
            if not group:
                return
            for translations in pool.map(lambda batch: translate(model, batch), group):
                yield from translations


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    for line in translated(sys.argv[1], (line.rstrip("\n") for line in sys.stdin)):
        print(line)
