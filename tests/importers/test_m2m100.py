"""M2M100 and NLLB: the same ids, logits, translations and scores as transformers; languages; what is refused."""

import dataclasses
import json

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from tf_transformer import Translator, load
from tf_transformer.commands.main import main
from tf_transformer.config.special_tokens import END, PAD, START
from tf_transformer.errors import InputError
from tf_transformer.export.ctranslate2 import export as export_ctranslate2
from tf_transformer.export.saved_model import export
from tf_transformer.importers.opening import import_model
from tf_transformer.runs.directory import RunDirectory
from tf_transformer.runs.signatures import signatures_of
from tf_transformer.runs.weights import build_model, weights
from tf_transformer.translation.exported import ExportedTranslator
from tf_transformer.translation.results import Languages

KINDS = ("m2m100", "nllb")
THEIR_PAD, THEIR_END = 1, 2


@pytest.fixture(scope="module", params=KINDS)
def folder(request, unpacked):
    return unpacked(request.param)


@pytest.fixture(scope="module")
def found(folder, read_expected):
    """What transformers finds."""
    return read_expected(folder)


@pytest.fixture(scope="module")
def run(folder, tmp_path_factory):
    return import_model(folder, tmp_path_factory.mktemp("runs") / folder.name)


@pytest.fixture(scope="module")
def loaded(run):
    return load(run)


def ours_of(folder):
    """Our id for each of theirs: padding, unknown, start and end, then theirs in their order."""
    size = json.loads((folder / "config.json").read_text("utf-8"))["vocab_size"]
    special = {1: PAD, 3: 1, THEIR_END: END}
    others = [i for i in range(size) if i not in special]
    return special | {theirs: 4 + i for i, theirs in enumerate(others)}


def translator_of(loaded, direction, **decoding):
    towards = {name: direction[name] for name in ("source_language", "target_language")}
    search = dataclasses.replace(loaded.config.decoding, **towards, **decoding)
    return Translator(loaded.model, loaded.source_tokenizer, loaded.target_tokenizer, search)


def test_it_knows_its_languages(folder, run):
    assert run.languages[:2] == {"m2m100": ("af", "am"), "nllb": ("eng_Latn", "deu_Latn")}[folder.name]
    assert len(run.languages) == {"m2m100": 100, "nllb": 2}[folder.name]
    assert run.config.decoding.source_language == {"m2m100": "en", "nllb": "eng_Latn"}[folder.name]


def test_text_becomes_the_same_ids(folder, found, loaded):
    ours = ours_of(folder)
    for direction in found["directions"]:
        ids = translator_of(loaded, direction).encode_source(tf.constant(direction["sentences"])).ids.numpy()
        assert [[i for i in row if i != PAD] for row in ids.tolist()] == [
            [ours[i] for i in row] for row in direction["ids"]
        ]


def test_the_logits_are_the_same(folder, found, loaded):
    ours = ours_of(folder)
    source, target = (np.vectorize(ours.get)(found[side]) for side in ("source", "target"))
    target[:, 0] = START
    there = target != PAD
    logits = loaded.model((source, target)).numpy()
    theirs, mine = list(ours), list(ours.values())
    np.testing.assert_allclose(logits[there][:, mine], found["logits"][there][:, theirs], atol=1e-4)
    # The start token is one more than they have.
    assert (logits[there][:, START] < -50).all()


