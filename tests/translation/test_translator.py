import numpy as np
import pytest
import tensorflow as tf

from tf_transformer import Transformer, Translator
from tf_transformer.config import DecodingConfig, TokenizerConfig
from tf_transformer.data.corpora import toy
from tf_transformer.errors import InputError
from tf_transformer.text.markup import markup_spans
from tf_transformer.text.with_markup import WithMarkup
from tf_transformer.tokenizers import END, START, Tokenizer, train_tokenizer
from tf_transformer.translation.results import Translations, rows_of

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


@pytest.fixture(scope="module")
def beam(tokenizer, translator) -> Translator:
    """The same model with a beam of two."""
    return Translator(translator.model, tokenizer, tokenizer, DecodingConfig(beam_size=2, max_extra_length=5))


@pytest.mark.long_but_first
@pytest.mark.parametrize("option", OPTIONS, ids=lambda o: "-".join(map(str, o.values())) or "paper")
def test_cached_and_uncached_decoding_agree(tokenizer, option):
    """Tokens except at near-ties, where the two best are within 1e-3; log-probabilities to 1e-4."""
    translator = translator_of(tokenizer, **option)
    texts = tf.constant(SOURCES[:29])
    source_ids, found = ids_of(translator, texts)
    ids, scores = found.ids.numpy()[:, 0], found.log_probabilities.numpy()[:, 0]
    near_ties = 0
    for row, source, score in zip(ids, source_ids, scores, strict=True):
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


def ids_of(translator, texts, n_best=1):
    """The ids of sentences, and what a search in a graph finds."""
    source, found = tf.function(lambda texts: translator.search(texts, n_best))(texts)
    return source.ids.numpy(), found


def uncached(translator, source, written):
    """The log-probabilities [T, V] of every token after those before it, from a whole pass."""
    target = np.concatenate([[START], written[:-1]])
    return tf.nn.log_softmax(translator.model((source[None], target[None])))[0].numpy()


@pytest.mark.long_but_first
@pytest.mark.parametrize("settings", [{"length_penalty": 0.0}, {"length_penalty": 1.0}, {"temperature": 0.5}], ids=str)
def test_the_search_reports_what_a_whole_pass_gives(tokenizer, settings):
    """Beams move between rows, and sentences leave the batch; sampling is by chance. The log-probabilities stay."""
    decoding = DecodingConfig(beam_size=3, max_extra_length=7, **settings)
    translator = Translator(translator_of(tokenizer).model, tokenizer, tokenizer, decoding)
    texts = tf.constant(SOURCES[:13])
    source_ids, found = ids_of(translator, texts, 1 if "temperature" in settings else 3)
    for rows, totals, source in zip(found.ids.numpy(), found.log_probabilities.numpy(), source_ids, strict=True):
        assert len({tuple(row) for row in rows}) == len(rows)
        for row, total in zip(rows, totals, strict=True):
            written = row[row != 0]
            gained = uncached(translator, source, written)[np.arange(len(written)), written].sum()
            assert gained == pytest.approx(total, abs=1e-4 * len(written))
    assert (np.diff(found.scores.numpy(), axis=1) <= 0).all()


@pytest.mark.long_but_first
@pytest.mark.parametrize("settings", [{"beam_size": 1}, {"beam_size": 3}, {"temperature": 0.7, "seed": 5}], ids=str)
def test_other_sentences_of_the_batch_change_nothing(tokenizer, settings):
    decoding = DecodingConfig(max_extra_length=7, **settings)
    translator = Translator(translator_of(tokenizer).model, tokenizer, tokenizer, decoding)
    signature = [tf.TensorSpec([None], tf.string)]
    search = tf.function(lambda texts: translator.search(texts)[1], input_signature=signature)
    alone = [search(tf.constant([text])) for text in SOURCES[:13]]
    together = search(tf.constant([*SOURCES[:13], " ".join(SOURCES[:9])]))
    for i, hypothesis in enumerate(alone):
        written = hypothesis.ids[0, 0].numpy()
        assert together.ids[i, 0].numpy()[: len(written)].tolist() == written.tolist()
        assert float(together.scores[i, 0]) == pytest.approx(float(hypothesis.scores[0, 0]), abs=1e-4 * len(written))


