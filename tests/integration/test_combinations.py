"""Every value of every setting, beside every value of every other: trained, resumed, averaged, exported, translated.

Pairs of values are what faults need most often (Kuhn et al. 2004), and 23 runs have them all.
"""

import collections
import dataclasses
import functools
import itertools
import json
import random

import pytest

from tf_transformer.config import Config, override
from tf_transformer.data.corpora import toy
from tf_transformer.errors import InputError

PAIRS = toy.pairs("train")[:61]
OTHERS = {
    "model.num_decoder_layers": 2,
    "model.dropout_rate": 0.3,
    "model.norm_epsilon": 1e-3,
    "model.activation_dropout_rate": 0.3,
    "model.key_dim": 3,
    "model.value_dim": 5,
    "model.attention_dropout_rate": 0.3,
    "tokenizer.character_coverage": 0.99,
    "data.max_length_ratio": 3.0,
    "data.held_out_seed": 3,
    "training.weight_decay": 0.1,
    "training.clip_norm": 0.5,
    "training.accumulate": 2,
    "training.label_smoothing": 0.0,
    "training.ema_decay": 0.9,
    "training.seed": 7,
    "training.early_stopping": 9,
    "training.validate_every": 1,
    "training.samples": 1,
    "training.checkpoint_every": 1,
    "training.keep_best": 2,
    "decoding.length_penalty": 0.0,
    "decoding.max_source_length": 7,
    "decoding.max_extra_length": 3,
    "decoding.max_length": 9,
    "decoding.min_length": 3,
    "decoding.no_repeat_ngram": 2,
    "decoding.attention_layer": 1,
}
"""A value besides the default one, for each setting without choices."""
TOGETHER = [
    [
        {"decoding.beam_size": 1},
        {"decoding.beam_size": 3, "decoding.early_stopping": True, "decoding.coverage_penalty": 0.2},
        {"decoding.beam_size": 3, "decoding.likely_stopping": True, "decoding.length_penalty_offset": 0.0},
        {"decoding.temperature": 1.5, "decoding.top_k": 11, "decoding.top_p": 0.9, "decoding.seed": 3},
    ],
    [
        {"training.schedule": "inverse_sqrt", "training.learning_rate_factor": 2.0},
        {"training.schedule": "constant", "training.learning_rate": 0.01},
        {"training.schedule": "cosine"},
        {"training.schedule": "plateau", "training.plateau_patience": 1, "training.plateau_factor": 0.3},
    ],
    [{}, {"training.bleu_every": 1, "training.best_by": "bleu", "training.bleu_sentences": 3}],
    [{}, {"tokenizer.model_type": "bpe", "data.bpe_dropout": 0.1}],
    [
        {"data.tsv": "recognized"},
        {"data.tsv": "recognized", "data.columns": "en=1,de=2,score=3", "data.min_score": 0.5},
        {"data.tsv": "plain", "data.min_score": 0.5},
    ],
]
"""Settings that mean something only together."""
ALONE = {
    **dict.fromkeys(("model.num_layers", "model.d_model", "model.num_heads", "model.dff"), "sizes, set in BASE"),
    **dict.fromkeys(("model.input_vocab_size", "model.target_vocab_size"), "taken from the tokenizer"),
    **dict.fromkeys(("tokenizer.vocab_size", "data.max_length", "data.batch_tokens"), "sizes, set in BASE"),
    **dict.fromkeys(("data.corpus", "data.source", "data.target", "data.held_out"), "the text, set in BASE"),
    **dict.fromkeys(("training.max_steps", "training.warmup_steps", "training.keep_last"), "set in BASE"),
    **dict.fromkeys(("data.extra_corpora", "data.weights", "data.validation_corpus"), "tests/training/test_texts.py"),
    **dict.fromkeys(("data.train_split", "data.validation_split", "data.prepared"), "tests/training/test_prepared.py"),
    **dict.fromkeys(("training.init_from", "training.lora_rank", "tokenizer.file"), "tests/training/test_lora.py"),
    **dict.fromkeys(("decoding.source_language", "decoding.target_language"), "tests/training/test_texts.py"),
    "model.max_positions": "with learned positions, set in BASE",
    "data.inline_tags": "of translation memories, tests/data",
    "training.bleu_tokenize": "sacreBLEU's, tests/evaluation",
    "training.deterministic": "tests/training/test_resume.py",
}
"""Settings that are not combined, and where they are tested instead."""
BASE = {
    "model": {"num_layers": 1, "d_model": 14, "num_heads": 2, "dff": 11, "max_positions": 67},
    "tokenizer": {"vocab_size": 347},
    "data": {"source": "en", "target": "de", "batch_tokens": 192, "max_length": 41, "held_out": 0.15},
    "training": {"max_steps": 5, "warmup_steps": 2, "keep_last": 3, "samples": 0},
    "decoding": {"max_length": 11},
}
MOST = 5
"""The most values of a setting that are combined; more are spread over the runs, each at least once."""


def settings():
    """Each setting and its field."""
    for section in dataclasses.fields(Config):
        for field in dataclasses.fields(section.default_factory):
            yield f"{section.name}.{field.name}", field


def factors():
    """Lists of alternatives, of which a run takes one each."""
    found = [list(alternatives) for alternatives in TOGETHER]
    known = {name for alternatives in TOGETHER for each in alternatives for name in each} - {"tokenizer.model_type"}
    for name, field in settings():
        if name in known | set(ALONE):
            continue
        values = field.metadata["choices"] or ((False, True) if isinstance(field.default, bool) else ())
        values = values or (field.default, OTHERS[name])
        found.append([{name: value} for value in values])
    return found


