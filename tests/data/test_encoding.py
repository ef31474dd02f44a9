"""Tests of the way from pairs of sentences to pairs of token sequences."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tf_transformer.config import DataConfig, TokenizerConfig
from tf_transformer.data import Batches, Pairs, TokenPairs, cut_by_chance, encode, read
from tf_transformer.errors import InputError
from tf_transformer.tokenizers import END, PAD, Tokenizer, train_tokenizer

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
    monkeypatch.setattr(sys.modules["tf_transformer.data.encoding"], "CHUNK", chunk)
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


def test_memory_grows_by_the_tokens_and_little_more(tmp_path: Path) -> None:
    """In a process of its own, the growth between two sizes: what is needed once does not count."""
    code = """if True:
        import random, sys
        from tf_transformer.config import TokenizerConfig
        from tf_transformer.data import Pairs, encode
        from tf_transformer.tokenizers import Tokenizer, train_tokenizer

        def resident():
            return int(open("/proc/self/statm").read().split()[1]) * 4096

        words = [f"w{i}" for i in range(500)]
        def text(count):
            return [" ".join(random.Random(i).choices(words, k=20)) for i in range(count)]

        tokenizer = Tokenizer(train_tokenizer(text(1000), TokenizerConfig(vocab_size=900)))
        found, kept = [], []
        for count in (20_000, 120_000):
            pairs = Pairs(text(count), text(count))
            before = resident()
            kept.append(encode(pairs, tokenizer, tokenizer, 128))
            found.append((resident() - before, len(kept[-1].targets.flat_values)))
        (small, few), (large, many) = found
        print((large - small) / (many - few))
    """
    environment = os.environ | {"TF_ENABLE_ONEDNN_OPTS": "1"}  # as in training; its allocator kept most
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    assert float(done.stdout) < 24


def test_odd_characters_make_no_new_sentence(tokenizer: Tokenizer) -> None:
    odd = ["a\u2028cat", "a\rcat", "a\tcat", "\ufeffa cat", "a\x00cat", "a\u0085cat", "🐈 \U0010ffff"]
    encoded = encode(Pairs(odd, odd), tokenizer, tokenizer, max_length=100)
    assert (len(encoded), encoded.dropped_empty) == (len(odd), 0)


@pytest.fixture(scope="module")
def toy() -> Pairs:
    return read(DataConfig(corpus="toy"), "val")


@pytest.fixture(scope="module")
def toy_tokenizer(toy: Pairs) -> Tokenizer:
    return Tokenizer(train_tokenizer([*toy.sources, *toy.targets], TokenizerConfig(vocab_size=500)))


def drawing(pairs: Pairs, tokenizer: Tokenizer, dropout: float, max_length: int = 128):
    encoded = encode(pairs, tokenizer, tokenizer, max_length)
    return encoded, cut_by_chance(pairs, encoded, tokenizer, tokenizer, dropout=dropout, max_length=max_length)


def test_dropout_cuts_the_same_text_otherwise_each_time(toy: Pairs, toy_tokenizer: Tokenizer) -> None:
    few = Pairs(toy.sources[:11], toy.targets[:11])
    encoded, draw = drawing(few, toy_tokenizer, 0.3)
    drawn = [draw() for _ in range(20)]
    for i in range(2):
        for pairs in drawn:
            assert toy_tokenizer.detokenize(pairs[i]).numpy().tolist() == [text.encode() for text in few[i]]
            assert {row[-1] for row in pairs[i].to_list()} == {END}
        assert len({str(pairs[i].to_list()) for pairs in drawn}) > 10
        assert sum(int(pairs[i].flat_values.shape[0]) for pairs in drawn) > 20 * int(encoded[i].flat_values.shape[0])


def test_without_most_merges_what_is_left_are_characters(toy: Pairs, toy_tokenizer: Tokenizer) -> None:
    _, draw = drawing(Pairs(toy.sources[:2], toy.targets[:2]), toy_tokenizer, 0.999)
    pieces = toy_tokenizer.pieces_of(draw().sources.flat_values).numpy()
    assert sum(len(piece.decode()) == 1 for piece in pieces) > 0.9 * len(pieces)


def test_a_side_that_dropout_makes_too_long_is_cut_without(toy: Pairs, toy_tokenizer: Tokenizer) -> None:
    longest = int(encode(toy, toy_tokenizer, toy_tokenizer, 128).targets.row_lengths().numpy().max())
    encoded, draw = drawing(toy, toy_tokenizer, 0.5, max_length=longest)
    drawn = draw().targets
    assert int(drawn.row_lengths().numpy().max()) <= longest
    assert sum(a != b for a, b in zip(drawn.to_list(), encoded.targets.to_list(), strict=True)) > 10
    assert any(a == b for a, b in zip(drawn.to_list(), encoded.targets.to_list(), strict=True))


def test_what_was_left_out_is_not_drawn(toy_tokenizer: Tokenizer) -> None:
    encoded, draw = drawing(Pairs(SOURCES, TARGETS), toy_tokenizer, 0.3)
    assert encoded.dropped_empty == 3
    assert texts(toy_tokenizer, draw()) == texts(toy_tokenizer, encoded)


def test_every_epoch_is_drawn_anew_and_has_every_pair(toy: Pairs, toy_tokenizer: Tokenizer) -> None:
    encoded, draw = drawing(Pairs(toy.sources[:101], toy.targets[:101]), toy_tokenizer, 0.3)
    batches = Batches(encoded, 256, seed=3, draw=draw)
    epochs = []
    for epoch in range(2):
        batches.start_epoch(epoch)
        said, rows, tokens = [], [], 0
        for (source, _), labels, weight in batches.dataset():
            assert max(source.shape[1], labels.shape[1]) * len(weight) <= 256
            assert (weight.numpy() * np.count_nonzero(labels, axis=1)).sum() == pytest.approx(1)
            said += toy_tokenizer.detokenize(labels).numpy().tolist()
            rows += [tuple(row[row != PAD]) for row in labels.numpy()]
            tokens += np.count_nonzero(labels)
        assert sorted(said) == sorted(text.encode() for text in toy.targets[:101])
        assert tokens == sum(map(batches.target_tokens, range(batches.whole)))
        epochs.append(set(rows))
    assert len(epochs[0] & epochs[1]) < 50


def test_an_epoch_that_is_drawn_anew_may_be_entered_near_its_end(toy: Pairs, toy_tokenizer: Tokenizer) -> None:
    encoded, draw = drawing(Pairs(toy.sources[:101], toy.targets[:101]), toy_tokenizer, 0.3)
    batches = Batches(encoded, 256, seed=3, draw=draw)
    batches.start_epoch(0, skip=10**6)
    assert len(list(batches.dataset())) == 1


@pytest.mark.parametrize("model_type", ["unigram", "word"])
def test_a_tokenizer_without_merges_has_none_to_leave_out(toy: Pairs, model_type: str) -> None:
    """SentencePiece would take the dropout for the exponent of a unigram model's probabilities."""
    config = TokenizerConfig(vocab_size=500, model_type=model_type)
    tokenizer = Tokenizer(train_tokenizer([*toy.sources, *toy.targets], config))
    with pytest.raises(InputError, match=r"data\.bpe_dropout needs a BPE"):
        drawing(toy, tokenizer, 0.1)
    if model_type == "word":
        with pytest.raises(InputError, match="this tokenizer cannot cut by chance"):
            tokenizer.tokenize_by_chance(["a"], 0.1)
