import pytest
import sacrebleu

from tf_transformer.errors import InputError
from tf_transformer.evaluation import score

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
