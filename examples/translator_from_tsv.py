"""From a file of sentence pairs to a translator and an export.

Usage: python examples/translator_from_tsv.py [pairs.tsv [UPDATES]]

Each line of the file is a source sentence, a tab and its translation. Without a file it takes the embedded toy corpus.
"""

import sys
from pathlib import Path

from tf_transformer import Translator
from tf_transformer.config import PRESETS, override
from tf_transformer.data import read
from tf_transformer.evaluation import score
from tf_transformer.export.saved_model import export
from tf_transformer.training.fit import train


def main(corpus: str = "toy", updates: int = 600, folder: str = "runs/example") -> str:
    """Train, translate, score and export; returns the first translation of the test set."""
    settings = {
        "data": {"corpus": corpus, "source": "en", "target": "de", "batch_tokens": 1000},
        "tokenizer": {"vocab_size": 1000},
        "training": {"max_steps": updates, "warmup_steps": 200, "samples": 1},
    }
    if corpus == "toy":
        settings["data"] = {"corpus": "toy", "batch_tokens": 1000}
    run = train(override(PRESETS["tiny"], settings), folder)  # goes on where it was, if it was stopped

    translator = Translator.load(run.path)
    test = read(run.config.data, "test")
    sources, references = test.sources[:100], test.targets[:100]
    translations = translator.translate_strings(sources)
    print(f"BLEU {score(translations, references).bleu:.1f} on {len(sources)} sentences")
    print(sources[0], "->", translations[0])

    place = Path(folder, "export", "1")
    if not place.exists():
        export(run, place)
        print(f"a SavedModel for TensorFlow Serving: {place}")
    return translations[0]


if __name__ == "__main__":
    corpus = sys.argv[1] if len(sys.argv) > 1 else "toy"
    main(corpus, int(sys.argv[2]) if len(sys.argv) > 2 else 600)
