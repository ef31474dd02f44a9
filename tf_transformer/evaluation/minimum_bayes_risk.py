"""Minimum Bayes risk: of several translations, the one that is most like all of them (Kumar and Byrne 2004)."""

from collections import Counter
from collections.abc import Callable, Sequence

Metric = Callable[[str, str], float]
"""`(translation, reference) -> score`, the higher the better."""


def chrf(language: str | None = None) -> Metric:
    """Return sacreBLEU's chrF2 of a sentence, in any language."""
    from sacrebleu.metrics import CHRF  # NumPy takes a while

    metric = CHRF()
    return lambda translation, reference: metric.sentence_score(translation, [reference]).score


def bleu(language: str | None = None) -> Metric:
    """Return sacreBLEU's BLEU of a sentence, smoothed, with the effective order, and the tokenizer of the language."""
    from tf_transformer.evaluation.scores import bleu_metric

    metric = bleu_metric(language=language, effective_order=True)
    return lambda translation, reference: metric.sentence_score(translation, [reference]).score


METRICS = {"chrf": chrf, "bleu": bleu}


def most_like_all(candidates: Sequence[str], metric: Metric) -> str:
    """Return the candidate with the highest mean score against all candidates.

    A candidate that occurs several times counts as often: draws from a model estimate its expectation. Of equals, the
    first is returned.

    Args:
        candidates: at least one translation of a sentence, the most probable first.
        metric: scores a candidate against another one, which takes the place of the reference.
    """
    counts = Counter(candidates)
    if len(counts) == 1:
        return candidates[0]
    return max(counts, key=lambda candidate: sum(count * metric(candidate, other) for other, count in counts.items()))
