import random

import pytest
import sacrebleu
from sacrebleu.significance import PairedTest

from tf_transformer.errors import InputError
from tf_transformer.evaluation import compare, score

SYSTEM = ["the cat sat on the mat .", "a dog barks , loudly"]
REFERENCES = ["the cat sat on a mat .", "a dog barks very loudly"]


@pytest.mark.parametrize("tokenize", ["13a", "none"])
def test_scores_are_those_of_sacrebleu(tokenize):
    scores = score(SYSTEM, REFERENCES, tokenize)
    expected = sacrebleu.corpus_bleu(SYSTEM, [REFERENCES], tokenize=tokenize, force=True)
    assert scores.bleu == pytest.approx(expected.score)
    assert scores.chrf == pytest.approx(sacrebleu.corpus_chrf(SYSTEM, [REFERENCES]).score)
    assert f"tok:{tokenize}" in scores.signature
    assert scores.chrf_signature.startswith("nrefs:1")
    assert scores.sentences == 2


def test_a_perfect_system_scores_100():
    assert score(REFERENCES, REFERENCES).bleu == pytest.approx(100)


def test_an_unknown_tokenizer_is_refused():
    with pytest.raises(InputError, match="did you mean '13a'"):
        score(SYSTEM, REFERENCES, "13b")


def test_a_comparison_is_that_of_sacrebleu():
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
    # As the command `sacrebleu --paired-bs` has it.
    metrics = {"BLEU": sacrebleu.BLEU(tokenize="none", force=True)}
    _, results = PairedTest([("a", bad), ("b", good)], metrics, [references], test_type="bs", n_samples=1000)()
    assert bleu.p_value == results["BLEU"][1].p_value