@pytest.mark.long
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
        source = translator.encode_source(tf.constant([SOURCES[i]])).ids[0].numpy()
        expected = uncached(translator, source, ids)[np.arange(len(ids)), ids]
        assert scored.lengths[i] == len(ids)
        np.testing.assert_allclose(scored.token_log_probabilities[i, : len(ids)], expected, atol=1e-4)
        assert not scored.token_log_probabilities[i, len(ids) :].numpy().any()
        assert float(scored.log_probabilities[i]) == pytest.approx(expected.sum(), abs=1e-3)


BLANK = ["", "  ", "\n", "\u200b"]


@pytest.mark.long_but_first
@pytest.mark.parametrize("settings", [{"beam_size": 1}, {"beam_size": 3}, {"temperature": 0.9}], ids=str)
def test_a_pair_without_text_scores_what_the_search_reports(tokenizer, translator, settings):
    other = Translator(translator.model, tokenizer, tokenizer, DecodingConfig(max_extra_length=3, **settings))
    found = other.translate(tf.constant(BLANK))
    pairs = [(source, target) for source in BLANK for target in BLANK]
    assert other.score_strings(pairs) == [[0.0]] * len(pairs)
    assert found.scores.numpy().tolist() == [sum(row) for row in other.score_strings([(one, "") for one in BLANK])]
    scored = other.score(*map(tf.constant, zip(*pairs, strict=True)))
    assert not scored.log_probabilities.numpy().any() and (scored.lengths.numpy() == 1).all()


def test_where_only_one_side_has_text_the_model_scores(translator):
    """Also where the search does not ask it: an empty sentence with text beside it, which the search never writes."""
    pairs = [("", ""), PAIRS[0], ("", PAIRS[1][1]), (PAIRS[2][0], ""), ("  ", "a")]
    for (source, target), row in zip(pairs[1:], translator.score_strings(pairs)[1:], strict=True):
        ids = np.concatenate([translator.target_tokenizer.tokenize([target])[0].numpy(), [END]])
        source_ids = translator.encode_source(tf.constant([source])).ids[0].numpy()
        assert row == pytest.approx(uncached(translator, source_ids, ids)[np.arange(len(ids)), ids], abs=1e-4)


def test_an_empty_translation_scores_what_the_search_reports(tokenizer, translator):
    """Of text: one token, the end. A wide beam finds it among all translations of one token."""
    decoding = DecodingConfig(beam_size=tokenizer.vocab_size, max_length=1)
    wide = Translator(translator.model, tokenizer, tokenizer, decoding)
    _, found = wide.search(tf.constant(SOURCES[:2]), n_best=tokenizer.vocab_size)
    for i, ids in enumerate(found.ids.numpy()[:, :, 0]):
        [place] = np.flatnonzero(ids == END)
        [[score]] = wide.score_strings([(SOURCES[i], "")])
        assert score == pytest.approx(float(found.scores[i, place]), abs=1e-4)


@pytest.mark.parametrize("counts", [(1, 3), (3, 1), (1, 0), (0, 1)])
def test_each_sentence_has_one_translation_to_score(translator, counts):
    """One must not be taken for that of all others."""
    sources, targets = (tf.constant(["a"] * count, tf.string) for count in counts)
    with pytest.raises(ValueError, match=r"give target for each string"):
        translator.score(sources, targets)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"give target for each string"):
        translator._scored(sources, targets)


def test_n_best_beyond_the_beam_is_refused(translator):
    with pytest.raises(InputError, match=r"n_best must be 1 to 1, the beam_size\. Received: 2"):
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
    translation, score, _ = translator.translate(texts)
    assert translation.numpy()[[0, 2, 3]].tolist() == [b"", b"", b""]
    assert score.numpy()[[0, 2, 3]].tolist() == [0, 0, 0]
    assert translation[1].numpy() == translator(SOURCES[0]).numpy() != b""
    assert translator("").numpy() == b""


def test_translations_are_capped_by_the_length_of_their_own_source(translator):
    texts = tf.constant(SOURCES[:17])
    source_ids, found = ids_of(translator, texts)
    ids = found.ids.numpy()[:, 0]
    tokens = (source_ids != 0).sum(axis=1) - 1
    written = (ids != 0).sum(axis=1)
    unfinished = ~(ids == END).any(axis=1)
    assert unfinished.any()
    assert (written[unfinished] == tokens[unfinished] + 11).all()
    assert (written <= tokens + 11).all()


