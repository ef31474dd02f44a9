"""A prepared corpus of any size, made from a small one: many shards are links to the same few files."""

import io
import itertools
from pathlib import Path

import numpy as np
from protocol import serve, spec

from tf_transformer.data.chunks import digest_of
from tf_transformer.data.corpora import MANIFEST
from tf_transformer.data.prepared import Prepared
from tf_transformer.data.prepared.manifest import BLOCK_TABLE, written
from tf_transformer.data.prepared.shards import shard_name

real = Prepared(spec()["corpus"])
tables = real.pairs()._blocks


def work(folder: str, count: int) -> dict[str, int]:
    """Write a corpus of at least `count` pairs, in whole shards, and return their number."""
    place = Path(folder)
    place.mkdir(parents=True)
    own = real.manifest["shards"]
    shards, blocks, pairs = [], [], 0
    for number, shard in zip(itertools.count(), itertools.cycle(range(len(own)))):
        if pairs >= count:
            break
        (place / shard_name(number)).symlink_to((real.path / shard_name(shard)).resolve())
        rows = tables[tables["shard"] == shard]
        rows["shard"] = number
        blocks.append(rows)
        shards.append(own[shard])
        pairs += own[shard]["pairs"]
    table = io.BytesIO()
    np.save(table, np.concatenate(blocks))
    (place / BLOCK_TABLE).write_bytes(table.getvalue())
    for name in real.manifest["files"].keys() - {BLOCK_TABLE}:
        (place / name).write_bytes((real.path / name).read_bytes())
    files = real.manifest["files"] | {BLOCK_TABLE: digest_of(table.getvalue())}
    corpora = [real.corpora[0] | {"given": pairs, "pairs": pairs}]
    manifest = real.manifest | {"shards": shards, "files": files, "corpora": corpora}
    (place / MANIFEST).write_bytes(written(manifest))
    return {"pairs": pairs}


serve(work)
