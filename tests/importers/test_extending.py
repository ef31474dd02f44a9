"""Languages and pieces that a model gets: what was there stays as it was, and the new ones are learned."""

import dataclasses
import itertools

import numpy as np
import pytest
import tensorflow as tf

from tests.importers.runs_to_extend import BACKWARDS, FRENCH, KINDS, LANGUAGES, WITH_LANGUAGES
from tf_transformer import Translator, load
from tf_transformer.commands.main import main
from tf_transformer.config.special_tokens import UNKNOWN
from tf_transformer.importers.opening import import_model
from tf_transformer.runs.directory import RunDirectory
from tf_transformer.runs.extending import extend
from tf_transformer.runs.extension import new_pieces
from tf_transformer.runs.weights import count_of, tokenizers_of, weights
from tf_transformer.tokenizers.new_tokens import with_tokens
from tf_transformer.tokenizers.vocabulary import Vocabulary
from tf_transformer.translation.results import Languages

TEXTS = ["The dog sleeps.", "Der alte Mann liest.", "tyv_Cyrl __tyv__ 12"]


def translated(run, directions):
    loaded = load(run)
    search = dataclasses.replace(loaded.config.decoding, beam_size=1, max_length=15, max_extra_length=15)
    translator = Translator(*loaded[:3], search)
    if not run.languages:
        return translator.translate(tf.constant(TEXTS))
    sides = [tf.constant(side) for side in zip(*directions, strict=True)]
    return translator.translate(tf.constant(TEXTS), Languages(*sides))


@pytest.mark.long_but_first
@pytest.mark.parametrize("kind", WITH_LANGUAGES)
def test_what_was_there_stays_and_a_new_language_starts_as_another(run_of, kind, tmp_path):
    run = run_of(kind)
    en, de = LANGUAGES.get(kind, ("en", "de"))
    extended = extend(run.path, tmp_path / "extended", languages={"tyv": de})
    assert extended.languages == (*run.languages, "tyv")
    assert extended.description["parameters"] == count_of(load(extended).model)
    for before, after in zip(tokenizers_of(run), tokenizers_of(extended), strict=True):
        assert after.pieces[: before.vocab_size] == before.pieces and after.vocab_size == before.vocab_size + 1
        assert after.tokenize(TEXTS).to_list() == after.encode(TEXTS) == before.encode(TEXTS)
    found = translated(run, [(en, de), (de, en), (en, de)])
    for new in (de, "tyv"):
        same = translated(extended, [(en, new), (new, en), (en, new)])
        assert same.texts.numpy().tolist() == found.texts.numpy().tolist()
        np.testing.assert_allclose(same.scores, found.scores, rtol=1e-5)


@pytest.mark.long_but_first
@pytest.mark.parametrize("kind", KINDS)
def test_greedy_search_writes_what_it_wrote_before_a_model_learned_its_new_pieces(run_of, kind, tmp_path):
    run = run_of(kind)
    pieces = new_pieces(run, lambda: zip(FRENCH, BACKWARDS, strict=True), 13)
    assert not any(token.piece in f"\u2581{text}" for side in pieces for token in side for text in TEXTS)
    extended = extend(run.path, tmp_path / "extended", pieces=pieces)
    assert extended.languages == run.languages
    assert extended.description["parameters"] == count_of(load(extended).model)
    for after, before, more in zip(tokenizers_of(extended), tokenizers_of(run), pieces, strict=True):
        assert after.vocab_size == before.vocab_size + len(more)
        assert after.encode(TEXTS) == before.encode(TEXTS)
    for text, after, before in zip((FRENCH, BACKWARDS), tokenizers_of(extended), tokenizers_of(run), strict=True):
        assert sum(map(len, after.encode(text))) < sum(map(len, before.encode(text)))
    en, de = LANGUAGES.get(kind, ("en", "de"))
    directions = [(en, de), (de, en), (en, de)]
    found, same = (translated(each, directions) for each in (run, extended))
    assert same.texts.numpy().tolist() == found.texts.numpy().tolist()
    table, token = load(extended).model.decoder.embedding.tokens.table.numpy(), pieces[1][-1]
    expected = table[list(token.parts)].mean(0)
    np.testing.assert_allclose(table[tokenizers_of(extended)[1].pieces.index(token.piece)], expected, rtol=1e-6)