@pytest.mark.long
@pytest.mark.parametrize(
    ("option", "settings"),
    [({"positions": "learned", "max_positions": 29}, {}), ({}, {"max_source_length": 29})],
    ids=["learned", "setting"],
)
def test_a_long_sentence_is_cut_and_the_rest_of_the_batch_is_as_it_was(tokenizer, option, settings, caplog):
    model = translator_of(tokenizer, **option).model
    decoding = DecodingConfig(beam_size=2, max_extra_length=5, **settings)
    translator = Translator(model, tokenizer, tokenizer, decoding)
    long = " ".join(SOURCES[:400])
    start = tokenizer.detokenize(tokenizer.tokenize([long])[:, :28])[0].numpy().decode()
    texts = [SOURCES[0], long, SOURCES[1], start]
    translations = translator.translate(tf.constant(texts))
    assert translations.is_truncated.numpy().tolist() == [False, True, False, False]
    assert translations.texts[1].numpy() == translations.texts[3].numpy()
    alone = translator.translate(tf.constant(SOURCES[:2])).texts.numpy().tolist()
    assert translations.texts.numpy()[[0, 2]].tolist() == alone
    scored = translator.score(tf.constant([SOURCES[0], long, SOURCES[0]]), tf.constant(["a", "a", long]))
    assert scored.is_truncated.numpy().tolist() == [False, True, True]
    assert scored.lengths[2] == (29 if option else 34)
    translator.translate_strings(texts)
    assert [r.message for r in caplog.records if r.name == "tf_transformer.text.batching"] == [
        f"cut, because it has more tokens than max_source_length or than the model has positions: {long[:60]} ..."
    ]
    assert translator.count_tokens(texts)[1] == translator.count_tokens(texts)[3] == 29


def test_learned_positions_bound_a_translation(tokenizer):
    translator = translator_of(tokenizer, max_extra_length=100, positions="learned", max_positions=29)
    assert ids_of(translator, tf.constant(SOURCES[:9]))[1].ids.shape[2] <= 29


@pytest.mark.long
@pytest.mark.parametrize(
    ("settings", "option"),
    [
        ({"beam_size": 1}, {"norm": "pre"}),
        (
            {"beam_size": 3, "coverage_penalty": 0.2, "no_repeat_ngram": 3, "ban_unknown": True},
            {"positions": "learned", "max_positions": 61},
        ),
        ({"temperature": 0.7, "top_k": 11}, {"share_embeddings": "all"}),
    ],
    ids=["greedy", "beam", "sample"],
)
def test_xla_finds_the_same(tokenizer, settings, option):
    """The same tokens except at near-ties, of which there may be one; log-probabilities to 1e-4."""
    model = translator_of(tokenizer, **option).model
    texts = tf.constant([*SOURCES[:11], ""])
    prefix = tf.constant(["Der", "", "Wir", *[""] * 9])
    default, compiled = (
        Translator(
            model, tokenizer, tokenizer, DecodingConfig(max_extra_length=7, min_length=2, jit_compile=xla, **settings)
        )
        for xla in (False, True)
    )
    found, fixed = (
        tf.function(lambda texts, t=t: t.search(texts, prefix=prefix)[1])(texts) for t in (default, compiled)
    )
    length = found.ids.shape[2]
    same = (found.ids.numpy() == fixed.ids.numpy()[:, :, :length]).all(axis=(1, 2))
    assert same.sum() >= len(same) - 1
    np.testing.assert_allclose(found.log_probabilities[same], fixed.log_probabilities[same], atol=1e-4 * length)
    assert not fixed.ids.numpy()[same, :, length:].any()
    assert default.target_tokenizer.detokenize(found.ids[:, 0])[0].numpy().startswith(b"Der")
    for translator in (default, compiled):
        assert translator.translate_strings([]) == []


