"""The part of a window that one of several machines reads to form its part of every batch."""

from collections.abc import Callable
from typing import Any

import numpy as np
from protocol import serve, spec

from tf_transformer.data import Batches
from tf_transformer.data.prepared import Prepared
from tf_transformer.data.windows import windows_of

given = spec()


def counted(read: Callable[[int], np.ndarray], blocks: np.ndarray, sizes: list[int]) -> Callable[[int], np.ndarray]:
    """Return a function that reads a block like `read`, and notes its size in bytes if it is one of `blocks`."""

    def reading(block: int) -> np.ndarray:
        values = read(block)
        if block in wanted:
            sizes.append(values.nbytes)
        return values

    wanted = set(blocks.tolist())
    return reading


def work(part: int, batch_tokens: int) -> dict[str, Any]:
    """Take the batches of the first window, and return how many of its bytes were read, and how many it has."""
    pairs = Prepared(given["corpus"]).pairs()
    window = windows_of(pairs, 0, 0)[0]
    whole = sum(each(int(block)).nbytes for block in window for each in (pairs.lengths, pairs.ids))
    sizes: list[int] = []
    pairs.lengths, pairs.ids = (counted(each, window, sizes) for each in (pairs.lengths, pairs.ids))
    batches = Batches(pairs, batch_tokens, multiple_of=given["parts"], seed=0)
    count = batches._epoch.known
    for _ in batches.dataset(part, given["parts"], by_place=True).take(count):
        pass
    return {"bytes": sum(sizes), "whole": whole, "batches": count}


serve(work)
