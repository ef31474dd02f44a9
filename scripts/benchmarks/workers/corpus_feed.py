"""Feeding of batches without training, one after the other, over epochs and windows."""

import itertools
from collections.abc import Iterator
from typing import Any

from protocol import serve, spec

from tf_transformer.data import Batches
from tf_transformer.data.prepared import Prepared

given = spec()
batches = Batches(Prepared(given["corpus"]).pairs(), given["batch_tokens"], seed=0)


def elements() -> Iterator[tuple[int, Any]]:
    """Yield batches with the target tokens of each, epoch after epoch."""
    for epoch in itertools.count():
        batches.start_epoch(epoch)
        for number, element in enumerate(batches.dataset()):
            yield batches.target_tokens(number), element


fed = elements()


def work(count: int) -> dict[str, int]:
    """Take so many batches, and return the number of their target tokens."""
    return {"tokens": sum(tokens for tokens, _ in itertools.islice(fed, count))}


serve(work)
fed = iter(())  # lets the dataset go while Python runs: threads of TensorFlow call it