@pytest.mark.long
def test_attention(translator):
    """Each row is what the model gave the source in writing that token."""
    found = translator.attention(SOURCES[0])
    assert found.source_tokens[-1] == "</s>"
    assert found.weights.shape == (2, 7, len(found.target_tokens), len(found.source_tokens))
    np.testing.assert_allclose(found.weights.sum(axis=-1), 1, atol=1e-5)
    text = "".join(piece for piece in found.target_tokens if piece != "</s>").replace("▁", " ").strip()
    assert text == translator(SOURCES[0]).numpy().decode()
    s, t = len(found.source_tokens), len(found.target_tokens)
    assert (found.encoder.shape, found.decoder.shape) == ((2, 7, s, s), (2, 7, t, t))
    assert found.read_tokens == ["<s>", *found.target_tokens[:-1]]
    for weights in (found.encoder, found.decoder):
        np.testing.assert_allclose(weights.sum(axis=-1), 1, atol=1e-5)
    assert np.abs(np.triu(found.decoder, 1)).max() == 0 < np.abs(np.triu(found.encoder, 1)).max()
    of_target = translator.attention(SOURCES[0], PAIRS[0][1])
    assert of_target.target_tokens[-1] == "</s>"
    source = translator.encode_source(tf.constant(SOURCES[:1])).ids
    target = translator.target_tokenizer.tokenize([PAIRS[0][1]]).numpy()
    memory, cache = translator.model.encode(source), translator.model.empty_cache(1)
    written = [START, *target[0]]
    for t, token in enumerate(written):
        _, weights, cache = translator.model.decode_step(tf.constant([token]), t, cache, memory)
        np.testing.assert_allclose(of_target.weights[:, :, t], [w[0, :, 0] for w in weights], atol=1e-5)
    assert len(of_target.target_tokens) == len(written)


@pytest.mark.long
@pytest.mark.parametrize("jit_compile", [False, True])
def test_attention_ends_where_the_translation_does(tokenizer, translator, jit_compile):
    """A beam goes on after it has found the best one, and a compiled search has room for more."""
    decoding = DecodingConfig(beam_size=3, max_extra_length=11, jit_compile=jit_compile)
    beam = Translator(translator.model, tokenizer, tokenizer, decoding)
    source, found = beam.search(tf.constant(SOURCES[:3]))
    lengths = np.count_nonzero(found.ids[:, 0], axis=1)
    assert lengths.min() < found.ids.shape[2]
    for text, length in zip(SOURCES[:3], lengths, strict=True):
        assert len(beam.attention(text).target_tokens) == length
    aligned = beam.translate_with_attention(tf.constant(SOURCES[:3]))
    assert aligned.attention.shape == (3, lengths.max(), source.ids.shape[1])


@pytest.mark.long
def test_a_compiled_search_has_no_more_positions_than_were_learned(tokenizer):
    model = translator_of(tokenizer, positions="learned", max_positions=10).model
    decoding = DecodingConfig(beam_size=1, jit_compile=True)
    one, other = (Translator(model, tokenizer, tokenizer, d) for d in (decoding, DecodingConfig(beam_size=1)))
    text = tf.constant(SOURCES[:1])  # not in a graph, where shapes are unknown
    assert one.translate(text).texts.numpy().tolist() == other.translate(text).texts.numpy().tolist()


def test_prefixes(translator):
    found = translator.translate_n_best(SOURCES[:2], 1, prefix=["Der Hund", ""])
    assert found.texts[0, 0].numpy().startswith(b"Der Hund")
    assert found.texts[1, 0].numpy().decode() == translator.translate_strings(SOURCES[1:2])[0]
    with pytest.raises(ValueError, match=r"give prefix for each string"):
        translator.translate_n_best(SOURCES[:2], 1, prefix=["Der"])


@pytest.mark.long
def test_terms(tokenizer, translator):
    """The model has random weights: what it writes of itself has none of these words."""
    beam = Translator(translator.model, tokenizer, tokenizer, DecodingConfig(beam_size=3, max_extra_length=11))
    terms = [["Hund", "die Katze"], [], ["Mann"]]
    plain, found = beam.n_best_strings(SOURCES[:3], 2), beam.n_best_strings(SOURCES[:3], 2, terms=terms)
    for row, ways in zip(terms, found, strict=True):
        assert all(term in text for term in row for text, _ in ways)
    assert [text for text, _ in found[1]] == [text for text, _ in plain[1]]
    best = [text for [(text, _), _] in found]
    assert beam.translate_strings(SOURCES[:3], terms=terms) == best
    assert [row.translation for row in beam.aligned_strings(SOURCES[:3], terms=terms)] == best
    assert beam.n_best_strings([""], 1, terms=[[]]) == [[("", 0.0)]]
    assert beam.n_best_strings([], 1, terms=[]) == []
    with pytest.raises(ValueError, match=r"give terms for each string"):
        beam.search(tf.constant(SOURCES[:2]), terms=["Hund"])


