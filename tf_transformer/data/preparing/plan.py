"""The plan of a preparation."""

import dataclasses
import os
from collections.abc import Collection, Sequence
from typing import Any

from tf_transformer.config import Config, DataConfig, DecodingConfig, TokenizerConfig
from tf_transformer.config.sections import NEW
from tf_transformer.config.tokenizer import DEFAULT_NORMALIZATION, NORMALIZATIONS
from tf_transformer.data.corpora import Direction, absolute, directions, paths_of, renamed, training_data
from tf_transformer.errors import InputError, unknown
from tf_transformer.tokenizers.normalization import name_of
from tf_transformer.tokenizers.vocabulary import Vocabulary


@dataclasses.dataclass(frozen=True)
class Plan:
    """Everything, besides the text, that determines a prepared corpus."""

    data: DataConfig
    """with absolute paths"""
    tokenizer: TokenizerConfig
    vocabularies: tuple[Vocabulary, Vocabulary] | None
    """vocabularies of source and target, the same object if shared; None if they are to be trained"""
    languages: tuple[str, ...]
    """the languages of the tokenizers, each with a token; () if there is one direction"""
    directions: tuple[Direction, ...]
    """the direction of each corpus, as the tokenizers name languages; () if there is one direction"""

    @property
    def corpora(self) -> list[DataConfig]:
        """The corpora to train on."""
        return training_data(self.data)

    def settings(self) -> dict[str, Any]:
        """Return the settings that determine the result, as `override` takes them."""
        given = {name: getattr(self.data, name) or value for name, value in NEW["data"].items()}
        data = dataclasses.asdict(self.data) | given
        tokenizer = dataclasses.asdict(self.tokenizer)
        if self.vocabularies is None and self.tokenizer.file is None:  # one is to be trained
            tokenizer["normalization"] = name_of(self.tokenizer.normalization or DEFAULT_NORMALIZATION)
        return {"data": data, "tokenizer": tokenizer}


def plan_of(config: Config, vocabularies: tuple[Vocabulary, Vocabulary] | None = None, owner: str = "") -> Plan:
    """Return the plan that a config describes.

    Args:
        config: its `data` and `tokenizer` are used, and the languages of `decoding` if these name the one direction of
            all corpora.
        vocabularies: those of a model that is trained further. By default those of `tokenizer.file`, or else ones to be
            trained on the text.
        owner: the name of the owner of the vocabularies, for errors.

    Raises:
        InputError: the vocabularies do not have the directions of the corpora; or a tokenizer cannot be read, or is not
            a BPE although `data.bpe_dropout` needs one.
    """
    data = with_absolute_paths(config.data)
    of_corpora = directions(data)
    several = len(set(of_corpora)) > 1
    languages = tuple(sorted({language for direction in of_corpora for language in direction or ()})) if several else ()
    tokenizer = config.tokenizer
    if tokenizer.file is not None:
        tokenizer = dataclasses.replace(tokenizer, file=os.path.abspath(tokenizer.file))
        if vocabularies is None:
            shared = Vocabulary.load(tokenizer.file or "", languages=languages)
            vocabularies, owner = (shared, shared), tokenizer.file or ""
    if vocabularies is not None:
        known = tuple(vocabularies[0].languages)
        if several and not known:
            raise InputError(
                f"{owner} has one direction and cannot be trained on several: give corpora of one direction"
            )
        languages = known
        if data.bpe_dropout and not all(vocabulary.model_type == "bpe" for vocabulary in vocabularies):
            raise InputError(
                "data.bpe_dropout needs a BPE, which the tokenizer is not: set it to 0, or train a tokenizer with "
                f"tokenizer.model_type=bpe. Received: {data.bpe_dropout}"
            )
    config.decoding.check_languages(languages)
    named = tuple(_named(of_corpora, languages, config.decoding)) if languages else ()
    return Plan(data, tokenizer, vocabularies, languages, named)


def sources_of(config: Config) -> list[tuple[str, str]]:
    """Return the paths of all that a run or a prepared corpus is made from, each after what names it."""
    rules = config.tokenizer.normalization or DEFAULT_NORMALIZATION
    others = {
        "--tokenizer": config.tokenizer.file,
        "tokenizer.normalization": None if rules in NORMALIZATIONS or not os.path.exists(rules) else rules,
        "--init-from": config.training.init_from,
    }
    return [("--data", path) for path in paths_of(config.data)] + [
        (name, path) for name, path in others.items() if path
    ]


def with_absolute_paths(data: DataConfig) -> DataConfig:
    """Return the same data, with names that mean the same in every working folder."""
    return renamed(data, absolute)


def _named(
    directions: Sequence[Direction | None], languages: Collection[str], decoding: DecodingConfig
) -> list[Direction]:
    """Return the directions of corpora as the model names its languages.

    If all corpora have one direction, `decoding` may name it.
    """
    unnamed = next((one for one in directions if one is None or not set(one) <= set(languages)), ())
    if unnamed == ():
        return [direction for direction in directions if direction]
    if len(set(directions)) == 1 and decoding.source_language and decoding.target_language:
        return [(decoding.source_language, decoding.target_language)] * len(directions)
    language = next((language for language in unnamed or () if language not in languages), "none")
    raise InputError(
        f"{unknown('language', language, languages)}. Name the languages of the corpora as the model does or, if the "
        "corpora have one direction, give --source-language and --target-language"
    )
