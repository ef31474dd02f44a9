import numpy as np
import pytest
import tensorflow as tf

from tf_transformer import Transformer, Translator
from tf_transformer.config import DecodingConfig, TokenizerConfig
from tf_transformer.data import toy
from tf_transformer.errors import InputError
from tf_transformer.tokenizers import END, START, Tokenizer, train_tokenizer
from tf_transformer.translator import decoded, sentences_fit, translate_lines

PAIRS = toy.pairs("train")[:500]
SOURCES = [source for source, _ in PAIRS]
OPTIONS = [
    {},
    {"norm": "pre"},
    {"positions": "learned", "max_positions": 47},
    {"share_embeddings": "target"},
    {"share_embeddings": "all"},
]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer(train_tokenizer([side for pair in PAIRS for side in pair], TokenizerConfig(vocab_size=500)))


def translator_of(tokenizer, max_extra_length=11, **option) -> Translator:
    """A translator with sharp random weights: it babbles, but says something different to every sentence."""
    tf.keras.utils.set_random_seed(9)
    model = Transformer(
        num_layers=2,
        d_model=28,
        num_heads=7,
        dff=31,
        input_vocab_size=tokenizer.vocab_size,
        target_vocab_size=tokenizer.vocab_size,
        **option,
    )
    model.build(((None, None), (None, None)))
    for weight in model.weights:
        if weight.path.endswith(("kernel", "table")):
            weight.assign(weight.numpy() * 2)
    return Translator(model, tokenizer, tokenizer, DecodingConfig(beam_size=1, max_extra_length=max_extra_length))


@pytest.fixture(scope="module")
def translator(tokenizer) -> Translator:
    return translator_of(tokenizer)


@pytest.mark.parametrize("option", OPTIONS, ids=lambda o: "-".join(map(str, o.values())) or "paper")
def test_cached_and_uncached_decoding_agree(tokenizer, option):
    """Tokens except at near-ties, where the two best are within 1e-3; log-probabilities to 1e-4."""
    translator = translator_of(tokenizer, **option)
    texts = tf.constant(SOURCES[:29])
    found = tf.function(translator.search)(texts)
    ids, scores = found.ids.numpy()[:, 0], found.log_probabilities.numpy()[:, 0]
    near_ties = 0
    for row, source, score in zip(ids, translator.encode_source(texts).numpy(), scores, strict=True):
        written = row[row != 0]
        log_probabilities = uncached(translator, source, written)
        best_two = np.sort(log_probabilities, axis=-1)[:, -2:]
        differs = log_probabilities.argmax(-1) != written
        assert (best_two[differs, 1] - best_two[differs, 0] < 1e-3).all()
        near_ties += differs.sum()
        gained = log_probabilities[np.arange(len(written)), written].sum()
        assert gained == pytest.approx(score, abs=1e-4 * len(written))
    assert near_ties <= 2
    assert len({tuple(row) for row in ids}) > 20


def uncached(translator, source, written):
    """The log-probabilities [T, V] of every token after those before it, from a whole pass."""
    target = np.concatenate([[START], written[:-1]])
    return tf.nn.log_softmax(translator.model((source[None], target[None])))[0].numpy()


@pytest.mark.parametrize("settings", [{"length_penalty": 0.0}, {"length_penalty": 1.0}, {"temperature": 0.5}], ids=str)
def test_the_search_reports_what_a_whole_pass_gives(tokenizer, settings):
    """Beams move between rows, and sentences leave the batch; sampling is by chance. The log-probabilities stay."""
    decoding = DecodingConfig(beam_size=3, max_extra_length=7, **settings)
    translator = Translator(translator_of(tokenizer).model, tokenizer, tokenizer, decoding)
    texts = tf.constant(SOURCES[:13])
    found = tf.function(translator.search)(texts, 1 if "temperature" in settings else 3)
    for rows, totals, source in zip(
        found.ids.numpy(), found.log_probabilities.numpy(), translator.encode_source(texts).numpy(), strict=True
    ):
        assert len({tuple(row) for row in rows}) == len(rows)
        for row, total in zip(rows, totals, strict=True):
            written = row[row != 0]
            gained = uncached(translator, source, written)[np.arange(len(written)), written].sum()
            assert gained == pytest.approx(total, abs=1e-4 * len(written))
    assert (np.diff(found.scores.numpy(), axis=1) <= 0).all()


@pytest.mark.parametrize("settings", [{"beam_size": 1}, {"beam_size": 3}, {"temperature": 0.7, "seed": 5}], ids=str)
def test_other_sentences_of_the_batch_change_nothing(tokenizer, settings):
    decoding = DecodingConfig(max_extra_length=7, **settings)
    translator = Translator(translator_of(tokenizer).model, tokenizer, tokenizer, decoding)
    search = tf.function(translator.search, input_signature=[tf.TensorSpec([None], tf.string)])
    alone = [search(tf.constant([text])) for text in SOURCES[:13]]
    together = search(tf.constant([*SOURCES[:13], " ".join(SOURCES[:9])]))
    for i, hypothesis in enumerate(alone):
        written = hypothesis.ids[0, 0].numpy()
        assert together.ids[i, 0].numpy()[: len(written)].tolist() == written.tolist()
        assert float(together.scores[i, 0]) == pytest.approx(float(hypothesis.scores[0, 0]), abs=1e-4 * len(written))