@pytest.mark.long_but_first
@pytest.mark.parametrize("kind", KINDS)
def test_listed_words_become_pieces_that_greedy_search_does_not_write_yet(run_of, kind, tmp_path, capsys):
    run, words, output = run_of(kind), ["Lackierkabine", "gar\u00e7on", "Pistole"], tmp_path / "extended"
    (tmp_path / "words").write_text("\n".join([*words, "", words[0]]), "utf-8")
    command = ["extend", "--run-dir", str(run.path), "--add-pieces", str(tmp_path / "words"), "--output"]
    assert main([*command, str(output)]) == 0
    extended = RunDirectory(output)
    for after, before in zip(tokenizers_of(extended), tokenizers_of(run), strict=True):
        assert [len(row) for row in after.encode(words)] == [1, 1, 1]
        assert after.pieces[: before.vocab_size] == before.pieces and after.encode(TEXTS) == before.encode(TEXTS)
        assert after.tokenize(words).to_list() == after.encode(words)
    en, de = LANGUAGES.get(kind, ("en", "de"))
    found, same = (translated(each, [(en, de), (de, en), (en, de)]) for each in (run, extended))
    assert same.texts.numpy().tolist() == found.texts.numpy().tolist()
    capsys.readouterr()
    command[2] = str(output)
    assert main([*command, str(tmp_path / "again")]) == 2
    assert "there is nothing to add: each of the 3 words is one piece already" in capsys.readouterr().err


def test_sides_that_share_a_table_share_the_ids_of_new_pieces(run_of):
    run = run_of("marian")
    pieces = new_pieces(run, lambda: zip(FRENCH, BACKWARDS, strict=True), 13)
    sides = [
        Vocabulary(with_tokens(before, more), vocab_size=before.vocab_size + len(more))
        for before, more in zip(run.vocabularies(), pieces, strict=True)
    ]
    assert sides[0].pieces == sides[1].pieces
    for side, text in zip(sides, (FRENCH, BACKWARDS), strict=True):
        ids = set(itertools.chain(*side.encode(text)))
        assert UNKNOWN not in ids and max(ids) >= run.config.model.input_vocab_size


@pytest.mark.long
@pytest.mark.parametrize(("kind", "rank"), [("m2m100", 0), ("own", 0), ("m2m100", 2), ("own", 2)])
def test_new_pieces_are_learned_resumed_and_exported(run_of, kind, rank, tmp_path):
    """A run with new pieces is trained on text that has them; what was stopped goes on to the same bits.

    With low-rank factors, all rows of the table but the new ones stay.
    """
    run = run_of(kind)
    (tmp_path / "text.tsv").write_text(
        "".join(f"{text} {text[:i]}\t{text[::-1]}\n" for i, text in enumerate(FRENCH[:2] * 20))
    )
    data = ["--data", str(tmp_path / "text.tsv"), "--source", "en", "--target", "de"]
    output = str(tmp_path / "extended")
    assert main(["extend", "--run-dir", str(run.path), "--add-pieces", "13", *data, "--output", output]) == 0
    pieces = RunDirectory(output).description["extended"]["pieces"]
    assert pieces == [13, 13]
    sides = [" ".join(["", *FRENCH]), " ".join(["", *(text[::-1] for text in FRENCH)])]
    source, target = RunDirectory(output).vocabularies()
    if source is target:
        sides = ["\n".join(sides)] * 2
    for side, text in zip((source, target), sides, strict=True):
        assert [piece for piece in side.pieces[-13:] if piece.replace("\u2581", " ") not in text] == []
    train = ["train", *data, "--init-from", output, "--set", "training.samples=0", "--set", "data.held_out=0.3"]
    train += ["--set", f"training.lora_rank={rank}"]
    whole, parts = str(tmp_path / "whole"), str(tmp_path / "parts")
    assert main([*train, "--run-dir", whole, "--max-steps", "4"]) == 0
    for steps in "24":
        assert main([*train, "--run-dir", parts, "--max-steps", steps]) == 0
    learned, resumed, start = (load(each).model for each in (whole, parts, output))
    again = weights(resumed)
    for name, weight in weights(learned).items():
        np.testing.assert_array_equal(again[name], weight)
    for side in ("encoder", "decoder"):
        tuned, before = (getattr(model, side).embedding.tokens.table.numpy() for model in (learned, start))
        assert np.abs(tuned - before)[-13:].max() > 0
        assert bool(rank) == np.array_equal(tuned[:-13], before[:-13])
    averaged = str(tmp_path / "averaged")
    assert main(["average", "--run-dir", whole, "--best", "1", "--output", averaged]) == 0
    mean = weights(load(averaged).model)
    for name, weight in weights(learned).items():
        np.testing.assert_allclose(mean[name], weight, rtol=1e-5, atol=1e-6, err_msg=name)
    if rank:  # what a whole training has learned is exported in test_exports_of_extended.py
        export = str(tmp_path / "1")
        assert main(["export", "--run-dir", whole, "--output", export, "--set", "decoding.max_length=7"]) == 0
        texts = tf.constant(FRENCH[:2])
        loaded = load(whole)
        search = dataclasses.replace(loaded.config.decoding, max_length=7)
        exported = tf.saved_model.load(export).signatures["serving_default"](text=texts)["translation"]
        assert exported.numpy().tolist() == Translator(*loaded[:3], search).translate(texts).texts.numpy().tolist()


