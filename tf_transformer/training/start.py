"""What training starts from: the resolved config, the text, the tokenizers."""

import dataclasses
import itertools
import os
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tf_transformer.config import Config, DecodingConfig, override
from tf_transformer.data import Batches, Pairs, cut_by_chance
from tf_transformer.data.corpora import Direction
from tf_transformer.data.encoding import LanguageIds
from tf_transformer.data.texts import Texts, encode_texts, make_tokenizers, read_texts, with_absolute_paths
from tf_transformer.errors import InputError, unknown
from tf_transformer.runs.descriptions import LANGUAGES
from tf_transformer.runs.directory import RunDirectory
from tf_transformer.runs.weights import tokenizers_of
from tf_transformer.tokenizers import Tokenizer
from tf_transformer.training.resume import refuse_differences


class Start(NamedTuple):
    """What a run begins with, or goes on with."""

    config: Config
    """with absolute paths, and the sizes of the vocabularies"""
    texts: Texts
    tokenizers: tuple[Tokenizer, Tokenizer]
    base: RunDirectory | None
    """the run whose weights a new one starts from"""
    directions: list[Direction]
    """of each corpus, by the languages of the tokenizers; none where they have none"""

    def batches(self, replicas: int) -> tuple[Batches, Batches]:
        """Return the batches of training and validation."""
        data, settings, texts = self.config.data, self.config.training, self.texts
        languages = self._language_ids(texts.corpora)
        pairs = encode_texts(
            "train", texts.training, self.tokenizers, data.max_length, data.max_length_ratio, languages
        )
        held_out = encode_texts(
            *("validation", texts.validation, self.tokenizers, data.max_length, None),
            self._language_ids(texts.validation_corpora),
        )
        repeats = None
        if data.weights:
            repeats = tf.gather(tf.constant(data.weights), texts.corpora[pairs.keep]).numpy()
        draw = None
        if data.bpe_dropout:
            rate, longest = data.bpe_dropout, data.max_length
            draw = cut_by_chance(
                texts.training, pairs, *self.tokenizers, dropout=rate, max_length=longest, languages=languages
            )
        training = Batches(
            pairs,
            data.batch_tokens * settings.accumulate,
            multiple_of=replicas * settings.accumulate,
            seed=settings.seed,
            repeats=repeats,
            draw=draw,
        )
        return training, Batches(held_out, data.batch_tokens, multiple_of=replicas)

    def held_out(self, validation: Batches) -> tuple[Pairs, list[Direction] | None]:
        """Return the text of the validation pairs that are in the batches, and their directions if it has several."""
        keep = validation.pairs.keep
        kept = Pairs(*(list(itertools.compress(side, keep)) for side in self.texts.validation))
        if not self.languages:
            return kept, None
        return kept, [self.directions[i] for i in self.texts.validation_corpora[keep]]

    def description(self) -> dict[str, Any]:
        """Return what identifies the text, and between which languages it goes: JSON."""
        described = self.texts.description()
        if self.directions:
            described["train"]["directions"] = ["-".join(direction) for direction in self.directions]
        return described

    @property
    def languages(self) -> tuple[str, ...]:
        """Those of the tokenizers."""
        return tuple(self.tokenizers[0].languages)

    def _language_ids(self, corpora: np.ndarray) -> LanguageIds | None:
        """Return the tokens of the languages of pairs of those corpora; None where the model has one direction."""
        if not self.languages:
            return None
        source, target = (tokenizer.languages for tokenizer in self.tokenizers)
        ids = np.array([(source[one], target[other]) for one, other in self.directions], np.int32)
        return LanguageIds(*ids[corpora].T)


def start_of(config: Config, resumed: RunDirectory | None) -> Start:
    """Return what a new run begins with, or `resumed` goes on with.

    Raises:
        InputError: wrong data; a run with another config or text; one to start from that does not fit.
    """
    config = _with_absolute_paths(config)
    if resumed:
        config = _with_what_stays(config, resumed)
    base = None
    if config.training.init_from and not (resumed and resumed.known()):
        base = RunDirectory(config.training.init_from)
    if config.training.lora_rank and not config.training.init_from:
        raise InputError(
            "training.lora_rank trains beside the weights of another run: give --init-from RUN. "
            f"Received: training.lora_rank={config.training.lora_rank}"
        )
    texts = read_texts(config.data)
    source = resumed or base
    languages = texts.languages
    tokenizers = tokenizers_of(source) if source else make_tokenizers(config, texts.training, languages)
    sizes = {"input_vocab_size": tokenizers[0].vocab_size, "target_vocab_size": tokenizers[1].vocab_size}
    config = override(config, {"model": sizes})
    if base:
        _refuse_other_model(base, config, tokenizers)
    known = tuple(tokenizers[0].languages)
    config.decoding.check_languages(known)
    if languages and not known:
        raise InputError(
            f"{source.path if source else config.tokenizer.file} has one direction, and cannot be trained on several: "
            "give corpora of one direction"
        )
    directions = _named(texts.directions, known, config.decoding) if known else []
    if len(set(directions)) == 1 and None in (config.decoding.source_language, config.decoding.target_language):
        # Trained on one direction, it translates in that one if nothing else is said.
        towards = dict(zip(LANGUAGES, directions[0], strict=True))
        config = override(config, {"decoding": towards})
    start = Start(config, texts, tokenizers, base, directions)
    if resumed:
        refuse_differences(resumed, config, start.description())
    return start


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


def _with_absolute_paths(config: Config) -> Config:
    """Return the config with paths that name the same from every folder."""
    files = {("tokenizer", "file"): config.tokenizer.file, ("training", "init_from"): config.training.init_from}
    layers = [{section: {key: os.path.abspath(path)}} for (section, key), path in files.items() if path is not None]
    return dataclasses.replace(override(config, *layers), data=with_absolute_paths(config.data))


def _with_what_stays(config: Config, resumed: RunDirectory) -> Config:
    """Return the config with what a run keeps where it is not given again: names of languages, and where it began."""
    old, new = resumed.config.data, config.data
    init_from = config.training.init_from or resumed.config.training.init_from
    languages = {"source": new.source or old.source, "target": new.target or old.target}
    return override(config, {"data": languages}, {"training": {"init_from": init_from}})


def _refuse_other_model(base: RunDirectory, config: Config, tokenizers: tuple[Tokenizer, Tokenizer]) -> None:
    """Raise InputError where a run to start from has a model or tokenizer that does not fit."""
    old, new = base.config.as_dict()["model"], config.as_dict()["model"]
    rates = ("dropout_rate", "attention_dropout_rate")
    differences = [
        f"model.{k} is {old[k]!r} there, {new[k]!r} here" for k in old if old[k] != new[k] and k not in rates
    ]
    file = config.tokenizer.file
    wanted = [Path(file).read_bytes()] * 2 if file else [tokenizer.model for tokenizer in tokenizers]
    if [path.read_bytes() for path in base.tokenizer_paths()] != wanted:
        differences.append(f"its tokenizer is not {file or 'the one that this run began with'}")
    if differences:
        raise InputError(f"--init-from {base.path} does not fit: {'; '.join(differences)}")
