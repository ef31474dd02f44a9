import math
import random

import pytest

from tf_transformer.errors import InputError
from tf_transformer.evaluation import compare, score

SYSTEM = ["the cat sat on the mat .", "a dog barks , loudly"]
REFERENCES = ["the cat sat on a mat .", "a dog barks very loudly"]


@pytest.mark.parametrize(
    ("translation", "reference", "tokenize", "precisions", "brevity"),
    [
        ("a b c d e", "a b c d f", "none", (4 / 5, 3 / 4, 2 / 3, 1 / 2), 1),
        ("a b c d", "a b c d e", "none", (1, 1, 1, 1), math.exp(1 - 5 / 4)),
        # 13a cuts the full stop off; without it the last word is another one.
        ("a b c d.", "a b c d .", "13a", (1, 1, 1, 1), 1),
        ("a b c d e.", "a b c d e .", "none", (4 / 5, 3 / 4, 2 / 3, 1 / 2), math.exp(1 - 6 / 5)),
    ],
)
def test_bleu_is_what_its_definition_gives_by_hand(translation, reference, tokenize, precisions, brevity):
    """The geometric mean of the n-gram precisions, times the brevity penalty (Papineni et al. 2002)."""
    scores = score([translation], [reference], tokenize)
    assert scores.bleu == pytest.approx(100 * brevity * math.prod(precisions) ** (1 / 4))
    assert f"tok:{tokenize}" in scores.signature
    assert scores.chrf_signature.startswith("nrefs:1")
    assert scores.sentences == 1


def test_chrf_is_what_its_definition_gives_by_hand():
    """F2 of the mean precision and recall of character n-grams (Popovic 2015), of those sizes that both have."""
    precision, recall = (2 / 2 + 1 / 1) / 2, (2 / 3 + 1 / 2) / 2
    assert score(["ab"], ["abc"]).chrf == pytest.approx(100 * 5 * precision * recall / (4 * precision + recall))


def test_a_perfect_system_scores_100():
    assert score(REFERENCES, REFERENCES).bleu == pytest.approx(100)


def test_an_unknown_tokenizer_is_refused():
    with pytest.raises(InputError, match="did you mean '13a'"):
        score(SYSTEM, REFERENCES, "13b")


def test_a_comparison_tells_what_differs_from_what_does_not():
    rng = random.Random(0)
    words = ["the", "a", "cat", "dog", "sits", "runs", "on", "under", "mat", "tree"]
    references = [" ".join(rng.choices(words, k=rng.randint(5, 11))) for _ in range(40)]

    def worse(share: float) -> list[str]:
        return [" ".join(rng.choice(words) if rng.random() < share else w for w in r.split()) for r in references]

    good, bad, also_good = worse(0.1), worse(0.5), worse(0.1)
    bleu, chrf = compare(good, bad, references, "none")
    assert (bleu.metric, chrf.metric) == ("BLEU", "chrF2")
    assert bleu.score == pytest.approx(score(good, references, "none").bleu)
    assert bleu.other == pytest.approx(score(bad, references, "none").bleu)
    assert bleu.p_value < 0.01
    assert chrf.p_value < 0.01
    assert "bs:1000|seed:12345" in bleu.signature
    assert compare(good, also_good, references, "none")[0].p_value > 0.05
    # Turned round, the same difference.
    other, _ = compare(bad, good, references, "none")
    assert (other.score, other.other, other.p_value) == (bleu.other, bleu.score, bleu.p_value)
