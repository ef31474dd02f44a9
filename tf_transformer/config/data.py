"""The settings of the data."""

import math
from dataclasses import dataclass

from tf_transformer.config.fields import Section, setting
from tf_transformer.errors import InputError

MAX_TOKENS = 65_535
"""The most tokens of one side of a pair, because prepared corpora store lengths in 16 bits."""


@dataclass(frozen=True, kw_only=True)
class DataConfig(Section):
    """What text is read and how it becomes batches."""

    corpus: str | None = setting(
        None, "folder, file of pairs such as .tsv or .tmx, tfds:NAME[/CONFIG], toy or copy", option="--data"
    )
    prepared: str | None = setting(None, "prepared corpus, written by `prepare`, to use instead of reading the text")
    extra_corpora: tuple[str, ...] = setting((), "further corpora to train on (further --data)")
    weights: tuple[float, ...] = setting(
        (), "how often an epoch sees the pairs of each corpus, such as 3,0.5; by default once", option="--weights"
    )
    validation_corpus: str | None = setting(
        None, "corpus with the validation split; by default the training corpus", option="--validation-data"
    )
    source: str | None = setting(None, "source language, as in the file names", option="--source")
    target: str | None = setting(None, "target language, as in the file names", option="--target")
    train_split: str = setting("train", "split to train on")
    validation_split: str | None = setting(None, "split to validate on; by default val, valid, validation or dev")
    columns: str | None = setting(
        None,
        "which columns of a table hold the sentences, by number or by name, such as en=2,de=3 or en=English,de=German; "
        "by default those that its header names, or the two that it has",
        option="--columns",
    )
    tsv: str | None = setting(
        None,
        "how a .tsv is read: recognized, with its header and the quotation marks of spreadsheets, or plain, each line "
        "as it stands; by default recognized, but plain in runs that began before there was a choice",
        choices=("recognized", "plain"),
    )
    inline_tags: bool = setting(False, "keep the inline tags of .tmx and .xliff, as marks such as <g1> and <x1/>")
    held_out: float = setting(
        0.02, "share of a file of pairs held out for val, and as much again for test", above=0, below=0.5
    )
    held_out_seed: int = setting(0, "seed that decides what of a file of pairs is held out", at_least=0)
    held_out_by: str | None = setting(
        None,
        "what of a file is held out: source, each source with all of its translations, or pair, each pair by itself; "
        "by default source, but pair in runs that began before there was a choice",
        choices=("source", "pair"),
    )
    max_length: int = setting(
        128, "most tokens of a side; a pair with a longer side is dropped and counted", at_least=2, at_most=MAX_TOKENS
    )
    max_length_ratio: float | None = setting(
        None, "highest ratio of the longer side to the shorter, in tokens; training pairs above are dropped", at_least=1
    )
    drop_duplicates: bool = setting(False, "train only on the first of equal pairs")
    drop_copies: bool = setting(False, "drop training pairs whose source and target are the same text")
    min_score: float | None = setting(
        None, "lowest score, in the third column of a .tsv or the column score; training pairs below are dropped"
    )
    batch_tokens: int = setting(
        4_096,
        "most source tokens, and most target tokens, per batch, padding included; auto finds what fits into memory",
        at_least=2,
    )
    bpe_dropout: float = setting(
        0.0, "share of BPE merges left out at random, which makes sentences longer", at_least=0, below=1
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        corpora = 1 + len(self.extra_corpora)
        if self.weights and len(self.weights) != corpora:
            raise InputError(f"weights must be one per corpus, {corpora} in all. Received: {len(self.weights)}")
        if not all(0 < weight < math.inf for weight in self.weights):
            raise InputError(f"weights must be finite numbers above 0. Received: {list(self.weights)}")
        if self.batch_tokens < self.max_length:
            raise InputError(
                "batch_tokens must be at least max_length. "
                f"Received: batch_tokens={self.batch_tokens}, max_length={self.max_length}"
            )
