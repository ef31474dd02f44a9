"""Pictures of what each token attends to: all three kinds of attention, from a run.

Usage: python examples/attention_pictures.py runs/toy_en_de "The old woman sees a dog." [FOLDER]
"""

import sys
from pathlib import Path

import numpy as np

from tf_transformer import Translator, plotting


def main(run: str, sentence: str, folder: str = ".") -> list[Path]:
    """Draw every head of every layer, and return the files."""
    found = Translator.load(run).attention(sentence)
    kinds = {
        "encoder": (found.encoder, found.source_tokens, found.source_tokens),
        "decoder": (found.decoder, found.target_tokens, found.read_tokens),
        "cross": (found.weights, found.target_tokens, found.source_tokens),
    }
    files = []
    for name, (weights, rows, columns) in kinds.items():
        files.append(Path(folder, f"{name}.svg"))
        plotting.save(plotting.attention(weights, rows, columns, f"{name}: {sentence}"), files[-1])

    # The head whose attention is sharpest tells best which word became which.
    sharpness = found.weights.max(axis=-1).mean(axis=-1)
    layer, head = np.unravel_index(sharpness.argmax(), sharpness.shape)
    print(f"sharpest: layer {layer + 1}, head {head + 1}")
    for target, row in zip(found.target_tokens, found.weights[layer, head], strict=True):
        print(f"{target:>12} <- {found.source_tokens[row.argmax()]}  {row.max():.2f}")
    return files


if __name__ == "__main__":
    if len(sys.argv) < 3:
        raise SystemExit(__doc__)
    main(*sys.argv[1:])
