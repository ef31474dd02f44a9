"""Tests of the way from pairs of sentences to pairs of token sequences."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from tf_transformer.config import Config, DataConfig, TokenizerConfig
from tf_transformer.data import Batches, Dropout, Pairs, TokenPairs, encode
from tf_transformer.data.encoding import draw
from tf_transformer.data.prepared import Prepared
from tf_transformer.data.preparing import plan_of, prepare
from tf_transformer.errors import InputError
from tf_transformer.tokenizers import END, PAD, Tokenizer, train_tokenizer

SOURCES = ["a cat", "the dog sleeps", "", "b", "   ", "the cat and the dog and the cat", "a", "the cat sleeps"]
TARGETS = ["eine Katze", "der Hund schläft", "c", " \t\u3000", "", "die Katze", "die Katze und der Hund", "schläft"]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer(train_tokenizer(SOURCES + TARGETS, TokenizerConfig(vocab_size=300)))


def texts(tokenizer: Tokenizer, encoded: TokenPairs) -> list[tuple[str, ...]]:
    sides = [tokenizer.detokenize(tf.ragged.constant(side)).numpy().tolist() for side in encoded.sequences()]
    return [tuple(text.decode() for text in pair) for pair in zip(*sides, strict=True)]


def test_pairs_keep_their_text_and_order_and_those_with_an_empty_side_are_counted(tokenizer: Tokenizer) -> None:
    encoded = encode(Pairs(SOURCES, TARGETS), tokenizer, tokenizer, max_length=100)
    assert texts(tokenizer, encoded) == [(SOURCES[i], TARGETS[i]) for i in (0, 1, 5, 6, 7)]
    assert (len(encoded), encoded.dropped) == (5, {"empty": 3, "long": 0, "ratio": 0})


def test_the_last_token_and_only_that_is_the_end(tokenizer: Tokenizer) -> None:
    encoded = encode(Pairs(SOURCES, TARGETS), tokenizer, tokenizer, max_length=100)
    for side in encoded.sequences():
        for ids in side:
            assert ids.index(END) == len(ids) - 1 > 0


def test_a_pair_is_kept_whole_or_not_at_all(tokenizer: Tokenizer) -> None:
    whole = encode(Pairs(SOURCES, TARGETS), tokenizer, tokenizer, max_length=100)
    pairs = list(zip(*whole.sequences(), strict=True))
    lengths = [max(len(source), len(target)) for source, target in pairs]
    for limit in range(2, max(lengths) + 1):
        encoded = encode(Pairs(SOURCES, TARGETS), tokenizer, tokenizer, max_length=limit)
        kept = list(zip(*encoded.sequences(), strict=True))
        assert kept == [pair for pair, length in zip(pairs, lengths, strict=True) if length <= limit]
        assert encoded.dropped == {"empty": 3, "long": len(pairs) - len(kept), "ratio": 0}


@pytest.mark.parametrize("chunk", [1, 3, len(SOURCES)])
def test_chunks_do_not_show(tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch, chunk: int) -> None:
    whole = encode(Pairs(SOURCES, TARGETS), tokenizer, tokenizer, max_length=100)
    # The package has a function of the module's name, which hides the module.
    monkeypatch.setattr(sys.modules["tf_transformer.data.encoding"], "CHUNK", chunk)
    encoded = encode(Pairs(SOURCES, TARGETS), tokenizer, tokenizer, max_length=100)
    assert encoded.sequences() == whole.sequences()


def test_each_side_has_its_own_tokenizer(tokenizer: Tokenizer) -> None:
    characters = Tokenizer(train_tokenizer(TARGETS, TokenizerConfig(model_type="char", byte_fallback=False)))
    encoded = encode(Pairs(["a cat"], ["die Katze"]), tokenizer, characters, max_length=100)
    (source,), (target,) = encoded.sequences()
    assert source[:-1] == tokenizer.tokenize(["a cat"]).to_list()[0]
    assert len(target) == len("▁die▁Katze") + 1


@pytest.mark.parametrize("pairs", [Pairs([], []), Pairs([""], ["a"]), Pairs(["a", " "], ["", ""])])
def test_nothing_is_left(tokenizer: Tokenizer, pairs: Pairs) -> None:
    encoded = encode(pairs, tokenizer, tokenizer, max_length=100)
    assert (len(encoded), encoded.dropped) == (0, {"empty": len(pairs.sources), "long": 0, "ratio": 0})


@pytest.mark.long
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
            tokens = sum(int(kept[-1].lengths(i)[:, 1].sum(dtype=int)) for i in range(len(kept[-1].sizes)))
            found.append((resident() - before, tokens))
        (small, few), (large, many) = found
        print((large - small) / (many - few))
    """
    environment = os.environ | {"TF_ENABLE_ONEDNN_OPTS": "1"}  # as in training; its allocator kept most
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    assert float(done.stdout) < 12


