"""A model that translates at once."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from tf_transformer.commands import evaluate, translate
from tf_transformer.commands.common.chosen_model import ChosenModel
from tf_transformer.config import Config, DecodingConfig, override
from tf_transformer.text.alignment import AlignedString


@pytest.fixture
def shouting(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A model of the toy corpus that makes text upper case; the list gets the sizes of its batches."""
    sizes: list[int] = []

    def shout(sentences: list[str], numbers: object = None, terms: list[list[str]] | None = None) -> list[str]:
        sizes.append(len(sentences))
        rows = terms or [[]] * len(sentences)
        return [" + ".join([sentence.upper(), *row]) for sentence, row in zip(sentences, rows, strict=True)]

    config = override(Config(), {"data": {"corpus": "copy"}})
    model = SimpleNamespace(
        translate_strings=shout,
        n_best_strings=lambda sentences, n, numbers, **terms: [[(text, 0.0)] for text in shout(sentences, **terms)],
        aligned_strings=lambda texts, numbers: [
            AlignedString(text.upper(), [text], [text.upper()], np.eye(1)) for text in texts
        ],
        count_tokens=lambda sentences: [1] * len(sentences),
        most_source=512,
    )
    monkeypatch.setattr(ChosenModel, "open", lambda choice, batch_tokens: model)
    choice = ChosenModel(SimpleNamespace(path=Path("any"), config=config, languages=()), DecodingConfig())
    for command in (evaluate, translate):
        monkeypatch.setattr(command, "chosen_model", lambda options: choice)
    return sizes
