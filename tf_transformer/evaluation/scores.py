"""BLEU and chrF by sacreBLEU, with their signatures."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from sacrebleu.metrics import BLEU, CHRF
from sacrebleu.significance import PairedTest

from tf_transformer.errors import InputError, unknown

TOKENIZERS = tuple(BLEU.TOKENIZERS)


@dataclasses.dataclass(frozen=True)
class Scores:
    """The scores of a system on a test set."""

    bleu: float
    """0 to 100"""
    chrf: float
    """chrF2, 0 to 100"""
    signature: str
    """sacreBLEU's signature of the BLEU score"""
    chrf_signature: str
    sentences: int


def score(translations: list[str], references: list[str], tokenize: str = "13a") -> Scores:
    """Score translations against one reference each.

    Args:
        translations: detokenised text, or tokenised text with `tokenize="none"`.
        references: one for each translation.
        tokenize: sacreBLEU's tokenizer; "none" for text that is already tokenised (BLEU then equals multi-bleu.perl).

    Raises:
        InputError: as `bleu_metric`.
    """
    bleu, chrf = bleu_metric(tokenize), CHRF()
    bleu_score = bleu.corpus_score(translations, [references])
    chrf_score = chrf.corpus_score(translations, [references])
    return Scores(
        bleu=bleu_score.score,
        chrf=chrf_score.score,
        signature=str(bleu.get_signature()),
        chrf_signature=str(chrf.get_signature()),
        sentences=len(references),
    )


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Two systems by one metric."""

    metric: str
    """BLEU or chrF2"""
    score: float
    other: float
    p_value: float
    """the probability of such a difference if both systems were equally good"""
    signature: str


def compare(translations: list[str], others: list[str], references: list[str], tokenize: str) -> list[Comparison]:
    """Compare two systems by sacreBLEU's paired bootstrap resampling (Koehn 2004) with 1,000 samples.

    Args:
        translations: the translations of the system.
        others: the translations of the system that it is compared with.
        references: one for each translation.
        tokenize: as in `score`.

    Raises:
        InputError: as `bleu_metric`.
    """
    metrics = {"BLEU": bleu_metric(tokenize), "chrF": CHRF()}
    systems: list[tuple[str, Sequence[str]]] = [("other", others), ("this", translations)]
    signatures, results = PairedTest(systems, metrics, [references], test_type="bs")()
    found: dict[str, Any] = {name: results[name] for name in signatures}
    return [
        Comparison(name, this.score, other.score, this.p_value, str(signatures[name]))
        for name, (other, this) in found.items()
    ]


def bleu_metric(tokenize: str) -> BLEU:
    """Return sacreBLEU's metric with a tokenizer.

    Raises:
        InputError: sacreBLEU has no such tokenizer, or the tokenizer needs a package or a file that is missing.
    """
    if tokenize not in TOKENIZERS:
        raise unknown("tokenizer of sacreBLEU", tokenize, TOKENIZERS)
    try:
        # `force` silences the warning about tokenised text, which is intended here.
        return BLEU(tokenize=tokenize, force=tokenize == "none")
    except (RuntimeError, ImportError, OSError) as error:  # some tokenizers are downloaded
        raise InputError(f"sacreBLEU's tokenizer {tokenize} is unavailable: {' '.join(str(error).split())}") from None
