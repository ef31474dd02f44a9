"""What training starts from: the resolved config, the text and the tokenizers."""

import dataclasses
import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeVar, cast

from tf_transformer.config import Config, override
from tf_transformer.config.sections import NEW
from tf_transformer.config.tokenizer import DEFAULT_NORMALIZATION, NORMALIZATIONS
from tf_transformer.data.prepared import Prepared
from tf_transformer.data.preparing.plan import with_absolute_paths
from tf_transformer.errors import InputError
from tf_transformer.runs.descriptions import LANGUAGES
from tf_transformer.runs.directory import PREPARED, RunDirectory
from tf_transformer.runs.weights import tokenizers_of
from tf_transformer.storage.atomic import PREPARING
from tf_transformer.tokenizers import Tokenizer
from tf_transformer.tokenizers.vocabulary import Vocabulary
from tf_transformer.training.strategy import Machines, is_chief
from tf_transformer.training.text import Text, open_text, prepare_text

Made = TypeVar("Made")
NEW_TOKENS = "new_tokens"
"""The key of `Start.new_tokens` in the description of a run."""


class Start(NamedTuple):
    """What a new or resumed run starts from."""

    config: Config
    """with absolute paths, and the sizes of the vocabularies"""
    text: Text
    tokenizers: tuple[Tokenizer, Tokenizer]
    base: RunDirectory | None
    """the run whose weights a new one starts from"""
    new_tokens: tuple[int, int]
    """the last tokens of the source and of the target whose embeddings low-rank adaptation learns"""

    @property
    def languages(self) -> tuple[str, ...]:
        """The languages of the tokenizers."""
        return tuple(self.tokenizers[0].languages)

    def keep_text(self, folder: Path) -> None:
        """Move the text that was prepared for this run, if any, into a folder of the run."""
        if self.text.prepared.path.name == PREPARING:
            self.text.prepared.path.rename(folder / PREPARED)

    def find_text(self, run_dir: Path) -> None:
        """Read the text that was prepared for this run from where `keep_text` has moved it."""
        if self.text.prepared.path.name == PREPARING:
            self.text.training.folder = run_dir / PREPARED


def start_of(config: Config, path: Path, resumed: RunDirectory | None, machines: Machines) -> Start:
    """Return what a new run in a folder, or the resumed run, starts from.

    The chief prepares the text; the other machines wait for it.

    Raises:
        InputError: wrong data; a run with another config or text; an `init_from` that does not fit.
    """
    config = _with_absolute_paths(config)
    if resumed:
        config = _with_what_stays(config, resumed)
    prepared = config.data.prepared
    there = Prepared(prepared).config if prepared else None
    read = there["data"] if there else NEW["data"]
    for name in NEW["data"]:
        if getattr(config.data, name) is None:
            config = override(config, {"data": {name: read[name]}})
    if config.tokenizer.normalization is None and not (config.tokenizer.file or config.training.init_from):
        normalization = (there and there["tokenizer"]["normalization"]) or DEFAULT_NORMALIZATION
        config = override(config, {"tokenizer": {"normalization": normalization}})
    if resumed:
        _refuse_other_settings(resumed, config)
    base = None
    if config.training.init_from and not (resumed and resumed.known()):
        base = RunDirectory(config.training.init_from)
    if config.training.lora_rank and not config.training.init_from:
        raise InputError(
            "training.lora_rank needs the weights of another run: give --init-from RUN. "
            f"Received: training.lora_rank={config.training.lora_rank}"
        )
    if base:
        _refuse_other_model(base, config, (resumed or base).vocabularies())
    is_first = is_chief(machines.strategy)
    _together(machines, lambda: prepare_text(config, path, resumed, base) if is_first else None)
    text = _together(machines, lambda: open_text(config, path, resumed, base))
    source = resumed or base
    tokenizers = tokenizers_of(source) if source else _in_graph(text.prepared.vocabularies)
    config = _sized(config, text.prepared.vocabularies)
    config.decoding.check_languages(tuple(tokenizers[0].languages))
    directions = text.prepared.directions
    if len(set(directions)) == 1 and None in (config.decoding.source_language, config.decoding.target_language):
        # A model that is trained on one direction translates in that direction by default.
        config = override(config, {"decoding": dict(zip(LANGUAGES, directions[0], strict=True))})
    return Start(config, text, tokenizers, base, _new_tokens(config, resumed, base))