def test_odd_characters_make_no_new_sentence(tokenizer: Tokenizer) -> None:
    odd = ["a\u2028cat", "a\rcat", "a\tcat", "\ufeffa cat", "a\x00cat", "a\u0085cat", "🐈 \U0010ffff"]
    encoded = encode(Pairs(odd, odd), tokenizer, tokenizer, max_length=100)
    assert (len(encoded), encoded.dropped["empty"]) == (len(odd), 0)


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    """A corpus of 500 pairs that keeps its text."""
    data = DataConfig(corpus="toy", train_split="val", bpe_dropout=0.1)
    plan = plan_of(Config(data=data, tokenizer=TokenizerConfig(vocab_size=500)))
    made = prepare(plan, tmp_path_factory.mktemp("toy") / "prepared")
    assert made is not None
    return made


def drawn(toy: Prepared, dropout: float, seed: int, max_length: int = 128) -> TokenPairs:
    """The first block of a corpus, cut by chance."""
    pairs = toy.pairs()
    settings = {"dropout": dropout, "seed": (seed,), "max_length": max_length, "has_languages": False}
    return TokenPairs.of(*draw(pairs.text(0), toy.vocabularies, pairs.ids(0), pairs.lengths(0), **settings))


def test_dropout_cuts_the_same_text_otherwise_by_another_seed(toy: Prepared) -> None:
    decode = toy.vocabularies[0].processor.decode
    plain, found = toy.pairs().sequences(), [drawn(toy, 0.3, seed).sequences() for seed in range(5)]
    assert found[3] == drawn(toy, 0.3, 3).sequences()
    for side in range(2):
        for sequences in found:
            assert [decode(row) for row in sequences[side]] == list(toy.pairs().text(0)[side])
            assert {row[-1] for row in sequences[side]} == {END}
            assert sum(map(len, sequences[side])) > sum(map(len, plain[side]))
        assert sum(found[0][side][i] != found[1][side][i] for i in range(500)) > 400


def test_without_most_merges_what_is_left_are_characters(toy: Prepared) -> None:
    vocabulary = toy.vocabularies[0]
    pieces = [vocabulary.pieces[i] for row in drawn(toy, 0.999, 1).sequences()[0] for i in row[:-1]]
    assert sum(len(piece) == 1 for piece in pieces) > 0.9 * len(pieces)


def test_a_side_that_dropout_makes_too_long_is_cut_without(toy: Prepared) -> None:
    plain = toy.pairs().sequences()[1]
    longest = max(map(len, plain))
    found = drawn(toy, 0.5, 1, max_length=longest).sequences()[1]
    assert max(map(len, found)) <= longest
    assert sum(a != b for a, b in zip(found, plain, strict=True)) > 10
    assert any(a == b for a, b in zip(found, plain, strict=True))


def test_every_epoch_is_drawn_anew_and_has_every_pair(toy: Prepared) -> None:
    one, two = (Batches(toy.pairs(), 256, seed=3, dropout=Dropout(toy.vocabularies, 0.3, 128)) for _ in "ab")
    decode = toy.vocabularies[0].processor.decode
    epochs = []
    for epoch in range(2):
        one.start_epoch(epoch)
        said, rows, tokens = [], [], 0
        for (source, _), labels, weight in one.dataset():
            assert max(source.shape[1], labels.shape[1]) * len(weight) <= 256
            assert (weight.numpy() * np.count_nonzero(labels, axis=1)).sum() == pytest.approx(1)
            rows += [tuple(row[row != PAD].tolist()) for row in labels.numpy()]
            tokens += np.count_nonzero(labels)
        said = [decode(list(row)) for row in rows]
        assert sorted(said) == sorted(toy.pairs().text(0).targets)
        assert tokens == sum(map(one.target_tokens, range(one.length)))
        two.start_epoch(epoch)
        assert [x.tolist() for _, y, _ in two.dataset() for x in y.numpy()] == [
            x.tolist() for _, y, _ in one.dataset() for x in y.numpy()
        ]
        epochs.append(set(rows))
    assert len(epochs[0] & epochs[1]) < 250


@pytest.mark.parametrize("model_type", ["unigram", "word"])
def test_a_tokenizer_without_merges_has_none_to_leave_out(tmp_path: Path, model_type: str) -> None:
    """SentencePiece would take the dropout for the exponent of a unigram model's probabilities."""
    path = tmp_path / "other.model"
    path.write_bytes(train_tokenizer(SOURCES + TARGETS, TokenizerConfig(vocab_size=290, model_type=model_type)))
    data = DataConfig(corpus="toy", bpe_dropout=0.1)
    with pytest.raises(InputError, match=r"data\.bpe_dropout needs a BPE"):
        plan_of(Config(data=data, tokenizer=TokenizerConfig(file=str(path))))