@pytest.fixture
def extended(unpacked, tmp_path):
    """NLLB with a language, by the commands; and the command that trains it."""
    run, output = str(tmp_path / "run"), str(tmp_path / "extended")
    assert main(["import", str(unpacked("nllb")), "--run-dir", run]) == 0
    assert main(["extend", "--run-dir", run, "--add-language", "tyv_Cyrl=deu_Latn", "--output", output]) == 0
    towards = ["--source-language", "eng_Latn", "--target-language", "tyv_Cyrl"]
    return output, ["train", "--data", "toy", "--max-steps", "2", "--set", "training.samples=0", *towards]


@pytest.mark.long
def test_a_new_language_is_learned(extended, tmp_path):
    output, train = extended
    assert main([*train, "--init-from", output, "--run-dir", str(tmp_path / "tuned")]) == 0
    tuned = RunDirectory(tmp_path / "tuned")
    assert tuned.languages == ("eng_Latn", "deu_Latn", "tyv_Cyrl")
    tokenizer, table = tokenizers_of(tuned)[0], load(tuned).model.encoder.embedding.tokens.table.numpy()
    new, old = (table[tokenizer.languages[language]] for language in ("tyv_Cyrl", "deu_Latn"))
    assert np.abs(new - old).max() > 0


def test_a_run_with_more_languages_goes_on_as_another(extended, tmp_path, capsys):
    output, train = extended
    assert main([*train, "--run-dir", output]) == 2
    assert "with more tokens, and its training cannot continue" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--add-language", "tyv_Cyrl"], "takes NEW=OLD, such as tyv_Cyrl=kaz_Cyrl. Received: 'tyv_Cyrl'"),
        (["--add-language", "tyv_Cyrl=deu_Latm"], "did you mean 'deu_Latn'"),
        (["--add-language", "eng_Latn=deu_Latn"], "must be a name that"),
        (["--add-language", "a b=deu_Latn"], "must be a name that"),
        (["--add-language", "s=deu_Latn"], "the tokenizer has the piece 's': give the language another name"),
        ([], "nothing to add: give --add-language or --add-pieces"),
        (["--add-pieces", "7"], "--add-pieces N learns from text, and --data names it: give both or none"),
        (["--add-language", "fr=deu_Latn", "--data", "toy"], "give both or none"),
        (["--add-language", "fr=deu_Latn", "--source", "en"], "--source is for the text of --data"),
        (["--add-pieces", "0", "--data", "toy"], "--add-pieces: "),
        (["--add-pieces", "nowhere"], "takes a number, or a file of words, one a line. Received: 'nowhere'"),
        (["--add-pieces", "7", "--data", "nowhere.tsv"], "there is no such folder and no such file"),
    ],
)
def test_what_cannot_be_added_is_refused(unpacked, tmp_path, capsys, more, said):
    run, output = import_model(unpacked("nllb"), tmp_path / "run"), tmp_path / "extended"
    assert main(["extend", "--run-dir", str(run.path), *more, "--output", str(output)]) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1 and not output.exists()


def test_a_model_of_one_direction_gets_no_language(imported, tmp_path, capsys):
    command = ["extend", "--run-dir", str(imported), "--add-language", "fr=de", "--output", str(tmp_path / "extended")]
    assert main(command) == 2
    assert "translates in one direction, without tokens of languages" in capsys.readouterr().err
