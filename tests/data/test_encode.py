"""Tests of the way from pairs of sentences to pairs of token sequences."""

import sys

import pytest

from tf_transformer.config import TokenizerConfig
from tf_transformer.data import Pairs, TokenPairs, encode
from tf_transformer.tokenizers import END, Tokenizer, train_tokenizer

SOURCES = ["a cat", "the dog sleeps", "", "b", "   ", "the cat and the dog and the cat", "a", "the cat sleeps"]
TARGETS = ["eine Katze", "der Hund schläft", "c", " \t\u3000", "", "die Katze", "die Katze und der Hund", "schläft"]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer(train_tokenizer(SOURCES + TARGETS, TokenizerConfig(vocab_size=300)))


def texts(tokenizer: Tokenizer, encoded: TokenPairs) -> list[tuple[str, ...]]:
    sides = [tokenizer.detokenize(side).numpy().tolist() for side in (encoded.sources, encoded.targets)]
    return [tuple(text.decode() for text in pair) for pair in zip(*sides, strict=True)]


def test_pairs_keep_their_text_and_order_and_those_with_an_empty_side_are_counted(tokenizer: Tokenizer) -> None:
    encoded = encode(Pairs(SOURCES, TARGETS), tokenizer, tokenizer, max_length=100)
    assert texts(tokenizer, encoded) == [(SOURCES[i], TARGETS[i]) for i in (0, 1, 5, 6, 7)]
    assert (len(encoded), encoded.dropped_empty, encoded.dropped_long) == (5, 3, 0)


def test_the_last_token_and_only_that_is_the_end(tokenizer: Tokenizer) -> None:
    encoded = encode(Pairs(SOURCES, TARGETS), tokenizer, tokenizer, max_length=100)
    for side in (encoded.sources, encoded.targets):
        for ids in side.to_list():
            assert ids.index(END) == len(ids) - 1 > 0


def test_a_pair_is_kept_whole_or_not_at_all(tokenizer: Tokenizer) -> None:
    whole = encode(Pairs(SOURCES, TARGETS), tokenizer, tokenizer, max_length=100)
    pairs = list(zip(whole.sources.to_list(), whole.targets.to_list(), strict=True))
    lengths = [max(len(source), len(target)) for source, target in pairs]
    for limit in range(2, max(lengths) + 1):
        encoded = encode(Pairs(SOURCES, TARGETS), tokenizer, tokenizer, max_length=limit)
        kept = list(zip(encoded.sources.to_list(), encoded.targets.to_list(), strict=True))
        assert kept == [pair for pair, length in zip(pairs, lengths, strict=True) if length <= limit]
        assert (encoded.dropped_empty, encoded.dropped_long) == (3, len(pairs) - len(kept))


@pytest.mark.parametrize("chunk", [1, 3, len(SOURCES)])
def test_chunks_do_not_show(tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch, chunk: int) -> None:
    whole = encode(Pairs(SOURCES, TARGETS), tokenizer, tokenizer, max_length=100)
    # The package has a function of the module's name, which hides the module.
    monkeypatch.setattr(sys.modules["tf_transformer.data.encode"], "CHUNK", chunk)
    encoded = encode(Pairs(SOURCES, TARGETS), tokenizer, tokenizer, max_length=100)
    assert encoded.sources.to_list() == whole.sources.to_list()
    assert encoded.targets.to_list() == whole.targets.to_list()


def test_each_side_has_its_own_tokenizer(tokenizer: Tokenizer) -> None:
    characters = Tokenizer(train_tokenizer(TARGETS, TokenizerConfig(model_type="char", byte_fallback=False)))
    encoded = encode(Pairs(["a cat"], ["die Katze"]), tokenizer, characters, max_length=100)
    assert encoded.sources.to_list()[0][:-1] == tokenizer.tokenize(["a cat"]).to_list()[0]
    assert encoded.targets.row_lengths().numpy().tolist() == [len("▁die▁Katze") + 1]


@pytest.mark.parametrize("pairs", [Pairs([], []), Pairs([""], ["a"]), Pairs(["a", " "], ["", ""])])
def test_nothing_is_left(tokenizer: Tokenizer, pairs: Pairs) -> None:
    encoded = encode(pairs, tokenizer, tokenizer, max_length=100)
    assert (len(encoded), encoded.dropped_empty, encoded.dropped_long) == (0, len(pairs.sources), 0)


def test_odd_characters_make_no_new_sentence(tokenizer: Tokenizer) -> None:
    odd = ["a\u2028cat", "a\rcat", "a\tcat", "\ufeffa cat", "a\x00cat", "a\u0085cat", "🐈 \U0010ffff"]
    encoded = encode(Pairs(odd, odd), tokenizer, tokenizer, max_length=100)
    assert (len(encoded), encoded.dropped_empty) == (len(odd), 0)