@pytest.mark.long_but_first
@pytest.mark.parametrize(("name", "beam_size"), [("greedy", 1), ("beam", 4)])
def test_the_search_finds_the_same(folder, found, loaded, name, beam_size):
    ours, length = ours_of(folder), found["search"]["max_new_tokens"]
    compared = 0
    for direction in found["directions"]:
        # transformers counts the language as a token.
        translator = translator_of(
            *(loaded, direction),
            beam_size=beam_size,
            max_length=length - 1,
            max_extra_length=length,
            likely_stopping=False,
        )
        _, hypotheses = translator.search(tf.constant(direction["sentences"]))
        theirs = direction[name]
        scores = theirs["scores"] or hypotheses.scores[:, 0].numpy() / 2
        rows = zip(hypotheses.ids[:, 0].numpy(), hypotheses.scores[:, 0], theirs["ids"], scores, strict=True)
        for mine, score, (start, language, *other), other_score in rows:
            assert ours[start] == END
            assert ours[language] == loaded.target_tokenizer.languages[direction["target_language"]]
            mine = [i for i in mine if i not in (PAD, END)]
            other = [ours[i] for i in other if i not in (THEIR_PAD, THEIR_END)]
            if max(len(mine), len(other)) < length - 2:  # there transformers forces the end token
                assert mine == other
                # ((1 + n) / 2)^1 is half of what transformers divides by.
                assert float(score) / 2 == pytest.approx(float(other_score), abs=1e-3)
                compared += 1
    assert compared > 0.9 * sum(len(direction["sentences"]) for direction in found["directions"])


def test_every_weight_is_one_of_the_model(run):
    built = weights(build_model(run.config))
    with np.load(run.best_checkpoint()) as saved:
        shapes = {name: saved[name].shape for name in saved["names"].item().split("\n")}
    assert shapes == {name: tuple(variable.shape) for name, variable in built.items()}


@pytest.mark.long
def test_a_batch_may_have_many_directions(found, loaded):
    translator = translator_of(loaded, found["directions"][0], beam_size=3)
    texts, sources, targets, alone = [], [], [], []
    for direction in found["directions"]:
        texts += direction["sentences"][:5]
        sources += [direction["source_language"]] * 5
        targets += [direction["target_language"]] * 5
        alone += translator_of(loaded, direction, beam_size=3).translate_strings(direction["sentences"][:5])
    order = [0, 5, 1, 6, 2, 7, 3, 8, 4, 9]
    rows = [tf.constant([column[i] for i in order]) for column in (texts, sources, targets)]
    mixed = translator.translate(rows[0], Languages(*rows[1:]))
    assert [text.decode() for text in mixed.texts.numpy()] == [alone[i] for i in order]
    assert translator.translate_strings(texts, None, sources, targets) == alone
    assert len(set(alone)) > 5


@pytest.mark.long
@pytest.mark.parametrize("beam_size", [1, 3])
def test_by_xla_it_finds_the_same(found, loaded, beam_size):
    direction = found["directions"][1]
    texts = tf.constant(direction["sentences"][:5])
    mine, compiled = (
        translator_of(loaded, direction, beam_size=beam_size, max_length=20, jit_compile=jit) for jit in (False, True)
    )
    one, other = mine.translate(texts), compiled.translate(texts)
    assert one.texts.numpy().tolist() == other.texts.numpy().tolist()
    np.testing.assert_allclose(one.scores, other.scores, rtol=1e-4)


@pytest.mark.long_but_first
def test_a_score_is_that_of_the_search(found, loaded):
    """The language is given: it costs nothing, and is no token of the translation."""
    direction = found["directions"][1]
    translator = translator_of(loaded, direction, beam_size=1)
    texts = tf.constant(direction["sentences"][:7])
    _, hypotheses = translator.search(texts)
    ids = hypotheses.ids[:, 0]
    ends = tf.reduce_any(ids == END, axis=1)
    source_ids = translator.encode_source(texts).ids
    read, before = translator._read(ids, None)
    assert before == 1 and read.shape[1] == ids.shape[1] + 1
    logits = loaded.model((source_ids, read))[:, before:]
    of_tokens = tf.gather(tf.nn.log_softmax(logits), ids, batch_dims=2)
    total = tf.reduce_sum(tf.where(ids == PAD, 0.0, of_tokens), axis=1)
    np.testing.assert_allclose(total, hypotheses.log_probabilities[:, 0], atol=1e-3)
    assert ends.numpy().any()
    scored = translator.score(texts, translator.translate(texts).texts)
    np.testing.assert_allclose(
        scored.log_probabilities, tf.reduce_sum(scored.token_log_probabilities, axis=1), rtol=1e-5
    )
    attention = translator.attention(direction["sentences"][0])
    assert attention.weights.shape[2:] == (len(attention.target_tokens), len(attention.source_tokens))
    assert attention.source_tokens[0] in (direction["source_language"], f"__{direction['source_language']}__")
    np.testing.assert_allclose(attention.weights.sum(axis=3), 1, atol=1e-5)