def _new_tokens(config: Config, resumed: RunDirectory | None, base: RunDirectory | None) -> tuple[int, int]:
    """Return how many tokens of the source and of the target `extend` has added to what low-rank adaptation adapts."""
    if resumed and NEW_TOKENS in resumed.description:
        source, target = resumed.description[NEW_TOKENS]
        return source, target
    extended = base.description.get("extended") if base and config.training.lora_rank else None
    if not extended:
        return 0, 0
    source, target = (len(extended["languages"]) + pieces for pieces in extended["pieces"])
    return source, target


def _together(machines: Machines, work: Callable[[], Made]) -> Made:
    """Return the result of `work`, once every machine has done its own.

    Raises:
        InputError: the work failed on this machine or on another.
    """
    error, made = None, None
    try:
        made = work()
    except InputError as raised:
        error = raised
    failed = machines.all_reduce_sum(float(error is not None))[0]
    if error:
        raise error
    if failed:
        raise InputError("another machine could not prepare or open the text: see its error")
    return cast("Made", made)


def _in_graph(vocabularies: tuple[Vocabulary, Vocabulary]) -> tuple[Tokenizer, Tokenizer]:
    """Return tokenizers with these vocabularies: a single object if both sides share one."""
    source, target = vocabularies
    tokenizer = Tokenizer(source.model, vocab_size=source.vocab_size, languages=tuple(source.languages))
    if source is target:
        return tokenizer, tokenizer
    return tokenizer, Tokenizer(target.model, vocab_size=target.vocab_size, languages=tuple(target.languages))


def _with_absolute_paths(config: Config) -> Config:
    """Return the config with absolute paths, which mean the same in every folder."""
    files = {
        ("tokenizer", "file"): config.tokenizer.file,
        ("training", "init_from"): config.training.init_from,
        ("data", "prepared"): config.data.prepared,
    }
    normalization = config.tokenizer.normalization
    # A corpus and a run may have it from a file that is not needed any more.
    if normalization not in NORMALIZATIONS and Path(normalization or "").is_file():
        files["tokenizer", "normalization"] = normalization
    layers = [{section: {key: os.path.abspath(path)}} for (section, key), path in files.items() if path is not None]
    config = override(config, *layers)
    return dataclasses.replace(config, data=with_absolute_paths(config.data))


def _with_what_stays(config: Config, resumed: RunDirectory) -> Config:
    """Return the config with what a resumed run began with and is not given again."""
    old, new = resumed.config.data, config.data
    init_from = config.training.init_from or resumed.config.training.init_from
    text = {key: getattr(new, key) or getattr(old, key) for key in ("source", "target", *NEW["data"])}
    normalization = config.tokenizer.normalization or resumed.config.tokenizer.normalization
    return override(
        config, {"data": text, "tokenizer": {"normalization": normalization}, "training": {"init_from": init_from}}
    )


def _refuse_other_settings(resumed: RunDirectory, config: Config) -> None:
    """Raise InputError if a run was started with another config or tokenizer."""
    differences, file = resumed.differences(config), config.tokenizer.file
    if file and Path(file).read_bytes() != resumed.tokenizer_paths()[0].read_bytes():
        differences.append(f"{file} is another tokenizer")
    resumed.refuse_differences(differences)


def _sized(config: Config, vocabularies: tuple[Vocabulary, Vocabulary]) -> Config:
    """Return the config with the sizes of the vocabularies."""
    source, target = (vocabulary.vocab_size for vocabulary in vocabularies)
    return override(config, {"model": {"input_vocab_size": source, "target_vocab_size": target}})


def _refuse_other_model(base: RunDirectory, config: Config, vocabularies: tuple[Vocabulary, Vocabulary]) -> None:
    """Raise InputError if the run to start from has a model or tokenizer that does not fit."""
    old, new = base.config.as_dict()["model"], _sized(config, vocabularies).as_dict()["model"]
    rates = ("dropout_rate", "attention_dropout_rate", "activation_dropout_rate")
    differences = [
        f"model.{k} is {old[k]!r} there, {new[k]!r} here" for k in old if old[k] != new[k] and k not in rates
    ]
    file = config.tokenizer.file
    wanted = [Path(file).read_bytes()] * 2 if file else [vocabulary.model for vocabulary in vocabularies]
    if [path.read_bytes() for path in base.tokenizer_paths()] != wanted:
        differences.append(f"its tokenizer is not {file or 'the one that this run began with'}")
    if differences:
        raise InputError(f"--init-from {base.path} does not fit: {'; '.join(differences)}")
