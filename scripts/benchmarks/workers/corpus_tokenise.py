"""Tokenising: lines to the bytes of a shard by ours, or to lists by SentencePiece alone, in one thread each."""

import itertools
from pathlib import Path

from protocol import serve, spec

from tf_transformer.config import DataConfig
from tf_transformer.data import Pairs
from tf_transformer.data.encoding import CHUNK, LengthLimits, encode_packed
from tf_transformer.data.prepared.shards import packed
from tf_transformer.tokenizers.vocabulary import Vocabulary

given = spec()
vocabulary = Vocabulary.load(given["tokenizer"])
lines = []
for language in (given["source"], given["target"]):
    with (Path(given["text"]) / f"train.{language}").open(encoding="utf-8") as file:
        lines.append([line.removesuffix("\n") for line in itertools.islice(file, given["pairs"])])
pairs = Pairs(*lines)


def ours() -> None:
    """Make a shard from the lines."""
    packed(0, encode_packed(pairs, (vocabulary, vocabulary), LengthLimits(DataConfig().max_length)))


def alone() -> None:
    """Make lists of ids, of as many lines at once as ours takes."""
    for side in pairs:
        for start in range(0, len(side), CHUNK):
            vocabulary.processor.encode(side[start : start + CHUNK], num_threads=1)


def work(way: str) -> None:
    """Do the task that is asked for."""
    {"ours": ours, "SentencePiece alone": alone}[way]()


tokens = encode_packed(pairs, (vocabulary, vocabulary), LengthLimits(DataConfig().max_length)).lengths.mean(axis=0)
serve(work, tokens=[round(float(side), 1) for side in tokens], pieces=vocabulary.vocab_size)