CODES = ("__de__", "__en__", "eng_Latn", "deu_Latn", "<pad>", "</s>", "<s>", "<unk>", ">>de<<")


@settings(max_examples=80)
@given(
    parts=st.lists(st.sampled_from(CODES) | st.text("aen_deut L<>/▁", max_size=6), max_size=6),
    space=st.sampled_from(["", " ", "▁"]),
)
def test_no_text_has_a_language_in_it(loaded, parts, space):
    tokenizer = loaded.source_tokenizer
    control = {PAD, START, END, *tokenizer.languages.values()}
    assert not control & set(tokenizer.tokenize([space.join(parts)]).values.numpy().tolist())


@pytest.mark.long
def test_exports_translate_between_any(run, loaded, found, tmp_path):
    first, second = found["directions"]
    output = tmp_path / "1"
    decoding = translator_of(loaded, first, beam_size=2).decoding
    with pytest.raises(InputError, match="give --target-language"):
        export(run, output, dataclasses.replace(decoding, target_language=None))
    export(run, output, decoding)
    description = json.loads((output / "assets.extra" / "tf_transformer.json").read_text("utf-8"))
    assert tuple(description["languages"]) == run.languages
    for direction in (first, second):
        texts = direction["sentences"][:5]
        towards = dataclasses.replace(
            decoding, **{name: direction[name] for name in ("source_language", "target_language")}
        )
        mine = translator_of(loaded, direction, beam_size=2)
        exported = ExportedTranslator(output, towards)
        assert exported.translate_strings(texts) == mine.translate_strings(texts)
        pairs = list(zip(texts, direction["sentences"][1:6], strict=True))
        for one, other in zip(exported.score_strings(pairs), mine.score_strings(pairs), strict=True):
            np.testing.assert_allclose(one, other, atol=1e-4)
        assert [row[0][0] for row in exported.n_best_strings(texts, 2)] == mine.translate_strings(texts)
        assert exported.count_tokens(texts) == mine.count_tokens(texts)
    model = tf.saved_model.load(str(output))
    table = signatures_of(decoding, has_languages=True)
    takes = {name: set(each.structured_input_signature[1]) for name, each in model.signatures.items()}
    assert takes == {name: set(signature.takes) for name, signature in table.items()}
    texts = tf.constant(first["sentences"][:5])
    default = model.signatures["serving_default"](text=texts)["translation"].numpy()
    assert [text.decode() for text in default] == translator_of(loaded, first, beam_size=2).translate_strings(
        first["sentences"][:5]
    )
    with pytest.raises(tf.errors.InvalidArgumentError, match="unknown language"):
        model.signatures["translate_to"](
            text=texts, source_language=tf.fill([5], first["source_language"]), target_language=tf.fill([5], "tlh")
        )


