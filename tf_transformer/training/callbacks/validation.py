"""Callbacks of validation: averaged weights, translations with BLEU, and early stopping."""

import contextlib
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import keras

from tf_transformer.data import Pairs
from tf_transformer.evaluation import AUTO, bleu_metric
from tf_transformer.text.batching import translate_lines
from tf_transformer.training.optimizer import moving_averages
from tf_transformer.training.schedule import ScaledSchedule
from tf_transformer.translation.translator import Translator


@contextlib.contextmanager
def averaged(model: keras.Model) -> Iterator[None]:
    """Replace the weights by the optimizer's moving averages (`use_ema`), if it has any, within a `with` block.

    Keras's own `SwapEMAWeights` swaps by addition and subtraction, which changes the weights by rounding errors.
    """
    pairs = moving_averages(model.optimizer)
    trained = [weight.numpy() for weight, _ in pairs]
    for weight, average in pairs:
        weight.assign(average.numpy())
    try:
        yield
    finally:
        for (weight, _), value in zip(pairs, trained, strict=True):
            weight.assign(value)


class ValidateAverage(keras.callbacks.Callback):
    """Validates the moving average of the weights where the optimizer keeps one."""

    def on_test_begin(self, logs: Any = None) -> None:
        """Put the averages in."""
        self.swapped = averaged(self.model)
        self.swapped.__enter__()

    def on_test_end(self, logs: Any = None) -> None:
        """Put the weights back."""
        self.swapped.__exit__(None, None, None)


class TranslateValidation(keras.callbacks.Callback):
    """Translates validation sentences at the end of an epoch: a few to look at, and more for a BLEU score.

    It must come before the callbacks that read `val_bleu` from the logs.

    Args:
        translator: a translator with the model that is trained.
        pairs: the validation sentences.
        samples: how many translations to print, with their references.
        bleu_every: epochs between BLEU scores of greedy search; 0 turns them off.
        bleu_sentences: how many of the first sentences are scored.
        tokenize: sacreBLEU's tokenizer, as for `bleu_metric`.
        mean: returns the mean of its argument over all machines, so that they agree; by default there is only one.
        directions: the languages of each pair, where the model has several.
        language: the language of the translations, as for `bleu_metric`.
    """

    def __init__(
        self,
        translator: Translator,
        pairs: Pairs,
        samples: int = 3,
        bleu_every: int = 0,
        bleu_sentences: int = 500,
        tokenize: str = AUTO,
        mean: Callable[[float], float] = float,
        directions: Sequence[tuple[str, str]] | None = None,
        language: str | None = None,
    ):
        super().__init__()
        self.translator = translator
        self.pairs = pairs
        self.samples = samples
        self.bleu_every = bleu_every
        self.bleu_sentences = bleu_sentences
        if bleu_every:
            self.metric = bleu_metric(tokenize, language)
        self.mean = mean
        self.directions = directions

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Translate, add `val_bleu` to the logs, and print."""
        is_scored = self.bleu_every and (epoch + 1) % self.bleu_every == 0
        count = max(self.samples, self.bleu_sentences if is_scored else 0)
        if not count:
            return
        if sys.stdout.isatty():
            print()  # ends the line of the progress bar
        sources, references = self.pairs.sources[:count], self.pairs.targets[:count]
        with averaged(self.model):
            translations = self._translate(sources)
        if is_scored:
            scored = slice(self.bleu_sentences)
            found = self.metric.corpus_score(translations[scored], [references[scored]])
            logs["val_bleu"] = self.mean(found.score)
            print(f"validation BLEU {logs['val_bleu']:.2f} on {len(translations[scored])} sentences", flush=True)
        for triple in list(zip(sources, translations, references, strict=True))[: self.samples]:
            print("  source       {}\n  translation  {}\n  reference    {}".format(*triple), flush=True)

    def _translate(self, sources: list[str]) -> list[str]:
        """Translate sentences, which are the first ones of the pairs."""
        rows: list[tuple[str, ...]] = [(source,) for source in sources]
        if self.directions:
            rows = [(*row, *direction) for row, direction in zip(rows, self.directions, strict=False)]

        def translate(batch: list[tuple[str, ...]], numbers: Sequence[int]) -> list[str]:
            texts, *languages = (list(column) for column in zip(*batch, strict=True))
            return self.translator.translate_strings(texts, numbers, *languages)

        def count(batch: list[tuple[str, ...]]) -> list[int]:
            return self.translator.count_tokens([row[0] for row in batch])

        return list(translate_lines(translate, rows, count=count))


class _Patient(keras.callbacks.Callback):
    """Waits for better validations; those before a resume count.

    Args:
        best_by: "loss" or "bleu" of the validation.
        patience: validations without a better one until something is done.
        past: the values of the validations before a resume, the oldest first.
    """

    def __init__(self, best_by: str, patience: int, past: list[float]):
        super().__init__()
        self.metric = f"val_{best_by}"
        self.sign = 1 if best_by == "bleu" else -1
        self.patience = patience
        self.values = list(past)


class LowerOnPlateau(_Patient):
    """Lowers the rate of a `ScaledSchedule` where validations bring nothing better; those before a resume count.

    Args:
        schedule: the schedule.
        best_by: "loss" or "bleu" of the validation.
        patience: validations without a better one until the rate is lowered, and then until it is lowered again.
        factor: what the rate is multiplied by.
        past: the values of the validations before a resume, the oldest first.
    """

    def __init__(self, schedule: ScaledSchedule, best_by: str, patience: int, factor: float, past: list[float]):
        super().__init__(best_by, patience, past)
        self.schedule = schedule
        self.factor = factor

    def drops(self) -> int:
        """Return how often the rate has been lowered by now."""
        best, waited, drops = -math.inf, 0, 0
        for value in self.values:
            is_better = self.sign * value > best
            best = max(best, self.sign * value)
            waited = 0 if is_better else waited + 1
            if waited == self.patience:
                drops, waited = drops + 1, 0
        return drops

    def on_train_begin(self, logs: Any = None) -> None:
        """Go on with the rate that training was stopped with."""
        self.schedule.scale.assign(self.factor ** self.drops())

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Look at the validation, if there was one."""
        if self.metric not in logs:
            return
        before = self.drops()
        self.values.append(logs[self.metric])
        if self.drops() > before:
            self.schedule.scale.assign(self.factor ** self.drops())
            print(f"no better {self.metric} in {self.patience} validations: learning rate lowered", flush=True)


class EarlyStopping(_Patient):
    """Stops after `patience` validations without a better one; validations before a resume count.

    Args:
        best_by: "loss" or "bleu" of the validation.
        patience: the number of validations to wait for a better one.
        past: the values of the validations before a resume, the oldest first.
    """

    def is_over(self) -> bool:
        """Return whether the last `patience` validations brought nothing better."""
        better = [self.sign * value for value in self.values]
        return len(better) > self.patience and max(better[-self.patience :]) <= max(better[: -self.patience])

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Look at the validation, if there was one."""
        if self.metric in logs:
            self.values.append(logs[self.metric])
            if self.is_over():
                print(f"no better {self.metric} in {self.patience} validations: stopped", flush=True)
                self.model.stop_training = True
