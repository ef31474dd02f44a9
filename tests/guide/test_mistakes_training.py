"""Common mistakes of training, decoding and counting: each wrong form breaks a law that ours holds."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tf_transformer.data.plan import plan
from tf_transformer.decoding import BeamSearch, Rules, Sentences, greedy, length_penalty
from tf_transformer.model import MultiHeadAttention, Transformer, scaled_dot_product_attention
from tf_transformer.training import Adam, NoamSchedule, SmoothedCrossEntropy

START, END = 2, 3
RULES = Rules(START, END)


@pytest.fixture(scope="module")
def model():
    keras.utils.set_random_seed(1)
    made = Transformer(
        num_layers=2, d_model=14, num_heads=2, dff=19, input_vocab_size=11, target_vocab_size=13, dropout_rate=0.0
    )
    made.build(((None, None), (None, None)))
    return made


def random(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


# 13: the optimiser and its schedule


def test_a_schedule_that_begins_at_0_wastes_the_first_update():
    class FromZero(NoamSchedule):
        def __call__(self, step):
            step = tf.cast(step, tf.float32)
            return self.d_model**-0.5 * tf.minimum(step**-0.5, step * self.warmup_steps**-1.5)

    def first_update(schedule):
        weight = keras.Variable([0.0])
        Adam(schedule).apply([tf.constant([3.0])], [weight])
        return weight.numpy()

    assert first_update(FromZero(16, 7)) == 0
    np.testing.assert_allclose(first_update(NoamSchedule(16, 7)), -(16**-0.5) * 7**-1.5, rtol=1e-5)
    with pytest.raises(ZeroDivisionError):
        _ = 0**-0.5


def test_a_wrong_exponent_ends_the_warm_up_too_early():
    steps = np.arange(1, 9001, dtype="float32")
    wrong = 512**-0.5 * np.minimum(steps**-0.5, steps * 4000**-0.5)
    ours = np.asarray(NoamSchedule(512, 4000)(steps))
    assert steps[wrong.argmax()] == 16
    assert steps[ours.argmax()] == 4000
    assert 15 < wrong.max() / ours.max() < 17


def test_adam_with_keras_defaults_is_not_the_papers():
    gradients = random(5, 3) * np.array([[10, 3, 1, 0.3, 0.1]], "float32").T  # they shrink, as in training
    m, v, by_hand = 0, 0, np.zeros(3)
    for t, gradient in enumerate(gradients, start=1):
        m, v = 0.9 * m + 0.1 * gradient, 0.98 * v + 0.02 * gradient**2
        by_hand -= 0.1 * m / (1 - 0.9**t) / np.sqrt(v / (1 - 0.98**t))

    def updated(optimizer):
        weight = keras.Variable(np.zeros(3, "float32"))
        for gradient in gradients:
            optimizer.apply([tf.constant(gradient)], [weight])
        return weight.numpy()

    np.testing.assert_allclose(updated(Adam(0.1)), by_hand, rtol=1e-4)
    assert np.abs(updated(keras.optimizers.Adam(0.1)) - by_hand).max() > 1e-3


# 14: batching by tokens


def batch_of_unlike_lengths():
    """Labels of two and of five tokens, and logits."""
    return np.array([[4, 3, 0, 0, 0], [5, 6, 7, 8, 3]]), random(2, 5, 13)


def test_a_loss_per_sentence_depends_on_how_a_batch_is_cut():
    labels, logits = batch_of_unlike_lengths()
    losses = np.asarray(SmoothedCrossEntropy(0.1, reduction="none")(labels, logits))  # summed over each sentence
    lengths = (labels != 0).sum(axis=1)
    of_tokens = losses.sum() / lengths.sum()

    of_sentences = np.mean(losses / lengths)  # what two devices with a sentence each would average
    assert abs(of_sentences - of_tokens) > 0.01

    loss, weight = SmoothedCrossEntropy(0.1), np.full(2, 1 / lengths.sum(), "float32")
    cuts = [[slice(0, 2)], [slice(0, 1), slice(1, 2)]]
    for cut in cuts:
        total = sum(float(loss(labels[rows], logits[rows], sample_weight=weight[rows])) for rows in cut)
        np.testing.assert_allclose(total, of_tokens, rtol=1e-5)


def test_padding_in_the_mean_makes_the_loss_small():
    labels, logits = batch_of_unlike_lengths()
    more = ((0, 0), (0, 6))
    padded, longer = np.pad(labels, more), np.pad(logits, (*more, (0, 0)))

    def over_all_positions(labels, logits):
        return float(SmoothedCrossEntropy(0.1)(labels, logits)) / labels.size

    def ours(labels, logits):
        weight = np.full(2, 1 / (labels != 0).sum(), "float32")
        return float(SmoothedCrossEntropy(0.1)(labels, logits, sample_weight=weight))

    assert over_all_positions(padded, longer) < 0.6 * over_all_positions(labels, logits)
    np.testing.assert_allclose(ours(padded, longer), ours(labels, logits), rtol=1e-6)


def test_a_bound_on_real_tokens_does_not_bound_a_batch():
    lengths, most = np.array([3, 5, 2, 3, 47, 2, 5, 3, 2, 5]), 97
    assert lengths.sum() <= most  # so all of them would be one batch
    assert lengths.max() * len(lengths) > 4 * most
    batches = plan(lengths, lengths, most)
    assert all(lengths[batch].max() * len(batch) <= most for batch in batches)
    assert sorted(np.concatenate(batches)) == list(range(10))


# 15: decoding


def whole_pass(model, source, read):
    return np.asarray(model((source, read)))


def test_a_cache_that_is_not_reordered_with_the_beam_gives_other_logits(model):
    source = np.array([[5, 6, END]])
    memory = model.encode(source)
    read = np.array([[START, 7], [START, 12]])  # two hypotheses
    cache = model.empty_cache(2)
    for position in range(2):
        _, _, cache = model.decode_step(read[:, position], position, cache, memory)
    parents, new = np.array([1, 1]), np.array([5, 9])  # both continue the second
    followed = tf.nest.map_structure(lambda kept: tf.gather(kept, parents), cache)
    expected = whole_pass(model, np.repeat(source, 2, axis=0), np.column_stack([read[parents], new]))[:, -1]

    wrong, _, _ = model.decode_step(new, 2, cache, memory)
    ours, _, _ = model.decode_step(new, 2, followed, memory)
    np.testing.assert_allclose(ours, expected, atol=1e-5)
    assert np.abs(wrong - expected)[0].max() > 0.01


def test_steps_that_do_not_count_their_position_give_other_logits(model):
    source, read = np.array([[5, 6, END]]), np.array([[START, 7, 12]])

    def stepwise(positions):
        memory, cache = model.encode(source), model.empty_cache(1)
        for token, position in zip(read[0], positions, strict=True):
            logits, _, cache = model.decode_step(token[None], position, cache, memory)
        return np.asarray(logits)

    expected = whole_pass(model, source, read)[:, -1]
    np.testing.assert_allclose(stepwise([0, 1, 2]), expected, atol=1e-5)
    assert np.abs(stepwise([0, 0, 0]) - expected).max() > 0.01


def step_of(probabilities):
    """A step function by a table: the probabilities of the next token, by the last."""
    table = np.full((11, 11), 1e-9)
    for last, following in probabilities.items():
        for token, probability in following.items():
            table[last, token] = probability
    logs = tf.constant(np.log(table), tf.float32)
    return lambda ids, position, cache, context: (tf.gather(logs, ids), (), cache)


# "4 </s>" has 0.30, "5 6 7 8 </s>" has 0.28.
SHORT_OR_LONG = {
    START: {4: 0.5, 5: 0.5},
    4: {END: 0.6, 9: 0.4},
    5: {6: 0.8, 9: 0.2},
    6: {7: 1.0},
    7: {8: 1.0},
    8: {END: 0.7, 9: 0.3},
    9: {9: 1.0},
}
LONG, SHORT = [5, 6, 7, 8, END], [4, END]


def best(**settings):
    sentences = Sentences(tf.constant([9]))
    found = BeamSearch(step_of(SHORT_OR_LONG), RULES, **{"beam_size": 3, **settings})((), sentences)
    return np.trim_zeros(found.ids[0, 0].numpy()).tolist()


def test_without_a_length_penalty_the_shorter_hypothesis_wins():
    logs, lengths = np.log([0.30, 0.28]), np.array([2, 5])
    assert best(alpha=0.0) == SHORT
    assert best(alpha=0.6) == LONG
    penalty = length_penalty(lengths, 0.6).numpy()
    assert np.argmax(logs / penalty) == 1
    assert np.argmax(logs * penalty) == 0  # multiplied, it prefers the short one even more


def written_out(probabilities, width, is_enough):
    """A beam search in plain Python, which stops by a rule of its own."""
    alive, finished = [([], 0.0)], []
    for _ in range(9):
        following = [
            ([*ids, token], score + np.log(probability))
            for ids, score in alive
            for token, probability in probabilities[ids[-1] if ids else START].items()
        ]
        kept = sorted(following, key=lambda hypothesis: -hypothesis[1])[:width]
        alive = [hypothesis for hypothesis in kept if hypothesis[0][-1] != END]
        finished += [hypothesis for hypothesis in kept if hypothesis[0][-1] == END]
        if not alive or is_enough(finished):
            break
    return max(finished, key=lambda hypothesis: hypothesis[1] / float(length_penalty(len(hypothesis[0]), 0.6)))[0]


def test_stopping_at_the_first_finished_hypothesis_misses_a_better_one():
    assert written_out(SHORT_OR_LONG, 3, is_enough=bool) == SHORT
    assert written_out(SHORT_OR_LONG, 3, is_enough=lambda finished: False) == LONG
    assert best(alpha=0.6) == LONG


# 16: training a translator


def test_an_unshifted_target_shows_the_decoder_its_answer(model):
    source, labels = np.array([[5, 6, 7, END]]), np.array([[7, 8, 9, END]])
    others = np.array([[7, 8, 12, END]])  # another token at place 2
    shifted = [np.pad(ids[:, :-1], ((0, 0), (1, 0)), constant_values=START) for ids in (labels, others)]

    def change_at(place, reads):
        one, other = (whole_pass(model, source, read)[0, place] for read in reads)
        return np.abs(one - other).max()

    assert change_at(2, [labels, others]) > 0.01  # the logits of place 2 see its label
    assert change_at(2, shifted) == 0
    assert change_at(3, shifted) > 0.01  # the next place may see it


def test_without_an_end_token_a_search_runs_to_its_limit():
    ends = {START: {4: 1.0}, 4: {5: 1.0}, 5: {END: 1.0}}
    never = ends | {5: {4: 1.0}}
    for probabilities, length in ((ends, 3), (never, 17)):
        found = greedy(step_of(probabilities), (), Sentences(tf.constant([17])), RULES)
        assert np.count_nonzero(found.ids) == length


def test_a_second_argument_of_the_model_is_refused(model):
    source, target = np.array([[5, 6, END]]), np.array([[START, 7]])

    class Careless(keras.Model):
        def call(self, inputs, training=None):
            return inputs

    with pytest.raises(TypeError, match="training"):  # which says nothing of what was wrong
        Careless()(source, target)
    with pytest.raises(ValueError, match="pair"):
        model(source, target)
    assert model((source, target)).shape == (1, 2, 13)


# 17: looking inside


def test_different_attention_may_give_the_same_output():
    value = random(7, 3)
    one = np.full(7, 1 / 7)
    # A change that neither the sum of the weights nor the output sees; there are 7 - 3 - 1 directions of them.
    unseen = np.linalg.svd(np.column_stack([value, np.ones(7)]).T)[2][-1]
    other = one + unseen * 0.9 * one[0] / np.abs(unseen).max()

    def attend(weights):
        query = (np.log(weights) * 7**0.5).astype("float32")[None]
        output, seen = scaled_dot_product_attention(query, np.eye(7, dtype="float32"), value)
        np.testing.assert_allclose(seen[0], weights, atol=1e-5)
        return np.asarray(output)

    assert np.abs(one - other).max() > 0.1
    np.testing.assert_allclose(attend(one), attend(other), atol=1e-5)
    somewhere = np.array([0.4, *[0.1] * 6])
    assert np.abs(attend(somewhere) - attend(one)).max() > 0.01  # it is not that all weights give the same


def test_rows_of_attention_add_up_to_1_and_columns_do_not(model):
    weights = model.attention((np.array([[5, 6, 7, END]]), np.array([[START, 7, 12]])))
    for layer in (*weights.encoder, *weights.decoder, *weights.cross):
        np.testing.assert_allclose(np.sum(layer, axis=-1), 1, atol=1e-5)
        assert np.abs(np.sum(layer, axis=-2) - 1).max() > 0.01


def test_a_row_of_attention_belongs_to_the_token_that_is_written_next(model):
    source = np.array([[5, 6, 7, END]])
    one, other = (model.attention((source, np.array([[START, 7, token, 9]]))) for token in (8, 12))
    change = np.abs(np.subtract(one.cross, other.cross)).max(axis=(0, 1, 2, 4))  # by row
    # What is read at place 2 is the second token that was written. It changes row 2, for the third, and not row 1.
    assert change[1] == 0
    assert change[2] > 1e-3


# 18: tables 1 and 3


def test_a_shared_table_is_counted_once():
    sizes = dict(num_layers=1, d_model=14, num_heads=2, dff=19, input_vocab_size=101, target_vocab_size=101)

    def count(share):
        made = Transformer(**sizes, share_embeddings=share)
        made.build(((None, None), (None, None)))
        return made.count_params()

    assert count("none") - count("all") == 2 * 101 * 14
    assert 63_082_496 + 2 * 37_000 * 512 == 100_970_496  # what base would have


def test_the_projections_cost_more_than_what_table_1_counts():
    d, n = 62, 23
    attention = MultiHeadAttention(d_model=d, num_heads=2)
    graph = tf.function(lambda x: attention(x)[0]).get_concrete_function(tf.TensorSpec([1, n, d])).graph
    products = {"MatMul": 0, "BatchMatMulV2": 0}
    for operation in graph.get_operations():
        if operation.type in products:
            left, right = (tensor.shape for tensor in operation.inputs)
            inside = left[-1] if not operation.node_def.attr["adj_x"].b else left[-2]
            assert inside in right
            products[operation.type] += operation.outputs[0].shape.num_elements() * inside
    assert products == {"MatMul": 4 * n * d**2, "BatchMatMulV2": 2 * n**2 * d}
    assert products["MatMul"] > 5 * products["BatchMatMulV2"]


def test_heads_of_full_width_have_more_parameters_than_table_3():
    d, heads = 35, 7
    x = random(1, 3, d)
    wide, keras_own = (keras.layers.MultiHeadAttention(num_heads=heads, key_dim=width) for width in (d, d // heads))
    ours = MultiHeadAttention(d_model=d, num_heads=heads)
    for layer, inputs in ((wide, (x, x)), (keras_own, (x, x)), (ours, (x,))):
        layer(*inputs)
    assert ours.count_params() == keras_own.count_params() == 4 * (d * d + d)
    assert wide.count_params() > 6.9 * ours.count_params()