@pytest.mark.long
def test_ctranslate2_translates_alike(run, loaded, found, tmp_path):
    ctranslate2 = pytest.importorskip("ctranslate2")
    direction = found["directions"][1]
    translator = translator_of(loaded, direction, beam_size=1, max_length=30, max_extra_length=60)
    other = ctranslate2.Translator(str(export_ctranslate2(run, tmp_path / "ct2")), compute_type="float32")
    source, target = loaded[1:3]
    texts = direction["sentences"][:11]
    rows = translator.encode_source(tf.constant(texts)).ids.numpy().tolist()
    pieces = [[source.pieces[i] for i in row if i not in (PAD, END)] for row in rows]
    code = target.pieces[target.languages[direction["target_language"]]]
    results = other.translate_batch(
        pieces,
        target_prefix=[[code]] * len(texts),
        beam_size=1,
        max_decoding_length=31,
        suppress_sequences=[[target.pieces[PAD]], [target.pieces[START]]],
    )
    ids = {piece: i for i, piece in enumerate(target.pieces)}
    theirs = [[ids[piece] for piece in result.hypotheses[0][1:]] for result in results]
    _, hypotheses = translator.search(tf.constant(texts))
    mine = [[i for i in row if i not in (PAD, END)] for row in hypotheses.ids[:, 0].numpy().tolist()]
    assert mine == theirs


def test_it_searches_as_the_folder_says(changed, loaded, tmp_path):
    folder = changed(of="m2m100")
    said = {"num_beams": 5, "max_length": 200, "early_stopping": True}
    (folder / "generation_config.json").write_text(json.dumps(said), "utf-8")
    decoding = import_model(folder, tmp_path / "run").config.decoding
    assert (decoding.beam_size, decoding.max_length, decoding.length_penalty) == (5, 198, 1.0)
    assert decoding.length_penalty_offset == 1.0
    assert decoding.early_stopping and not decoding.likely_stopping
    assert loaded.config.decoding.likely_stopping


@pytest.mark.long
def test_commands_take_the_languages(run, found, tmp_path, capsys, monkeypatch):
    direction = found["directions"][1]
    given = [
        *("--source-language", direction["source_language"]),
        *("--target-language", direction["target_language"]),
    ]
    (tmp_path / "corpus").mkdir()
    for side, other in (("de", 0), ("en", 1)):
        text = "\n".join(found["directions"][1 - other]["sentences"][:5])
        (tmp_path / "corpus" / f"test.{side}").write_text(text + "\n", "utf-8")
    data = ["--data", str(tmp_path / "corpus"), "--source", "de", "--target", "en"]
    assert main(["evaluate", "--model", str(run.path), *data, *given, "--json", "--beam-size", "1"]) == 0
    assert json.loads(capsys.readouterr().out)["sentences"] == 5
    output = ["--output", str(tmp_path / "1"), "--beam-size", "1"]
    assert main(["export", "--run-dir", str(run.path), *output, *given]) == 0
    output = ["--source", "de", "--target", "en", "--model", str(tmp_path / "1")]
    assert main(["evaluate", *output, "--data", str(tmp_path / "corpus"), "--json"]) == 0
    for wrong, said in (
        (["--target-language", "tlh"], "target_language: unknown language 'tlh'"),
        (["--target-language", direction["target_language"][:-1]], "did you mean"),
    ):
        assert main(["evaluate", "--model", str(run.path), *data, *given[:2], *wrong]) == 2
        error = capsys.readouterr().err
        assert said in error and error.splitlines()[-1].startswith("tf-transformer")


