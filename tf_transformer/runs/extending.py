"""A run with more languages than the one that it is made from."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from tf_transformer.config import override
from tf_transformer.config.special_tokens import UNLIKELY
from tf_transformer.runs import checkpoints
from tf_transformer.runs.added_languages import check_new_languages, with_tokens
from tf_transformer.runs.directory import RunDirectory, write_run
from tf_transformer.runs.weights import load, weights
from tf_transformer.storage.atomic import atomic_write

OF_TOKENS = {
    "transformer/encoder/embedding/tokens/table": (0, 0),
    "transformer/decoder/embedding/tokens/table": (1, 0),
    "transformer/output/kernel": (1, 1),
}
"""The weights that have a part for each token of the source (0) or the target (1), and the axis of these parts."""
BIAS = "transformer/output_bias"


def add_languages(run_dir: str | Path, output: str | Path, languages: Mapping[str, str]) -> RunDirectory:
    """Write the best checkpoint of a run with more languages as a run of its own.

    What was there keeps its ids and its weights. The token of a new language starts with the weights of another. It is
    read and never written, as its bias says: with it, the other tokens keep their probabilities.

    Args:
        run_dir: a run of several languages.
        output: a new folder.
        languages: for each new language, the one that it starts as.

    Returns:
        The new run directory. You can translate with it, export it and start other runs from it (`init_from`), but
        its training cannot continue.

    Raises:
        InputError: as `check_new_languages` and `with_tokens`.
    """
    run = RunDirectory(run_dir)
    check_new_languages(run, output, languages)
    model = load(run).model
    paths, sides = run.tokenizer_paths(), run.vocabularies()
    tokenizers = {path.name: with_tokens(side, languages) for path, side in zip(paths, sides, strict=True)}
    ids = [[side.languages[like] for like in languages.values()] for side in sides]

    def larger() -> Iterator[tuple[str, np.ndarray]]:
        unlikely = np.full(len(languages), UNLIKELY, np.float32)
        before = np.zeros(sides[1].vocab_size, np.float32) if model.output_bias is None else model.output_bias.numpy()
        yield BIAS, np.concatenate([before, unlikely])
        for name, weight in weights(model).items():
            if name == BIAS:
                continue
            array = weight.numpy()
            if name in OF_TOKENS:
                side, axis = OF_TOKENS[name]
                array = np.concatenate([array, np.take(array, ids[side], axis)], axis)
            yield name, array

    sizes = {
        f"{name}_vocab_size": side.vocab_size + len(languages)
        for name, side in zip(("input", "target"), sides, strict=True)
    }
    config = override(
        run.config, {"model": {**sizes, "output_bias": True}, "training": {"ema_decay": 0.0, "lora_rank": 0}}
    )
    facts = run.facts() | {
        "languages": [*run.languages, *languages],
        "extended": {"run": str(run.path.resolve()), "languages": dict(languages)},
    }
    with atomic_write(Path(output)) as beside:
        beside.mkdir()
        id = write_run(beside, config, tokenizers, facts)
        state = checkpoints.state_of(run.best_checkpoint())
        checkpoints.write(RunDirectory(beside).checkpoints, state["step"], larger(), {"run": id})
    return RunDirectory(output)
