"""BLEU and chrF by sacreBLEU, with their signatures."""

import dataclasses
import logging
import re
from collections.abc import Sequence
from typing import Any

from sacrebleu.metrics import BLEU, CHRF
from sacrebleu.significance import PairedTest

from tf_transformer.errors import InputError, unknown

TOKENIZERS = tuple(BLEU.TOKENIZERS)
AUTO = "auto"
"""What chooses the tokenizer by the language of the translations."""
BY_LANGUAGE = {
    **dict.fromkeys(("zh", "zho", "cmn", "yue", "wuu"), "zh"),
    **dict.fromkeys(("ja", "jpn"), "ja-mecab"),
    **dict.fromkeys(("ko", "kor"), "ko-mecab"),
    # Thai, Lao, Khmer, Burmese and Shan, Tibetan and Dzongkha: scripts without spaces between words.
    **dict.fromkeys(("th", "tha", "lo", "lao", "km", "khm", "my", "mya", "shn", "bo", "bod", "dz", "dzo"), "char"),
}
"""sacreBLEU's tokenizers of the languages for which its default, 13a, is wrong, by their ISO 639 codes."""

log = logging.getLogger(__name__)


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


def score(translations: list[str], references: list[str], tokenize: str = AUTO, language: str | None = None) -> Scores:
    """Score translations against one reference each.

    Args:
        translations: detokenised text, or tokenised text with `tokenize="none"`.
        references: one for each translation.
        tokenize: as for `bleu_metric`.
        language: as for `bleu_metric`.

    Raises:
        InputError: as `bleu_metric`; or there is no sentence.
    """
    bleu, chrf = bleu_metric(tokenize, language), CHRF()
    _check_any(references)
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


def compare(
    translations: list[str],
    others: list[str],
    references: list[str],
    tokenize: str = AUTO,
    language: str | None = None,
) -> list[Comparison]:
    """Compare two systems by sacreBLEU's paired bootstrap resampling (Koehn 2004) with 1,000 samples.

    Args:
        translations: the translations of the system.
        others: the translations of the system that it is compared with.
        references: one for each translation.
        tokenize: as for `bleu_metric`.
        language: as for `bleu_metric`.

    Raises:
        InputError: as `bleu_metric`; or there is no sentence.
    """
    metrics = {"BLEU": bleu_metric(tokenize, language), "chrF": CHRF()}
    _check_any(references)
    systems: list[tuple[str, Sequence[str]]] = [("other", others), ("this", translations)]
    signatures, results = PairedTest(systems, metrics, [references], test_type="bs")()
    found: dict[str, Any] = {name: results[name] for name in signatures}
    return [
        # Of equal scores, sacreBLEU gives the smallest p that there is.
        Comparison(
            name, this.score, other.score, this.p_value if this.score != other.score else 1.0, str(signatures[name])
        )
        for name, (other, this) in found.items()
    ]


def _check_any(references: list[str]) -> None:
    if not references:
        raise InputError("there is no sentence to score: give at least one, with its reference")


def bleu_metric(tokenize: str = AUTO, language: str | None = None, **settings: Any) -> BLEU:
    """Return sacreBLEU's metric with a tokenizer, which its signature names.

    Args:
        tokenize: sacreBLEU's tokenizer; "none" for text that is already tokenised (BLEU then equals multi-bleu.perl);
            "auto" for the one of the language, or for characters if its package is missing, which is said.
        language: the language of the translations, such as `zh`, `zh_CN` or `zho_Hans`; None if it is not known.
        **settings: further arguments of sacreBLEU's metric.

    Raises:
        InputError: sacreBLEU has no such tokenizer, or the tokenizer needs a package or a file that is missing.
    """
    chosen = BY_LANGUAGE.get(re.split("[-_]", language or "")[0].lower(), "13a") if tokenize == AUTO else tokenize
    if chosen not in TOKENIZERS:
        raise unknown("tokenizer of sacreBLEU", chosen, [AUTO, *TOKENIZERS])
    try:
        # `force` silences the warning about tokenised text, which is intended here.
        return BLEU(tokenize=chosen, force=chosen == "none", **settings)
    except (RuntimeError, ImportError, OSError) as error:  # some tokenizers are downloaded
        if tokenize == AUTO:
            extra = chosen.partition("-")[0]
            log.warning("BLEU is of characters: for the words of %s, pip install 'sacrebleu[%s]'", language, extra)
            return BLEU(tokenize="char", **settings)
        raise InputError(f"sacreBLEU's tokenizer {chosen} is unavailable: {' '.join(str(error).split())}") from None