@pytest.mark.long
@pytest.mark.parametrize(
    "terms",
    [
        ["Hund", "Hund"],
        ["Hund", "Hund läuft", "Hunde"],
        ["der Hund", "Hund läuft", "läuft der"],
        ["☕", "日本 שלום"],
        ["</s>", "<unk>", "<0xE2>"],
        [f"{letter}x" for letter in "abcdefghijk"],
        ["Hund läuft der Katze nach " * 3],
    ],
    ids=["twice", "prefixes", "overlapping", "bytes", "special", "more than the beam", "longer than the source"],
)
def test_odd_terms_are_written(beam, terms):
    """In every translation of an n-best list; the other sentences of the batch have what they have without them."""
    found = beam.n_best_strings(SOURCES[:3], 2, terms=[[], terms, []])
    for text, score in found[1]:
        assert all(term.strip() in text for term in terms) and np.isfinite(score)
    plain = beam.n_best_strings(SOURCES[:3], 2)
    for one, other in ((found[0], plain[0]), (found[2], plain[2])):
        assert [text for text, _ in one] == [text for text, _ in other]


@pytest.mark.parametrize(
    ("terms", "decoding", "message"),
    [
        (["Hund " * 90], DecodingConfig(max_length=11), r"leave no room.*Received: 'Hund .*'$"),
        (["Hund"], DecodingConfig(beam_size=1), r"only a beam search takes constraints.*beam_size=1"),
        (["Hund"], DecodingConfig(temperature=1.0), r"only a beam search takes constraints.*temperature=1"),
        (["Hund"], DecodingConfig(jit_compile=True), r"a search that XLA compiles takes no constraints"),
    ],
)
def test_terms_that_cannot_be_written(tokenizer, translator, terms, decoding, message):
    other = Translator(translator.model, tokenizer, tokenizer, decoding)
    with pytest.raises(InputError, match=message):
        other.translate_strings(SOURCES[:1], terms=[terms])


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        ([" "], r"a term must have text, and no tab. Received: ' '"),
        (["a\tb"], r"and no tab. Received: 'a\\tb'"),
        ("Hund", r"give the terms of a sentence as a list. Received: 'Hund'"),
        (["Hund", "\u200b"], r"the vocabulary cannot write one of them.*Received: 'Hund', '\\u200b'$"),
        (["\x01"], r"the vocabulary cannot write"),
        ([" \u2581"], r"the vocabulary cannot write"),
        (["\u200b", *map(str, range(29)), "a\nb"], r"Received: '\\u200b', '0', [^\n]*, and 1 more$"),
    ],
)
def test_terms_of_which_nothing_would_be_written(beam, terms, message):
    with pytest.raises(InputError, match=message):
        beam.translate_strings(SOURCES[:2], terms=[["Mann"], terms])


def test_a_random_model_keeps_markup(translator):
    """Wherever its attention points: every mark is there once, and stays what it is."""
    texts = [
        f"{before}{mark}{after}"
        for mark in ("https://example.com/a", "me@example.com", "<b>the dog</b>", "{n, plural, other {# dogs}}", "%1$s")
        for before, after in (("see ", ": the dog runs ."), ("", " a cat"), ("the dog (", ") sleeps"), ("½ … ™ ", ""))
    ]
    for text, found in zip(texts, WithMarkup(translator).translate_strings(texts), strict=True):
        assert [found[start:end] for start, end in markup_spans(found)] == [
            text[start:end] for start, end in markup_spans(text)
        ], (text, found)


@pytest.mark.long_but_first
@pytest.mark.parametrize("sentence", BLANK)
def test_a_sentence_without_text_has_no_translation_with_terms(beam, sentence):
    for translate in (beam.translate_strings, beam.aligned_strings):
        with pytest.raises(InputError, match=r"the sentence has no text.*Received: 'Hund'$"):
            translate([SOURCES[0], sentence], terms=[["Mann"], ["Hund"]])
    assert beam.translate_strings([sentence, SOURCES[0]], terms=[[], ["Mann"]])[0] == ""