@pytest.mark.long
def test_it_is_fine_tuned_on_one_of_its_directions(folder, run, tmp_path):
    codes = {"m2m100": "de-en", "nllb": "deu_Latn-eng_Latn"}[folder.name]
    text = {"m2m100": "toy:de-en", "nllb": str(tmp_path / "corpus")}[folder.name]
    if folder.name == "nllb":  # the files are not called as its languages are
        from tf_transformer.data.corpora import toy

        (tmp_path / "corpus").mkdir()
        for split in ("train", "val"):
            for side, language in enumerate(("eng_Latn", "deu_Latn")):
                lines = [pair[side] for pair in toy.pairs(split)[:300]]
                (tmp_path / "corpus" / f"{split}.{language}").write_text("\n".join(lines) + "\n", "utf-8")
        text = f"{tmp_path / 'corpus'}:{codes}"
    tuned = tmp_path / "tuned"
    command = ["train", "--init-from", str(run.path), "--data", text, "--run-dir", str(tuned), "--max-steps", "2"]
    assert main([*command, "--set", "training.samples=1"]) == 0
    trained = RunDirectory(tuned)
    assert trained.languages == run.languages
    assert trained.config.model == run.config.model


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"of": "m2m100", "config": {"vocab_size": 200}}, "vocabulary of"),
        ({"of": "m2m100", "without": ["sentencepiece.bpe.model"]}, "sentencepiece.bpe.model"),
        ({"of": "m2m100", "config": {"scale_embedding": False}}, "scale_embedding=False"),
        ({"of": "nllb", "without": ["tokenizer.json", "tokenizer_config.json"]}, "says of no language which id"),
        ({"of": "nllb", "without": ["tokenizer.json"]}, "lists 'deu_Latn' as a token, but no file says which id"),
        ({"of": "nllb", "without": ["sentencepiece.bpe.model", "tokenizer.json"]}, "sentencepiece.bpe.model"),
        ({"of": "nllb", "config": {"model_type": "nllb-moe"}}, "Received: 'nllb-moe'"),
        ({"of": "nllb", "config": {"decoder_layers": 3}}, "no tensor 'model.decoder.layers.2"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_does_not_fit_is_refused(refuses, change, said):
    refuses(change, said)


def test_wrong_languages_are_refused_at_the_import(unpacked, tmp_path, capsys):
    command = ["import", str(unpacked("nllb")), "--run-dir", str(tmp_path / "run")]
    assert main([*command, "--target-language", "de"]) == 2
    assert "did you mean 'deu_Latn'" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


@pytest.mark.long
def test_directions_that_the_model_does_not_know_are_no_default_pair(run, tmp_path, capsys):
    """Two corpora of unknown names are not both trained as the pair that was given."""
    languages = run.languages[:2] if run.languages[0] != "af" else ("en", "de")
    given = ["--source-language", languages[0], "--target-language", languages[1]]
    for pair in ("xx-yy", "xx-zz"):
        folder = tmp_path / "corpus"
        folder.mkdir(exist_ok=True)
        for split in ("train", "val"):
            for language in pair.split("-"):
                (folder / f"{split}.{language}").write_text("a b\nc\n", "utf-8")
    command = ["train", "--init-from", str(run.path), "--run-dir", str(tmp_path / "tuned"), "--max-steps", "1", *given]
    data = [f"--data={folder}:xx-yy", f"--data={folder}:xx-zz"]
    assert main([*command, *data]) == 2
    assert "unknown language" in capsys.readouterr().err
    quiet = ["--set", "training.samples=0"]
    assert main([*command, data[0], *quiet]) == 0
    # It goes on in that direction alone.
    turned = ["--target-language", languages[0], "--source-language", languages[1]]
    assert main([*command[:-4], *turned, data[0], *quiet]) == 2
    assert "the direction of train has changed" in capsys.readouterr().err
    # A run that starts from it is not told by it what another text is written in.
    onward = ["train", "--init-from", str(tmp_path / "tuned"), "--run-dir", str(tmp_path / "onward"), data[1]]
    assert main([*onward, "--max-steps", "1"]) == 2
    assert "unknown language" in capsys.readouterr().err


@pytest.mark.long_but_first
def test_a_language_given_alone_goes_with_the_other_of_the_search(found, loaded):
    direction = found["directions"][0]
    translator = translator_of(loaded, direction, beam_size=1, max_length=9)
    texts = direction["sentences"][:3]
    target = direction["target_language"]
    assert translator.translate_strings(texts, target_languages=[target] * 3) == translator.translate_strings(texts)
    with pytest.raises(InputError, match="unknown language 'tlh'"):
        translator.translate_strings(texts, target_languages=["tlh"] * 3)
    with pytest.raises(InputError, match="max_source_length must be at least 3"):
        translator_of(loaded, direction, max_source_length=2)
