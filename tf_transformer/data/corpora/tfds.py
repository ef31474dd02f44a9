"""A dataset of TensorFlow Datasets that has text in both languages."""

import contextlib
import functools
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tf_transformer.config import DataConfig
from tf_transformer.data.chunks import Sentences, sentence_chunks
from tf_transformer.data.corpora.languages import languages_of
from tf_transformer.errors import InputError, unknown

PREFIX = "tfds:"


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
        """Say whether a dataset is named."""
        return corpus.startswith(PREFIX)

    def splits(self) -> tuple[str, ...]:
        """Return the names of the splits."""
        return tuple(self._builder.info.splits)

    def check(self, split: str) -> None:
        """Check nothing: to ask TensorFlow Datasets takes seconds, and it may have to download."""

    def files(self, split: str) -> list[Path]:
        """Return none: which they are is known to TensorFlow Datasets."""
        return []

    def chunks(self, split: str) -> Iterator[Sentences]:
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
        """The builder of the dataset, once that is on the disk."""
        import tensorflow_datasets as tfds  # takes a second

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
            # TFDS talks on standard output, where our results go.
            with contextlib.redirect_stdout(sys.stderr):
                builder.download_and_prepare()
        except Exception as error:
            raise self._failure(error) from None
        return builder

    def _failure(self, error: Exception) -> InputError:
        """Return the error for whatever TFDS, the script of a dataset or the network has raised."""
        reason = next(iter(str(error).splitlines()), "")
        return InputError(f"{PREFIX}{self.name} cannot be prepared: {type(error).__name__}: {reason}")
