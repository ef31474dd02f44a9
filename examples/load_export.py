"""A SavedModel in a program that knows TensorFlow alone: strings in, strings out.

Usage: python examples/load_export.py saved_models/toy_en_de/1 "The cat sleeps." ...
"""

import sys

import tensorflow as tf
import tensorflow_text  # noqa: F401  registers the tokenizer's operations


def main(folder: str, sentences: list[str]) -> list[str]:
    """Translate sentences, and show what else the signatures give."""
    model = tf.saved_model.load(folder)
    text = tf.constant(sentences)
    found = model.signatures["serving_default"](text=text)
    translations = [translation.decode() for translation in found["translation"].numpy()]
    for sentence, translation, score in zip(sentences, translations, found["score"].numpy(), strict=True):
        print(f"{sentence} -> {translation}   (log P {score:.2f})")

    others = model.signatures["translate_n_best"](text=text[:1])
    for translation, score in zip(others["translations"][0].numpy(), others["scores"][0].numpy(), strict=True):
        print(f"  {score:7.3f}  {translation.decode()}")

    given = model.signatures["score"](source=text[:1], target=tf.constant(translations[:1]))
    print(f"the first one as a given translation: log P {given['log_probability'][0]:.2f}")
    return translations


if __name__ == "__main__":
    if len(sys.argv) < 3:
        raise SystemExit(__doc__)
    main(sys.argv[1], sys.argv[2:])
