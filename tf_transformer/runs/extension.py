"""What a run can be extended by; without TensorFlow."""

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from tf_transformer.errors import InputError, unknown
from tf_transformer.runs.directory import RunDirectory
from tf_transformer.storage.atomic import refuse_existing
from tf_transformer.tokenizers.new_tokens import NewToken, learned_pieces, with_those_of_the_other


def check_extension(run: RunDirectory, output: str | Path, languages: Mapping[str, str]) -> None:
    """Check that a run can be extended, and get languages, each of which starts as another.

    Raises:
        InputError: the output exists; the run has no checkpoint or no tokens of languages; a new language is there, or
            is no name; the other one is not there.
    """
    refuse_existing(Path(output))
    if languages and not run.languages:
        raise InputError(f"{run.path} translates in one direction, without tokens of languages: none can be added")
    run.best_checkpoint()
    for new, old in languages.items():
        if new in run.languages or not re.fullmatch(r"[\w-]+", new):
            raise InputError(f"a new language must be a name that {run.path} does not have. Received: {new!r}")
        if old not in run.languages:
            raise unknown("language", old, run.languages)


def new_pieces(
    run: RunDirectory, pairs: Callable[[], Iterable[tuple[str, str]]], number: int
) -> tuple[list[NewToken], list[NewToken]]:
    """Return up to so many pieces that the source and the target of a run learn from pairs.

    If both share a tokenizer, it learns from both sides of the text, and the pieces are the same. If each has a
    tokenizer and they share a table of embeddings, as in a MarianMT model, each also gets the pieces of the other.

    Raises:
        InputError: as `learned_pieces`.
    """
    if not number:
        return [], []
    source, target = run.vocabularies()
    if source is target:
        shared = learned_pieces(source, (sentence for pair in pairs() for sentence in pair), number)
        return shared, shared
    of_source = learned_pieces(source, (sentence for sentence, _ in pairs()), number)
    of_target = learned_pieces(target, (sentence for _, sentence in pairs()), number)
    if run.config.model.share_embeddings == "all":
        return with_those_of_the_other(of_source, of_target)
    return of_source, of_target
