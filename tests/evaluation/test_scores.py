import math
import random
from types import SimpleNamespace

import pytest

from tf_transformer.errors import InputError
from tf_transformer.evaluation import bleu_metric, compare, score, scores

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


@pytest.mark.parametrize("tokenize", ["auto", "none"])
def test_no_sentence_is_refused(tokenize):
    with pytest.raises(InputError, match="^there is no sentence to score"):
        score([], [], tokenize)
    with pytest.raises(InputError, match="^there is no sentence to score"):
        compare([], [], [], tokenize)


@pytest.mark.parametrize(
    ("language", "tokenize"),
    [
        *((code, "zh") for code in ("zh", "zh_CN", "zh-TW", "zho_Hans", "yue_Hant")),
        *((code, "char") for code in ("th", "tha_Thai", "km", "lao_Laoo", "my", "bod_Tibt")),
        *((code, "13a") for code in ("en", "de", "deu_Latn", "xx", "", None, "ar", "hi", "vi")),
    ],
)
def test_the_tokenizer_is_that_of_the_language(language, tokenize):
    assert f"tok:{tokenize}|" in score(["a"], ["a"], language=language).signature
    assert "tok:none|" in score(["a"], ["a"], "none", language).signature


def test_nearly_right_chinese_is_not_worth_nothing():
    """By spaces, each sentence is one word."""
    right = ["他 昨天 去 了 北京 。", "我 喜欢 喝 茶 。", "这 本 书 很 有趣 ！"]
    references = [text.replace(" ", "") for text in right]
    translations = [references[0], "我喜欢喝咖啡。", references[2].replace("！", "。")]
    assert score(translations, references).bleu < 40
    assert score(translations, references, language="zh").bleu > 60


@pytest.mark.parametrize(("language", "package"), [("ja", "ja"), ("kor_Hang", "ko")])
def test_a_tokenizer_whose_package_is_missing_is_replaced_and_named(language, package, monkeypatch, caplog):
    def bleu(tokenize, **settings):
        if tokenize.endswith("mecab"):
            raise RuntimeError("Please install")
        return SimpleNamespace(tokenize=tokenize)

    monkeypatch.setattr(scores, "BLEU", bleu)
    assert bleu_metric(language=language).tokenize == "char"
    assert f"BLEU is of characters: for the words of {language}, pip install 'sacrebleu[{package}]'" in caplog.text
    with pytest.raises(InputError, match="is unavailable: Please install"):
        bleu_metric(f"{package}-mecab", language)


def test_all_tokenizers_of_languages_are_sacrebleus():
    assert set(scores.BY_LANGUAGE.values()) <= set(scores.TOKENIZERS)


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
    assert [one.p_value for one in compare(good, good, references, "none")] == [1.0, 1.0]
    # Turned round, the same difference.
    other, _ = compare(bad, good, references, "none")
    assert (other.score, other.other, other.p_value) == (bleu.other, bleu.score, bleu.p_value)
