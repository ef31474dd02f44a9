"""What a strategy and `--deterministic` cost a training step, each in processes of its own, in turn.

    python scripts/training_cost.py --rounds 5

Prints the median time of a step of the `tiny` preset on `toy` sentences, for each way, over all rounds.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time

WAYS = ("no strategy", "one-device", "mirrored", "mirrored, deterministic")


def measure(way: str, steps: int) -> list[float]:
    """Return the seconds of so many steps of `fit`, after a few that warm up."""
    from tf_transformer.quiet import import_tensorflow

    import_tensorflow()
    import keras
    import tensorflow as tf

    from tf_transformer.config import PRESETS
    from tf_transformer.data import Batches, encode, read
    from tf_transformer.settings import override
    from tf_transformer.tokenizers import Tokenizer, train_tokenizer
    from tf_transformer.training.callbacks import EpochOrder
    from tf_transformer.training.fit import make_trainer
    from tf_transformer.training.strategy import make_strategy

    name, _, deterministic = way.partition(", ")
    if deterministic:
        tf.config.experimental.enable_op_determinism()
    strategy = tf.distribute.get_strategy() if name == "no strategy" else make_strategy(name)
    config = override(PRESETS["tiny"], {"data": {"corpus": "toy"}, "tokenizer": {"vocab_size": 1000}})
    text = read(config.data, "train")
    tokenizer = Tokenizer(train_tokenizer([*text.sources, *text.targets], config.tokenizer))
    sizes = {"input_vocab_size": tokenizer.vocab_size, "target_vocab_size": tokenizer.vocab_size}
    batches = Batches(encode(text, tokenizer, tokenizer, 64), config.data.batch_tokens, seed=0)
    keras.utils.set_random_seed(0)
    with strategy.scope():
        trainer = make_trainer(override(config, {"model": sizes}))
    ends = []

    class Clock(keras.callbacks.Callback):
        def on_train_batch_end(self, batch: int, logs: object = None) -> None:
            ends.append(time.perf_counter())

    warm_up = 10
    order = EpochOrder(batches, max_steps=warm_up + steps)
    trainer.fit(batches.dataset(), epochs=99, callbacks=[order, Clock()], shuffle=False, verbose=0)
    return [after - before for before, after in zip(ends[warm_up - 1 :], ends[warm_up:], strict=False)]


def main() -> None:
    """Measure every way in turn, a few times over, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="processes for each way (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=60, help="measured steps a process (default: %(default)s)")
    parser.add_argument("--one", choices=WAYS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(options.one, options.steps)))
        return
    medians: dict[str, list[float]] = {way: [] for way in WAYS}
    for _ in range(options.rounds):
        for way in WAYS:
            command = [sys.executable, __file__, "--one", way, "--steps", str(options.steps)]
            output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            medians[way].append(1000 * statistics.median(json.loads(output.splitlines()[-1])))
    base = statistics.median(medians[WAYS[0]])
    print("| way | ms a step, median of rounds | least to most | against no strategy |\n|---|---|---|---|")
    for way, values in medians.items():
        median = statistics.median(values)
        print(f"| {way} | {median:.0f} | {min(values):.0f} to {max(values):.0f} | {median / base - 1:+.1%} |")


if __name__ == "__main__":
    main()
