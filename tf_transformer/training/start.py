"""What training starts from: the resolved config, the text, the tokenizers."""

import dataclasses
import os
from pathlib import Path
from typing import NamedTuple

import tensorflow as tf

from tf_transformer.config import Config, override
from tf_transformer.data import Batches, Pairs, cut_by_chance
from tf_transformer.data.texts import Texts, encode_texts, make_tokenizers, read_texts, with_absolute_paths
from tf_transformer.errors import InputError
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

    def batches(self, replicas: int) -> tuple[Batches, Batches]:
        """Return the batches of training and validation."""
        data, settings, texts = self.config.data, self.config.training, self.texts
        pairs = encode_texts("train", texts.training, self.tokenizers, data.max_length, data.max_length_ratio)
        held_out = encode_texts("validation", texts.validation, self.tokenizers, data.max_length, None)
        repeats = None
        if data.weights:
            repeats = tf.gather(tf.constant(data.weights), texts.corpora[pairs.keep]).numpy()
        draw = None
        if data.bpe_dropout:
            rate, longest = data.bpe_dropout, data.max_length
            draw = cut_by_chance(texts.training, pairs, *self.tokenizers, dropout=rate, max_length=longest)
        training = Batches(
            pairs,
            data.batch_tokens * settings.accumulate,
            multiple_of=replicas * settings.accumulate,
            seed=settings.seed,
            repeats=repeats,
            draw=draw,
        )
        return training, Batches(held_out, data.batch_tokens, multiple_of=replicas)

    def held_out(self, validation: Batches) -> Pairs:
        """Return the text of the validation pairs that are in the batches."""
        pairs = zip(*self.texts.validation, validation.pairs.keep, strict=True)
        return Pairs.of((source, target) for source, target, is_kept in pairs if is_kept)


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
    texts = read_texts(config.data)
    source = resumed or base
    tokenizers = tokenizers_of(source) if source else make_tokenizers(config, texts.training)
    sizes = {"input_vocab_size": tokenizers[0].vocab_size, "target_vocab_size": tokenizers[1].vocab_size}
    config = override(config, {"model": sizes})
    if resumed:
        refuse_differences(resumed, config, texts.description())
    if base:
        _refuse_other_model(base, config, tokenizers)
    return Start(config, texts, tokenizers, base)


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
