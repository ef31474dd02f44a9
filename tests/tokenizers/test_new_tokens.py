"""Pieces that a vocabulary learns from new text: what they are, and that text is cut as before elsewhere."""

import itertools
from collections import Counter

import pytest

from tf_transformer.config import TokenizerConfig
from tf_transformer.data.corpora import toy
from tf_transformer.errors import InputError
from tf_transformer.tokenizers import SPACE_MARK, UNKNOWN, Tokenizer, Vocabulary, train_tokenizer
from tf_transformer.tokenizers.listed_pieces import listed_pieces
from tf_transformer.tokenizers.new_tokens import LEAST, Joins, learned_pieces, with_tokens

OLD = [text for pair in toy.pairs("val") for text in pair]
FRENCH = ["Le garçon mange une pomme à côté du chat.", "La fille était là où l'été commençait, 12 km d'ici."]
NEW = {
    "French": FRENCH * 7,
    "Tuvan": ["Кижи бүрүзү хостуг болгаш дең төрүттүнер.", "Ыт удуп чыдыр 😀 10² м²"] * 7,
    "Chinese": ["我喜欢学习中文。", "学习中文很有意思！"] * 7,
    "Thai": ["ฉันชอบเรียนภาษาไทย"] * 7,
    "odd": ["\x00 \x85 a\u0301bc\u200b\ufeff ▁▁ <0x41> <s> </s> __en__ >>de<<"] * 7,
}


@pytest.fixture(scope="module", params=itertools.product(("bpe", "unigram"), (True, False)), ids=str)
def vocabulary(request):
    model_type, byte_fallback = request.param
    config = TokenizerConfig(vocab_size=419, model_type=model_type, byte_fallback=byte_fallback)
    return Vocabulary(train_tokenizer(OLD, config, ["en", "de"]), languages=["en", "de"])


def extended(vocabulary, tokens):
    size = vocabulary.vocab_size + len(tokens)
    return Tokenizer(with_tokens(vocabulary, tokens), vocab_size=size, languages=tuple(vocabulary.languages))


@pytest.mark.parametrize("name", NEW)
def test_new_text_is_cut_into_fewer_pieces_and_other_text_as_before(vocabulary, name):
    text = NEW[name]
    tokens = learned_pieces(vocabulary, text, 31)
    assert 0 < len(tokens) <= 31
    larger = extended(vocabulary, tokens)
    assert larger.pieces[: vocabulary.vocab_size] == vocabulary.pieces
    assert larger.pieces[vocabulary.vocab_size :] == [token.piece for token in tokens]
    before, after = vocabulary.encode(text), larger.encode(text)
    assert larger.tokenize(text).to_list() == after
    costs = [(sum(row.count(UNKNOWN) for row in rows), sum(map(len, rows))) for rows in (before, after)]
    assert costs[1] < costs[0]
    for line in OLD:
        if not any(token.piece in SPACE_MARK + line.replace(" ", SPACE_MARK) for token in tokens):
            assert larger.encode([line]) == vocabulary.encode([line])
    for piece, parts, *_ in tokens:  # the pieces that wrote it before
        assert all(UNKNOWN < part < vocabulary.vocab_size for part in parts)
        if set(piece) <= set(vocabulary.pieces):
            assert "".join(vocabulary.pieces[part] for part in parts) == piece


def test_the_text_comes_back(vocabulary):
    text = [*NEW["French"], *NEW["Chinese"]]
    larger = extended(vocabulary, learned_pieces(vocabulary, text, 97))
    assert [larger.vocabulary.processor.decode(row) for row in larger.encode(text)] == text


@pytest.mark.parametrize("name", ["French", "Tuvan"])
def test_pieces_are_those_of_a_plain_bpe(name):
    """The plain form: all pairs are counted anew after every merge."""
    counts = Counter(word for line in NEW[name] for word in line.split())
    words = [[SPACE_MARK, *word] for word in counts]
    plain, there = [list(word) for word in words], set()
    for _ in range(43):
        pairs = Counter()
        for word, count in zip(plain, counts.values(), strict=True):
            for pair in itertools.pairwise(word):
                if "".join(pair).strip(SPACE_MARK).isalpha() and "".join(pair) not in there:
                    pairs[pair] += count
        best = min(pairs, key=lambda pair: (-pairs[pair], pair))
        if pairs[best] < LEAST:
            break
        there.add("".join(best))
        for number, word in enumerate(plain):
            joined = []
            for piece in word:
                joined[-1:] = ["".join(best)] if joined and (joined[-1], piece) == best else [*joined[-1:], piece]
            plain[number] = joined
    joins = Joins([list(word) for word in words], list(counts.values()), set())
    assert [piece for _, piece in joins.best(set(), 43)] and joins._words == plain


def test_too_little_text_is_said(vocabulary, caplog):
    with pytest.raises(InputError, match="yields no new piece: nothing that the tokenizer cuts occurs 5 times"):
        learned_pieces(vocabulary, FRENCH[:1], 31)
    assert 0 < len(learned_pieces(vocabulary, FRENCH * 7, 9999)) < 9999
    assert "new pieces that occur 5 times or more, of the 9999 asked for" in caplog.text


WORDS = [
    "Lackierkabine",
    "Lackierpistole",
    "Pistole",
    "Mann",
    "garçon",
    "Кижи",
    "中文",
    "12-V-Netz",
    "Kabine Lack",
    "a",
]


def test_a_listed_word_is_one_piece_and_other_text_is_cut_as_before(vocabulary):
    tokens = listed_pieces(vocabulary, WORDS)
    larger = extended(vocabulary, tokens)
    assert larger.pieces[: vocabulary.vocab_size] == vocabulary.pieces
    for text in WORDS:
        [[id]] = larger.encode([text])
        assert id != UNKNOWN and larger.vocabulary.processor.decode([id]) == text
    sentence = "Der Mann hat eine Lackierkabine und eine Pistole , mit garçon und 中文 ."
    assert larger.tokenize([sentence]).to_list() == larger.encode([sentence])
    pieces = [larger.pieces[id] for id in larger.encode([sentence])[0]]
    assert {f"{SPACE_MARK}{word}" for word in ("Mann", "Lackierkabine", "Pistole", "garçon", "中文")} <= set(pieces)
    for line in OLD:
        if not any(token.piece in SPACE_MARK + line.replace(" ", SPACE_MARK) for token in tokens):
            assert larger.encode([line]) == vocabulary.encode([line])
    for token in tokens:
        assert all(UNKNOWN < part < vocabulary.vocab_size for part in token.parts)
    assert listed_pieces(larger.vocabulary, WORDS) == []


@pytest.mark.parametrize("word", ["\u200b", "\u2581", "a\x00b"])
def test_a_word_that_cannot_be_one_piece_is_refused(vocabulary, word):
    with pytest.raises(InputError, match="1 of the 2 words cannot become one piece"):
        listed_pieces(vocabulary, ["Mann", word])


@pytest.mark.parametrize("model_type", ["char", "word"])
def test_characters_and_words_get_no_pieces(model_type):
    model = train_tokenizer(OLD, TokenizerConfig(vocab_size=419, model_type=model_type))
    with pytest.raises(InputError, match=f"type unigram or bpe gets pieces. Received: {model_type}"):
        learned_pieces(Vocabulary(model), FRENCH * 7, 31)
    with pytest.raises(InputError, match=f"type unigram or bpe gets pieces. Received: {model_type}"):
        listed_pieces(Vocabulary(model), WORDS)
