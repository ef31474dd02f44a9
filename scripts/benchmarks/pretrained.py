"""Decoding of a pretrained model from text to text: the folder by transformers, and our import of it by ours."""

import argparse
import tempfile
from collections.abc import Iterator

from benchmarks.peer import Peer, Row, end, rates

CASES = ((1, 1), (8, 1), (32, 1), (1, 4), (8, 4), (32, 4))
"""The sentences of a batch, and the hypotheses of each."""
WAYS = {"ours": {}, "ours, XLA": {"jit_compile": True}}
LONGEST = 80
"""The tokens of a translation."""
SENTENCES = 128


def measure(options: argparse.Namespace) -> Iterator[Row]:
    """Yield rows for `--pretrained` and `--sentences`; `--transformers` is the environment of transformers."""
    if not (options.pretrained and options.sentences and options.transformers):
        print("decode-pretrained: skipped; it needs --pretrained, --sentences and --transformers")
        return
    with tempfile.TemporaryDirectory() as folder:
        spec = {"folder": folder, "threads": options.threads, "model": str(options.pretrained)}
        spec |= {"sentences": str(options.sentences), "count": SENTENCES, "longest": LONGEST, "exactly": options.tokens}
        spec |= {"ways": WAYS}
        maker = {"": Peer("make_pretrained.py", spec)}
        _ = maker[""].facts
        end(maker)
        python = options.transformers / "bin" / "python"
        peers = {name: Peer("decode_ours.py", spec | {"export": name, "beams": [1, 4]}) for name in WAYS}
        peers["transformers"] = Peer("decode_transformers.py", spec, python=python)
        for size, beam in CASES:
            batches = max(1, min(SENTENCES, 16 * size) // size)
            figures = rates(peers, options.rounds, batches * size, batch=size, batches=batches, beam=beam)
            yield Row(f"decode a pretrained model, batch {size}, beam {beam}", "sentences/s", figures, {})
        end(peers)