def is_valid(given):
    """Whether these settings go together."""
    if given.get("data.bpe_dropout") and given["tokenizer.model_type"] != "bpe":
        return False
    try:
        configured(given)
    except InputError:
        return False
    return True


def configured(given):
    """The config of a run."""
    layer = {}
    for name, value in given.items():
        section, key = name.split(".")
        layer.setdefault(section, {})[key] = value
    return override(Config(), BASE, layer)


def merged(row):
    """The settings of a run, or None if two alternatives set one to different values."""
    given = {}
    for each in row:
        if any(given.get(name, value) != value for name, value in each.items()):
            return None
        given |= each
    return given


def rows_of(alternatives):
    """Rows of settings in which every two alternatives of different factors that go together are together once.

    Each begins with an alternative that is in most of the pairs that are left, and takes, factor by factor, what has
    the most new pairs with what it has (Cohen et al. 1997).
    """
    alternatives = [each if len(each) <= MOST else [{}] for each in alternatives]
    cells = [(factor, number) for factor, each in enumerate(alternatives) for number in range(len(each))]

    def given_by(chosen):
        given = merged(alternatives[factor][number] for factor, number in chosen)
        return given if given is not None and is_valid(given) else None

    def as_pair(one, other):
        return (one, other) if one < other else (other, one)

    pairs = {
        pair for pair in itertools.combinations(cells, 2) if pair[0][0] != pair[1][0] and given_by(pair) is not None
    }

    rng, left, rows = random.Random(SEED), set(pairs), []
    for _ in range(1000):
        if not left:
            return rows
        count = collections.Counter(itertools.chain(*left))
        most = max(count.values())
        row = [rng.choice([cell for cell in cells if count[cell] >= 0.9 * most])]
        others = [factor for factor in range(len(alternatives)) if factor != row[0][0]]
        for factor in sorted(others, key=lambda factor: 2 * rng.random() - len(alternatives[factor])):
            fitting = [
                (sum(as_pair(cell, other) in left for other in row), rng.random(), cell)
                for cell in cells
                if cell[0] == factor and all(as_pair(cell, other) in pairs for other in row)
            ]
            if not fitting:
                break
            row.append(max(fitting)[2])
        else:  # it is whole
            left.difference_update(itertools.combinations(sorted(row), 2))
            rows.append(given_by(row))
    raise AssertionError(f"these go together, but in no run: {left}")


SEED = 54
"""Of 400 seeds, the one with the fewest rows; try others when settings have come."""
RUNS = 23
"""How many rows there are."""


@functools.cache
def rows():
    """The settings of each run."""
    alternatives = factors()
    found = rows_of(alternatives)
    for each in alternatives:
        if len(each) > MOST:
            for number, row in enumerate(found):
                row |= each[number % len(each)]
    return found


def test_every_setting_is_combined_or_tested_alone():
    combined = {name for alternatives in factors() for each in alternatives for name in each}
    assert combined | set(ALONE) == {name for name, _ in settings()} and not combined & set(ALONE)
    assert len(rows()) == RUNS and all(
        any(value.items() <= row.items() for row in rows()) for alternatives in factors() for value in alternatives
    )


def toml(given):
    """Settings as a TOML file has them; a setting that is None is left out."""
    lines = []
    for name, value in given.items():
        section, key = name.split(".")
        if value is not None:
            lines.append(f"{section}.{key} = {json.dumps(value)}")
    return "\n".join(sorted(lines))


@pytest.mark.long
@pytest.mark.parametrize("number", range(RUNS))
def test_a_run_is_trained_resumed_averaged_exported_and_translates(number, tmp_path, in_fork):
    """In a process of its own, whose end gives back what TensorFlow keeps of every graph."""
    row = rows()[number]
    scored = random.Random(number)
    text = "".join(f"{source}\t{target}\t{scored.random():.2f}\n" for source, target in PAIRS)
    header = "" if row["data.tsv"] == "plain" else "en\tde\tscore\n"
    (tmp_path / "text.tsv").write_text(header + text, encoding="utf-8")
    (tmp_path / "base.toml").write_text(toml(flat(BASE) | row))
    (tmp_path / "some.txt").write_text(
        "The dog sleeps.\nA girl, 12 m², reads.\n\nThe old man is here.\n", encoding="utf-8"
    )
    train = ["train", "--config", "base.toml", "--data", "text.tsv", "--run-dir", "run", "--max-steps"]
    commands = [
        [*train, "2"],
        [*train, "5"],
        ["average", "--run-dir", "run", "--last", "2", "--output", "averaged"],
        ["export", "--run-dir", "averaged", "--output", "1"],
        ["translate", "--model", "averaged", "--input", "some.txt", "--output", "by run"],
        ["translate", "--model", "1", "--input", "some.txt", "--output", "by export"],
    ]
    in_fork(
        f"""
        from tf_transformer.commands.main import main

        for command in {commands!r}:
            assert main(command) == 0, (command, {row!r})
        """,
        cwd=tmp_path,
    )
    # A translation may have any character but the line feed.
    by_run, by_export = (
        (tmp_path / f"by {model}").read_bytes().removesuffix(b"\n").split(b"\n") for model in ("run", "export")
    )
    assert by_run == by_export, row
    assert len(by_run) == 4 and by_run[2] == b""
    assert json.loads((tmp_path / "run" / "config.json").read_text())["config"]["model"]["norm"] == row["model.norm"]


def flat(layer):
    """The settings of sections by their whole names."""
    return {f"{section}.{key}": value for section, values in layer.items() for key, value in values.items()}
