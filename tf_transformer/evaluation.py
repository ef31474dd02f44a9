"""BLEU and chrF by sacreBLEU, with their signatures."""

import dataclasses

from sacrebleu.metrics import BLEU, CHRF

from tf_transformer.errors import unknown

TOKENIZERS = tuple(BLEU.TOKENIZERS)


@dataclasses.dataclass(frozen=True)
class Scores:
    """The scores of a system on a test set."""

    bleu: float
    """0 to 100"""
    chrf: float
    """chrF2, 0 to 100"""
    signature: str
    """sacreBLEU's, of the BLEU score"""
    chrf_signature: str
    sentences: int


def score(translations: list[str], references: list[str], tokenize: str = "13a") -> Scores:
    """Score translations against one reference each.

    Args:
        translations: detokenised text, or tokenised text with `tokenize="none"`.
        references: of the same number.
        tokenize: sacreBLEU's tokenizer; "none" for text that is tokenised already (it then equals multi-bleu.perl).

    Raises:
        InputError: a tokenizer that sacreBLEU does not have.
    """
    if tokenize not in TOKENIZERS:
        raise unknown("tokenizer of sacreBLEU", tokenize, TOKENIZERS)
    # `force`: tokenised text is meant to be so.
    bleu, chrf = BLEU(tokenize=tokenize, force=tokenize == "none"), CHRF()
    bleu_score = bleu.corpus_score(translations, [references])
    chrf_score = chrf.corpus_score(translations, [references])
    return Scores(
        bleu=bleu_score.score,
        chrf=chrf_score.score,
        signature=str(bleu.get_signature()),
        chrf_signature=str(chrf.get_signature()),
        sentences=len(references),
    )
