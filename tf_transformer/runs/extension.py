"""What a run can be extended by; without TensorFlow."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from tf_transformer.errors import InputError, unknown
from tf_transformer.runs.directory import RunDirectory
from tf_transformer.storage.atomic import refuse_existing
from tf_transformer.tokenizers.listed_pieces import listed_pieces
from tf_transformer.tokenizers.new_tokens import NewToken, learned_pieces, with_those_of_the_other
from tf_transformer.tokenizers.vocabulary import Vocabulary


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

    If both share a tokenizer, it learns from both sides of the text.

    Raises:
        InputError: as `learned_pieces`.
    """

    def learn(vocabulary: Vocabulary, sides: Sequence[int]) -> list[NewToken]:
        return learned_pieces(vocabulary, (pair[side] for pair in pairs() for side in sides), number)

    return _of_both(run, learn) if number else ([], [])


def pieces_for(run: RunDirectory, words: Sequence[str]) -> tuple[list[NewToken], list[NewToken]]:
    """Return the pieces by which the tokenizers of a run cut each of some words into one piece.

    Raises:
        InputError: as `listed_pieces`; all words are one piece already.
    """
    found = _of_both(run, lambda vocabulary, _: listed_pieces(vocabulary, words))
    if not any(found):
        raise InputError(f"there is nothing to add: each of the {len(words)} words is one piece already")
    return found


def _of_both(
    run: RunDirectory, find: Callable[[Vocabulary, Sequence[int]], list[NewToken]]
) -> tuple[list[NewToken], list[NewToken]]:
    """Return the new pieces of the source (0) and the target (1), which `find` finds for the sides of a vocabulary.

    They are the same if both share a tokenizer. If each has a tokenizer and they share a table of embeddings, as in a
    MarianMT model, each also gets the pieces of the other.
    """
    source, target = run.vocabularies()
    if source is target:
        shared = find(source, (0, 1))
        return shared, shared
    of_source, of_target = find(source, (0,)), find(target, (1,))
    if run.config.model.share_embeddings == "all":
        return with_those_of_the_other(of_source, of_target)
    return of_source, of_target