@pytest.mark.parametrize("counts", [(1, 3), (3, 1), (1, 0), (0, 1)])
def test_each_sentence_has_its_terms(beam, counts):
    """Those of one must not be taken for those of all others."""
    sentences, terms = ["a"] * counts[0], [["Hund"]] * counts[1]
    for translate in (beam.translate_strings, beam.aligned_strings):
        with pytest.raises(InputError, match=rf"give terms for each sentence.*Received: {counts[1]} for {counts[0]}"):
            translate(sentences, terms=terms)


@pytest.mark.long
def test_terms_longer_than_the_positions(tokenizer):
    model = translator_of(tokenizer, positions="learned", max_positions=13).model
    beam = Translator(model, tokenizer, tokenizer, DecodingConfig(beam_size=2))
    with pytest.raises(InputError, match=r"max_length or the positions of the model leave no room"):
        beam.translate_strings(SOURCES[:1], terms=[["Hund " * 14]])
    tokens = int(tokenizer.tokenize(["Hund"]).row_lengths()[0])
    assert "Hund " * (12 // tokens - 1) in beam.translate_strings(SOURCES[:1], terms=[["Hund " * (12 // tokens)]])[0]


def test_a_term_that_the_vocabulary_cannot_write(tokenizer, translator):
    config = TokenizerConfig(vocab_size=tokenizer.vocab_size, byte_fallback=False)
    without_bytes = Tokenizer(train_tokenizer([side for pair in PAIRS for side in pair], config))
    other = Translator(translator.model, without_bytes, without_bytes, DecodingConfig(max_extra_length=11))
    with pytest.raises(InputError, match=r"the vocabulary cannot write one of them.* Received: 'Hund', '\u2603'$"):
        other.translate_strings(SOURCES[:2], terms=[["Hund", "\u2603"], []])


def test_a_lone_surrogate_is_a_question_mark(translator):
    assert translator.translate_strings(["\ud800 a"]) == translator.translate_strings(["? a"])
    assert translator.count_tokens(["\ud800 a"]) == translator.count_tokens(["? a"])


@pytest.mark.long
def test_attention_of_a_batch_is_that_of_the_layer(tokenizer, translator):
    decoding = DecodingConfig(beam_size=1, max_extra_length=11, attention_layer=1)
    first = Translator(translator.model, tokenizer, tokenizer, decoding)
    texts = [SOURCES[0], "", SOURCES[1]]
    found = tf.function(first.translate_with_attention)(tf.constant(texts))
    assert found.texts.numpy().tolist() == [text.encode() for text in first.translate_strings(texts)]
    for i in (0, 2):
        alone = first.attention(texts[i])
        t, s = len(alone.target_tokens), len(alone.source_tokens)
        assert [piece.decode() for piece in found.source_tokens[i].numpy()] == [
            *alone.source_tokens,
            *[""] * (found.source_tokens.shape[1] - s),
        ]
        np.testing.assert_allclose(found.attention[i, :t, :s], alone.weights[0].mean(axis=0), atol=1e-5)
        assert not np.any(found.attention[i, t:]) and not np.any(found.attention[i, :, s:])
    assert not np.any(found.attention[1])
    assert {piece for piece in found.target_tokens[1].numpy()} == {b""}
    assert first.attention("").weights.shape == (2, 7, 0, 1)
    with pytest.raises(InputError, match=r"attention_layer must be at most 2, the number of layers\. Received: 3"):
        Translator(translator.model, tokenizer, tokenizer, DecodingConfig(attention_layer=3))


@pytest.mark.parametrize("text", ["日本語 ☕", "a\x00b", "שלום", "👩‍👩‍👧", "\x01\x02", "x" * 300])
def test_odd_text_changes_no_other_translation(translator, text):
    translations = translator([SOURCES[0], text, SOURCES[1]]).numpy()
    assert translations[[0, 2]].tolist() == translator(SOURCES[:2]).numpy().tolist()


def test_invalid_utf8_changes_no_other_translation(translator):
    translations = translator(tf.constant([SOURCES[0].encode(), b"\xff\xfe", SOURCES[1].encode()])).numpy()
    assert translations[[0, 2]].tolist() == translator(SOURCES[:2]).numpy().tolist()


def test_a_line_feed_in_a_translation_becomes_a_space():
    found = Translations(tf.constant([["a\nb", "c"]]), tf.constant([[1.0, 0.0]]), tf.constant([False]))
    assert rows_of(found, [""]) == [[("a b", 1.0), ("c", 0.0)]]
