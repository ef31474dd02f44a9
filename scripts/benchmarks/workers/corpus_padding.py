"""The padding of batches that are formed window by window, and of batches that are planned from all pairs at once."""

import numpy as np
from protocol import serve, spec

from tf_transformer.data import Batches
from tf_transformer.data.plan import plan
from tf_transformer.data.prepared import Prepared
from tf_transformer.data.windows import windows_of

pairs = Prepared(spec()["corpus"]).pairs()


def windowed(batch_tokens: int) -> float:
    """Return the mean padding over the windows of an epoch, which are of equal size."""
    batches, found = Batches(pairs, batch_tokens, seed=0), []
    for number in range(len(windows_of(pairs, 0, 0))):
        batches.start_epoch(0, number)
        found.append(batches.padding)
    return float(np.mean(found))


def whole(batch_tokens: int) -> float:
    """Return the padding of a single plan of all pairs."""
    lengths = np.concatenate([pairs.lengths(block) for block in range(len(pairs.sizes))]).astype(np.int64)
    rows = plan(*lengths.T, batch_tokens, rng=np.random.default_rng(0), mixed=1)
    padded = sum(int(lengths[batch].max(axis=0).sum()) * len(batch) for batch in rows)
    return 1 - int(lengths.sum()) / padded


def work(way: str, batch_tokens: int) -> dict[str, float]:
    """Return the share of positions that hold padding."""
    return {"padding": {"windows": windowed, "whole": whole}[way](batch_tokens)}


serve(work, pairs=len(pairs), windows=len(windows_of(pairs, 0, 0)))
