import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from tf_transformer.config import DataConfig, TokenizerConfig
from tf_transformer.data import Batches, TokenPairs, encode, read
from tf_transformer.data.batches import NO_PAIR, plan
from tf_transformer.tokenizers import END, PAD, START, Tokenizer, train_tokenizer

lengths = st.lists(st.tuples(st.integers(1, 40), st.integers(1, 40)), max_size=200)


@settings(max_examples=200, deadline=None)
@given(lengths, st.integers(40, 300), st.sampled_from([1, 2, 3]), st.none() | st.integers(0, 99))
def test_every_pair_is_in_exactly_one_batch_of_bounded_size(lengths, batch_tokens, replicas, seed):
    sources, targets = (np.array([pair[i] for pair in lengths], int) for i in (0, 1))
    rng = None if seed is None else np.random.default_rng(seed)
    batches = plan(sources, targets, batch_tokens, multiple_of=replicas, rng=rng)
    rows = np.concatenate(batches) if batches else np.array([], int)
    assert sorted(rows[rows != NO_PAIR]) == list(range(len(lengths)))
    for batch in batches:
        pairs = batch[batch != NO_PAIR]
        assert len(batch) % replicas == 0
        assert len(pairs) * max(sources[pairs].max(), targets[pairs].max()) <= batch_tokens


@settings(max_examples=50, deadline=None)
@given(lengths, st.integers(40, 300))
def test_the_batches_do_not_depend_on_the_number_of_replicas(lengths, batch_tokens):
    sources, targets = (np.array([pair[i] for pair in lengths], int) for i in (0, 1))
    plans = [plan(sources, targets, batch_tokens, multiple_of=n, rng=np.random.default_rng(3)) for n in (1, 2, 3)]
    one, *others = [[batch[batch != NO_PAIR].tolist() for batch in batches] for batches in plans]
    assert others == [one, one]


def pairs_of(n, seed=0):
    rng = np.random.default_rng(seed)
    sides = [[[*rng.integers(4, 97, rng.integers(1, 23)), END] for _ in range(n)] for _ in "st"]
    ragged = (tf.ragged.constant(side, dtype=tf.int32) for side in sides)
    return TokenPairs(*ragged, 0, 0, 0, keep=np.ones(len(sides[0]), bool))


def rows_of(batches):
    """The pairs that the dataset gives, as tuples, in order."""
    rows = []
    for (source, target), labels, weight in batches.dataset():
        for s, t, y, w in zip(*(x.numpy() for x in (source, target, labels, weight)), strict=True):
            if w:
                rows.append((tuple(s[s != PAD]), tuple(t[: (y != PAD).sum()]), tuple(y[y != PAD])))
    return rows


@pytest.mark.parametrize("replicas", [1, 2, 3])
def test_every_pair_reaches_the_model_once_an_epoch(replicas):
    pairs = pairs_of(101)
    batches = Batches(pairs, 97, multiple_of=replicas, seed=7)
    expected = sorted(
        (tuple(s), (START, *t[:-1]), tuple(t))
        for s, t in zip(pairs.sources.to_list(), pairs.targets.to_list(), strict=True)
    )
    orders = []
    for epoch in (0, 1):
        batches.start_epoch(epoch)
        rows = rows_of(batches)
        assert sorted(rows) == expected
        orders.append(rows)
    assert orders[0] != orders[1]


def test_the_order_is_a_function_of_seed_and_epoch():
    pairs = pairs_of(101)
    one, two = Batches(pairs, 97, seed=7), Batches(pairs, 97, seed=7)
    for epoch in (3, 5):
        one.start_epoch(epoch)
    two.start_epoch(5)
    assert rows_of(one) == rows_of(two)
    other = Batches(pairs, 97, seed=8)
    other.start_epoch(5)
    assert rows_of(one) != rows_of(other)


def test_an_epoch_may_be_entered_in_its_middle():
    batches = Batches(pairs_of(101), 97, seed=7)
    batches.start_epoch(2)
    whole = list(batches.rows)
    batches.start_epoch(2, skip=3)
    assert batches.whole == len(whole)
    assert [r.tolist() for r in batches.rows] == [r.tolist() for r in whole[3:]]
    assert len(list(batches.dataset())) == len(whole) - 3


@pytest.mark.parametrize("replicas", [1, 3])
def test_weights_make_a_sum_the_mean_over_tokens(replicas):
    batches = Batches(pairs_of(101), 97, multiple_of=replicas, seed=7)
    for i, ((source, _), labels, weight) in enumerate(batches.dataset()):
        tokens = (labels.numpy() != PAD).sum(axis=1)
        assert (weight.numpy() * tokens).sum() == pytest.approx(1)
        assert batches.target_tokens(i) == tokens.sum()
        assert ((source.numpy() != PAD).any(axis=1) == (weight.numpy() > 0)).all()
        assert (source.numpy() != PAD).any(axis=0).all()  # no wider than its longest row
        assert (labels.numpy() != PAD).any(axis=0).all()


def test_a_pair_longer_than_a_batch_is_refused():
    with pytest.raises(ValueError, match=r"batch_tokens=10, 11 tokens"):
        plan(np.array([11]), np.array([2]), 10)


def test_real_text_reaches_the_model_once_with_little_padding(multi30k):
    data = DataConfig(corpus=str(multi30k / "tok"), source="en", target="de")
    pairs = read(data, "train")
    tokenizer = Tokenizer(train_tokenizer([*pairs.sources, *pairs.targets], TokenizerConfig(vocab_size=4000)))
    encoded = encode(pairs, tokenizer, tokenizer, max_length=128)
    assert len(encoded) == 29_000
    batches = Batches(encoded, 4096, seed=0)
    seen = np.concatenate(batches.rows)
    assert sorted(seen) == list(range(29_000))
    assert batches.padding < 0.12
    tokens = sum(batches.target_tokens(i) for i in range(batches.whole))
    assert tokens == int(encoded.targets.row_lengths().numpy().sum())
