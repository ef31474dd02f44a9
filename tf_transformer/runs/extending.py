"""A run with more tokens than the one that it is made from: languages, and pieces."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from tf_transformer.config import override
from tf_transformer.config.special_tokens import SPECIAL_TOKENS, UNLIKELY
from tf_transformer.runs import checkpoints
from tf_transformer.runs.directory import CHECKPOINTS, RunDirectory, new_id, write_run
from tf_transformer.runs.extension import check_extension
from tf_transformer.runs.weights import load, weights
from tf_transformer.storage.atomic import atomic_write
from tf_transformer.tokenizers.new_tokens import NewToken, language_tokens, with_tokens

OF_TOKENS = {
    "transformer/encoder/embedding/tokens/table": (0, 0),
    "transformer/decoder/embedding/tokens/table": (1, 0),
    "transformer/output/kernel": (1, 1),
}
"""The weights that have a part for each token of the source (0) or the target (1), and the axis of these parts."""
BIAS = "transformer/output_bias"


def extend(
    run_dir: str | Path,
    output: str | Path,
    *,
    languages: Mapping[str, str] | None = None,
    pieces: Sequence[Sequence[NewToken]] = ((), ()),
) -> RunDirectory:
    """Write the best checkpoint of a run with more tokens as a run of its own.

    What was there keeps its ids and its weights. A new token starts as the mean of others: that of a language as
    another language, a piece as the mean of the pieces that wrote it before (Hewitt 2021). The logit of a new piece is
    then a mean of logits, and never the greatest alone. So greedy search writes what it wrote, until the model is
    trained, of all text without new pieces. The token of a language is read and never written, as its bias says.

    Args:
        run_dir: a run; one of several languages if it is to get more of them.
        output: a new folder.
        languages: for each new language, the one that it starts as.
        pieces: the new pieces of the source and the target (`runs.extension.new_pieces`), the same for both if they
            share a table of embeddings.

    Returns:
        The new run directory. You can translate with it, export it and start other runs from it (`init_from`), but
        its training cannot continue.

    Raises:
        InputError: as `check_extension` and `language_tokens`.
    """
    run, languages = RunDirectory(run_dir), languages or {}
    check_extension(run, output, languages)
    model = load(run).model
    sides = run.vocabularies()
    tokens = [[*language_tokens(side, languages), *more] for side, more in zip(sides, pieces, strict=True)]
    tokenizers = {
        path.name: with_tokens(side, more)
        for path, side, more in zip(run.tokenizer_paths(), sides, tokens, strict=True)
    }

    has_bias = bool(languages) or model.output_bias is not None

    parameters = 0

    def larger() -> Iterator[tuple[str, np.ndarray]]:
        nonlocal parameters
        if has_bias:
            bias = np.zeros(sides[1].vocab_size, np.float32) if model.output_bias is None else model.output_bias.numpy()
            never = np.array([token.is_language for token in tokens[1]], bool)
            bias = np.concatenate([bias, np.where(never, np.float32(UNLIKELY), _means(bias, tokens[1], 0))])
            parameters += bias.size
            yield BIAS, bias
        for name, weight in weights(model).items():
            if name == BIAS:
                continue
            array = weight.numpy()
            if name in OF_TOKENS:
                side, axis = OF_TOKENS[name]
                array = np.concatenate([array, _means(array, tokens[side], axis)], axis)
            parameters += array.size
            yield name, array

    sizes = {
        f"{name}_vocab_size": side.vocab_size + len(more)
        for name, side, more in zip(("input", "target"), sides, tokens, strict=True)
    }
    config = override(
        run.config, {"model": {**sizes, "output_bias": has_bias}, "training": {"ema_decay": 0.0, "lora_rank": 0}}
    )
    id = new_id()
    with atomic_write(Path(output)) as beside:
        beside.mkdir()
        state = checkpoints.state_of(run.best_checkpoint())
        checkpoints.write(beside / CHECKPOINTS, state["step"], larger(), {"run": id})
        facts = run.facts() | {
            "parameters": parameters,
            "languages": [*run.languages, *languages],
            "extended": {"run": str(run.path.resolve()), "languages": dict(languages), "pieces": [*map(len, pieces)]},
        }
        write_run(beside, config, tokenizers, facts, id)
    return RunDirectory(output)


def _means(weight: np.ndarray, tokens: Sequence[NewToken], axis: int) -> np.ndarray:
    """Return the parts of a weight that new tokens start as, along an axis."""
    everything = tuple(range(SPECIAL_TOKENS, weight.shape[axis]))
    rows = [np.take(weight, token.parts or everything, axis).mean(axis) for token in tokens]
    return np.stack(rows, axis) if rows else np.take(weight, [], axis)
