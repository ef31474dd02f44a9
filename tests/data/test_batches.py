import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tf_transformer.config import DataConfig, TokenizerConfig
from tf_transformer.data import NO_PAIR, Batches, TokenPairs, encode, read, token_pairs, windows
from tf_transformer.data.plan import plan
from tf_transformer.tokenizers import END, PAD, START, Tokenizer, train_tokenizer

lengths = st.lists(st.tuples(st.integers(1, 40), st.integers(1, 40)), max_size=200)


@settings(max_examples=200)
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


@settings(max_examples=50)
@given(lengths, st.integers(40, 300))
def test_the_batches_do_not_depend_on_the_number_of_replicas(lengths, batch_tokens):
    sources, targets = (np.array([pair[i] for pair in lengths], int) for i in (0, 1))
    plans = [plan(sources, targets, batch_tokens, multiple_of=n, rng=np.random.default_rng(3)) for n in (1, 2, 3)]
    one, *others = [[batch[batch != NO_PAIR].tolist() for batch in batches] for batches in plans]
    assert others == [one, one]


def test_shuffled_batches_are_in_no_order_of_length_and_share_other_pairs():
    """Of four lengths, each with the same number of pairs: so all plans have batches of the same widths."""
    lengths = np.repeat([5, 11, 17, 23], 41)
    in_order, *shuffled = (
        plan(lengths, lengths, 97, rng=seed and np.random.default_rng(seed)) for seed in (None, 3, 5)
    )
    widths = [[lengths[batch].max() for batch in batches] for batches in (in_order, *shuffled)]
    assert widths[0] == sorted(widths[0]) == sorted(widths[1]) == sorted(widths[2])
    assert widths[1] != widths[0]
    assert widths[2] != widths[1]
    together = [{frozenset(batch.tolist()) for batch in batches} for batches in shuffled]
    assert not together[0] & together[1]


def test_source_lengths_change_little_from_pair_to_pair_even_between_bands():
    """So that a batch which begins in one band of target lengths and ends in the next is narrow too."""
    sources, targets = np.random.default_rng(7).integers(1, 41, (2, 2003))
    order = np.concatenate(plan(sources, targets, 397, mixed=1))
    assert np.abs(np.diff(sources[order])).max() < 13


def pairs_of(n, seed=0, **facts):
    rng = np.random.default_rng(seed)
    sides = [[[*rng.integers(4, 97, rng.integers(1, 23)), END] for _ in range(n)] for _ in "st"]
    lengths = np.array([list(map(len, side)) for side in sides], np.uint16).T
    ids = np.concatenate([row for pair in zip(*sides, strict=True) for row in pair]).astype(np.uint16)
    return TokenPairs.of(ids, lengths, **facts)


def rows_of(batches):
    """The pairs that the dataset gives, as tuples, in order."""
    rows = []
    for (source, target), labels, weight in batches.dataset():
        for s, t, y, w in zip(*(x.numpy() for x in (source, target, labels, weight)), strict=True):
            if w:
                rows.append((tuple(s[s != PAD]), tuple(t[: (y != PAD).sum()]), tuple(y[y != PAD])))
    return rows


def rows_by_batch(batches):
    """The pairs of each batch that the dataset gives, as tuples."""
    found = []
    for (source, target), labels, weight in batches.dataset():
        rows = zip(*(x.numpy() for x in (source, target, labels, weight)), strict=True)
        found.append([(tuple(s[s != PAD]), tuple(y[y != PAD]), w) for s, _, y, w in rows if w])
    return found


@pytest.mark.parametrize("replicas", [1, 2, 3])
def test_every_pair_reaches_the_model_once_an_epoch(replicas):
    pairs = pairs_of(101)
    batches = Batches(pairs, 97, multiple_of=replicas, seed=7)
    expected = sorted((tuple(s), (START, *t[:-1]), tuple(t)) for s, t in zip(*pairs.sequences(), strict=True))
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


@pytest.fixture(params=[2**20, 29])
def window(request, monkeypatch):
    """The most pairs of a window; blocks are small."""
    monkeypatch.setattr(windows, "WINDOW", request.param)
    monkeypatch.setattr(token_pairs, "BLOCK", 7)
    return request.param


@pytest.mark.long_but_first
def test_an_epoch_may_be_entered_in_its_middle(window):
    batches, other = (Batches(pairs_of(101), 97, seed=7) for _ in "ab")
    batches.start_epoch(2)
    whole = rows_by_batch(batches)
    for i in range(len(whole)):
        batches.consumed = i + 1
        assert batches.is_last(i) == (i + 1 == len(whole))
        other.start_epoch(*batches.place)
        expected = whole[i + 1 :]
        if i + 1 == len(whole):
            assert batches.place == (3, 0, 0)
            batches.start_epoch(3)
            expected = rows_by_batch(batches)
        assert rows_by_batch(other) == expected
        batches.consumed, other.consumed = i + 2, 1
        assert i + 2 > len(whole) or other.place == batches.place
        assert [other.target_tokens(j) for j in range(len(expected))] == [
            sum(len(target) for _, target, _ in rows) for rows in expected
        ]


