"""What is to be prepared."""

import dataclasses
import os
from collections.abc import Collection, Sequence
from typing import Any

from tf_transformer.config import Config, DataConfig, DecodingConfig, TokenizerConfig
from tf_transformer.data.corpora import Direction, absolute, directions, renamed, training_data
from tf_transformer.errors import InputError, unknown
from tf_transformer.vocabulary import Vocabulary


@dataclasses.dataclass(frozen=True)
class Plan:
    """What a prepared corpus follows from, besides the text."""

    data: DataConfig
    """with absolute paths"""
    tokenizer: TokenizerConfig
    vocabularies: tuple[Vocabulary, Vocabulary] | None
    """of source and target: twice the same one where they share it; none where they are trained"""
    languages: tuple[str, ...]
    """those of the tokenizers, each with a token; () where there is one direction"""
    directions: tuple[Direction, ...]
    """of each corpus, as the tokenizers name languages; () likewise"""

    @property
    def corpora(self) -> list[DataConfig]:
        """The corpora to train on."""
        return training_data(self.data)

    def settings(self) -> dict[str, Any]:
        """Return the settings that the result follows from, as `override` takes them."""
        return {"data": dataclasses.asdict(self.data), "tokenizer": dataclasses.asdict(self.tokenizer)}


def plan_of(config: Config, vocabularies: tuple[Vocabulary, Vocabulary] | None = None, owner: str = "") -> Plan:
    """Return what `config` says is to be prepared.

    Args:
        config: `data`, `tokenizer`, and the languages of `decoding` where these name the one direction of all corpora.
        vocabularies: of a model that is trained further. By default those of `tokenizer.file`, or else such as are
            trained on the text.
        owner: what has the vocabularies, for errors.

    Raises:
        InputError: corpora of directions that the vocabularies do not have; a tokenizer that cannot be read, or that
            is no BPE where `data.bpe_dropout` is asked for.
    """
    data = with_absolute_paths(config.data)
    towards = directions(data)
    several = len(set(towards)) > 1
    languages = tuple(sorted({language for direction in towards for language in direction or ()})) if several else ()
    tokenizer = config.tokenizer
    if tokenizer.file is not None:
        tokenizer = dataclasses.replace(tokenizer, file=os.path.abspath(tokenizer.file))
        if vocabularies is None:
            shared = Vocabulary.load(tokenizer.file or "", languages)
            vocabularies, owner = (shared, shared), tokenizer.file or ""
    if vocabularies is not None:
        known = tuple(vocabularies[0].languages)
        if several and not known:
            raise InputError(
                f"{owner} has one direction, and cannot be trained on several: give corpora of one direction"
            )
        languages = known
        if data.bpe_dropout and not all(vocabulary.is_bpe for vocabulary in vocabularies):
            raise InputError(
                "data.bpe_dropout needs a BPE, and the tokenizer is none: set it to 0, or train one with "
                f"tokenizer.model_type=bpe. Received: {data.bpe_dropout}"
            )
    config.decoding.check_languages(languages)
    named = tuple(_named(towards, languages, config.decoding)) if languages else ()
    return Plan(data, tokenizer, vocabularies, languages, named)


def with_absolute_paths(data: DataConfig) -> DataConfig:
    """Return the same data, named so that it is found from every folder."""
    return renamed(data, absolute)


def _named(
    directions: Sequence[Direction | None], languages: Collection[str], decoding: DecodingConfig
) -> list[Direction]:
    """Return the directions of corpora as the model names its languages.

    Where all go in one direction, `decoding` may name it.
    """
    unnamed = next((one for one in directions if one is None or not set(one) <= set(languages)), ())
    if unnamed == ():
        return [direction for direction in directions if direction]
    if len(set(directions)) == 1 and decoding.source_language and decoding.target_language:
        return [(decoding.source_language, decoding.target_language)] * len(directions)
    language = next((language for language in unnamed or () if language not in languages), "none")
    raise InputError(
        f"{unknown('language', language, languages)}. Name the languages of the corpora as the model does or, where "
        "they are of one direction, give --source-language and --target-language"
    )