def test_a_seed_reproduces_and_another_does_not(tokenizer):
    model = translator_of(tokenizer).model
    drawn = [
        Translator(model, tokenizer, tokenizer, DecodingConfig(temperature=1.0, seed=seed, max_extra_length=5))
        for seed in (3, 3, 4)
    ]
    one, same, other = (translator.translate_strings(SOURCES[:5]) for translator in drawn)
    assert one == same != other


def test_scores_of_given_translations(translator):
    """Of the ids that the tokenizer makes of them, from a whole pass; padding of longer ones changes nothing."""
    targets = [target for _, target in PAIRS[:7]]
    scored = translator.score(tf.constant(SOURCES[:7]), tf.constant(targets))
    for i, target in enumerate(targets):
        ids = np.concatenate([translator.target_tokenizer.tokenize([target])[0].numpy(), [END]])
        source = translator.encode_source(tf.constant([SOURCES[i]]))[0].numpy()
        expected = uncached(translator, source, ids)[np.arange(len(ids)), ids]
        assert scored.lengths[i] == len(ids)
        np.testing.assert_allclose(scored.token_log_probabilities[i, : len(ids)], expected, atol=1e-4)
        assert not scored.token_log_probabilities[i, len(ids) :].numpy().any()
        assert float(scored.log_probabilities[i]) == pytest.approx(expected.sum(), abs=1e-3)


def test_n_best_beyond_the_beam_is_refused(translator):
    with pytest.raises(InputError, match=r"n_best must be 1 to beam_size \(1; drawing has 1\)\. Received: 2"):
        translator.n_best_strings(SOURCES[:1], 2)


def test_strings_in_strings_out_of_any_shape(translator):
    texts = np.array(SOURCES[:6]).reshape(2, 3)
    translations = translator(texts)
    assert translations.dtype == tf.string
    assert translations.shape == (2, 3)
    scalar = translator(SOURCES[4])
    assert scalar.shape == ()
    assert scalar.numpy() == translations[1, 1].numpy()
    assert translator(tf.constant([], tf.string)).shape == (0,)


def test_an_empty_string_gives_an_empty_string(translator):
    texts = tf.constant(["", SOURCES[0], "   ", "\n"])
    translation, score = translator.translate(texts)
    assert translation.numpy()[[0, 2, 3]].tolist() == [b"", b"", b""]
    assert score.numpy()[[0, 2, 3]].tolist() == [0, 0, 0]
    assert translation[1].numpy() == translator(SOURCES[0]).numpy() != b""
    assert translator("").numpy() == b""


def test_translations_are_capped_by_the_length_of_their_own_source(translator):
    texts = tf.constant(SOURCES[:17])
    ids = translator.search(texts).ids.numpy()[:, 0]
    tokens = (translator.encode_source(texts).numpy() != 0).sum(axis=1) - 1
    written = (ids != 0).sum(axis=1)
    unfinished = ~(ids == END).any(axis=1)
    assert unfinished.any()
    assert (written[unfinished] == tokens[unfinished] + 11).all()
    assert (written <= tokens + 11).all()


def test_learned_positions_bound_source_and_translation(tokenizer):
    translator = translator_of(tokenizer, max_extra_length=100, positions="learned", max_positions=29)
    ids = translator.search(tf.constant(SOURCES[:9])).ids
    assert ids.shape[2] <= 29
    with pytest.raises(InputError, match="a sentence is too long: the model has learned 29 positions"):
        translator.translate_strings([" ".join(SOURCES[:20])])
    for sides in ((["a"], [" ".join(SOURCES[:20])]), ([" ".join(SOURCES[:20])], ["a"])):
        with pytest.raises(InputError, match="has learned 29 positions"), sentences_fit():
            translator.score(*map(tf.constant, sides))


@pytest.mark.parametrize("text", ["日本語 ☕", "a\x00b", "שלום", "👩‍👩‍👧", "\x01\x02", "x" * 300])
def test_odd_text_changes_no_other_translation(translator, text):
    translations = translator([SOURCES[0], text, SOURCES[1]]).numpy()
    assert translations[[0, 2]].tolist() == translator(SOURCES[:2]).numpy().tolist()


def test_invalid_utf8_changes_no_other_translation(translator):
    translations = translator(tf.constant([SOURCES[0].encode(), b"\xff\xfe", SOURCES[1].encode()])).numpy()
    assert translations[[0, 2]].tolist() == translator(SOURCES[:2]).numpy().tolist()


def test_lines_keep_their_order_and_number():
    batches = []

    def shout(sentences):
        batches.append(len(sentences))
        return [sentence.upper() + "!" for sentence in sentences]

    lines = [("word " * (i * 7 % 11)).strip() + f" {i}" for i in range(101)]
    assert list(translate_lines(shout, iter(lines), batch_size=8, window=32)) == [f"{line.upper()}!" for line in lines]
    assert max(batches) <= 8


def test_a_line_feed_in_a_translation_becomes_a_space():
    assert decoded(tf.constant([["a\nb", "c"]])) == [["a b", "c"]]


def test_lines_are_read_no_further_than_the_window():
    read = []

    def lines():
        for i in range(1000):
            read.append(i)
            yield str(i)

    translations = translate_lines(lambda sentences: sentences, lines(), window=16)
    assert next(translations) == "0"
    assert len(read) == 16