def test_windows_have_every_pair_once_an_epoch(window):
    pairs = pairs_of(101)
    batches = Batches(pairs, 97, multiple_of=3, seed=7)
    expected = sorted((tuple(source), tuple(target)) for source, target in zip(*pairs.sequences(), strict=True))
    orders = []
    for epoch in (0, 1, 2):
        batches.start_epoch(epoch)
        rows = rows_of(batches)
        assert sorted((source, labels) for source, _, labels in rows) == expected
        orders.append(tuple(rows))
    assert len(set(orders)) == 3


@pytest.mark.long_but_first
@pytest.mark.parametrize("parts", [(1, 2), (2, 1), (3, 2)])
@pytest.mark.parametrize("by_place", [False, True])
@pytest.mark.parametrize("is_padded", [False, True])
def test_parts_of_batches_are_the_whole(window, parts, by_place, is_padded):
    """`parts` machines of so many replicas: each replica has its own rows, and their weights are those of the whole."""
    machines, replicas = parts
    multiple_of = machines * replicas if is_padded else 1
    batches = Batches(pairs_of(101), 97, multiple_of=multiple_of, seed=7)
    datasets = [list(batches.dataset(i, machines, replicas, by_place=by_place)) for i in range(machines)]
    for number, whole in enumerate(batches.dataset(by_place=by_place)):
        pieces = [dataset[number * replicas + i] for dataset in datasets for i in range(replicas)]
        for joined, expected in zip(zip(*map(flat, pieces), strict=True), flat(whole), strict=True):
            rows = np.concatenate(joined)
            assert len(rows) == max(len(expected), machines * replicas)  # each has at least one, of padding
            np.testing.assert_array_equal(rows[: len(expected)], expected)


def flat(batch):
    (source, target), labels, weight = batch
    return [tensor.numpy() for tensor in (source, target, labels, weight)]


def test_corpora_are_mixed_in_every_window(monkeypatch):
    """Blocks of each are spaced evenly: every window has its share, within a block or two."""
    monkeypatch.setattr(windows, "WINDOW", 100)
    sizes, corpora = np.full(90, 10), np.repeat([0, 1], [60, 30])
    pairs = TokenPairs(sizes, corpora)
    found = windows.windows_of(pairs, 5, 0)
    assert sorted(np.concatenate(found)) == list(range(90))
    assert len(found) == 9
    for blocks in found:
        assert len(blocks) == 10
        assert abs((corpora[blocks] == 1).sum() - 10 / 3) < 2
    assert [b.tolist() for b in found] == [b.tolist() for b in windows.windows_of(pairs, 5, 0)]
    assert [b.tolist() for b in found] != [b.tolist() for b in windows.windows_of(pairs, 5, 1)]


@pytest.mark.parametrize("weight", [0.5, 1 / 3, 2.5])
def test_an_epoch_sees_a_pair_as_often_as_its_weight_says(weight):
    """Give or take one, and so do the epochs that make a whole number, together."""
    batches = Batches(pairs_of(102), 97, seed=7, weights=[weight])
    total = np.zeros(102, int)
    for epoch in range(round(1 / (weight % 1))):
        batches.start_epoch(epoch)
        seen = np.bincount(np.concatenate(list(batches.rows())), minlength=102)
        assert set(seen) == {int(weight), int(weight) + 1}
        assert seen.sum() == pytest.approx(102 * weight, abs=1)
        total += seen
    assert len(set(total)) == 1


@pytest.mark.parametrize("has_languages", [False, True])
@pytest.mark.parametrize("replicas", [1, 3])
def test_weights_make_a_sum_the_mean_over_tokens(replicas, has_languages):
    """The token of the language, which comes first, is given and not learned."""
    batches = Batches(pairs_of(101, has_languages=has_languages), 97, multiple_of=replicas, seed=7)
    for i, ((source, _), labels, weight) in enumerate(batches.dataset()):
        tokens = (labels.numpy() != PAD).sum(axis=1)
        assert (weight.numpy() * tokens).sum() == pytest.approx(1)
        assert batches.target_tokens(i) == tokens.sum()
        assert ((source.numpy() != PAD).any(axis=1) == (weight.numpy() > 0)).all()
        assert (source.numpy() != PAD).any(axis=0).all()  # no wider than its longest row
        assert (labels.numpy()[:, int(has_languages) :] != PAD).any(axis=0).all()
        assert not has_languages or (labels.numpy()[:, 0] == PAD).all()


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
    seen = np.concatenate(list(batches.rows()))
    assert sorted(seen) == list(range(29_000))
    assert batches.padding < 0.12
    tokens = sum(batches.target_tokens(i) for i in range(batches.length))
    assert tokens == sum(map(len, encoded.sequences()[1]))
