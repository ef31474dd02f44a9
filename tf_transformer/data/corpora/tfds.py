"""A dataset of TensorFlow Datasets with text in both languages."""

import contextlib
import functools
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tf_transformer.config import DataConfig
from tf_transformer.data.chunks import StringPairs, sentence_chunks
from tf_transformer.data.corpora.languages import languages_of
from tf_transformer.errors import InputError, unknown

PREFIX = "tfds:"
RETRIES = 6
"""How often a download is tried again: within 13 s, where TFDS itself takes 205 s to say that there is no network."""


class Tfds:
    """The dataset that `data.corpus` names, `tfds:NAME[/CONFIG]`.

    Raises:
        InputError: no languages are given.
    """

    forms: tuple[str, ...] = (f"{PREFIX}NAME",)
    is_path = False
    needs_tensorflow = True

    def __init__(self, data: DataConfig):
        self.name = (data.corpus or "").removeprefix(PREFIX)
        self.languages = languages_of(data)

    @staticmethod
    def takes(corpus: str) -> bool:
        """Say whether this is the name of a dataset."""
        return corpus.startswith(PREFIX)

    def splits(self) -> tuple[str, ...]:
        """Return the names of the splits."""
        return tuple(self._builder.info.splits)

    def check(self, split: str) -> None:
        """Check nothing, because asking TensorFlow Datasets takes seconds and may start a download."""

    def files(self, split: str) -> list[Path]:
        """Return no files, because only TensorFlow Datasets knows them."""
        return []

    def chunks(self, split: str) -> Iterator[StringPairs]:
        """Yield the pairs of a split."""
        source, target = self.languages
        if split not in self.splits():
            raise unknown("split", split, self.splits(), where=f" of {PREFIX}{self.name}")
        examples = self._builder.as_dataset(split=split, shuffle_files=False).as_numpy_iterator()
        try:
            yield from sentence_chunks(
                (example[source].decode("utf-8"), example[target].decode("utf-8")) for example in examples
            )
        except UnicodeDecodeError:
            raise InputError(f"{PREFIX}{self.name}, split {split}: not UTF-8") from None

    @functools.cached_property
    def _builder(self) -> Any:
        """The builder of the dataset, which is on the disk."""
        import tensorflow_datasets as tfds  # takes a second
        from tensorflow_datasets.core.download import downloader

        try:
            builder = tfds.builder(self.name)
        except tfds.core.registered.DatasetNotFoundError:
            raise unknown("TFDS dataset", self.name, tfds.list_builders(with_community_datasets=False)) from None
        except Exception as error:
            raise self._failure(error) from None
        features = builder.info.features
        keys = features if hasattr(features, "keys") else ()
        texts = [key for key in keys if isinstance(features[key], tfds.features.Text)]
        for language in self.languages:
            if language not in texts:
                raise unknown("language", language, texts, where=f" of {PREFIX}{self.name}")
        try:
            # TFDS prints to standard output, where our results go.
            with contextlib.redirect_stdout(sys.stderr):
                downloader.MAX_RETRIES = RETRIES
                builder.download_and_prepare()
        except Exception as error:
            raise self._failure(error) from None
        return builder

    def _failure(self, error: Exception) -> InputError:
        """Return the error for an exception of TFDS, of the script of a dataset or of the network."""
        reason = next(iter(str(error).splitlines()), "")
        return InputError(f"{PREFIX}{self.name} cannot be prepared: {type(error).__name__}: {reason}")
