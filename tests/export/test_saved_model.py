import dataclasses
import json
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import tensorflow as tf
from tensorflow_serving.apis.prediction_log_pb2 import PredictionLog

from tf_transformer import Translator
from tf_transformer.config import DecodingConfig
from tf_transformer.data.corpora import copy_task
from tf_transformer.decoding.search_tree import search_tree
from tf_transformer.errors import InputError
from tf_transformer.export.model_card import card
from tf_transformer.export.saved_model import export, foreign_ops
from tf_transformer.runs.descriptions import LANGUAGES, OF_EXPORT, is_saved_model
from tf_transformer.runs.signatures import SIGNATURES, signatures_of
from tf_transformer.text.alignment import pharaoh
from tf_transformer.tokenizers import END, UNKNOWN
from tf_transformer.translation.exported import ExportedTranslator

SENTENCES = [source for source, _ in copy_task.pairs("test")[:7]] + ["", "a b", "Ω ☕"]


def test_it_translates_as_the_run_does(copy_run, copy_export):
    translator, exported = Translator.load(copy_run), ExportedTranslator(copy_export)
    assert exported.translate_strings(SENTENCES) == translator.translate_strings(SENTENCES)
    assert exported.translate_strings([]) == []


def check_signatures(path, **of):
    """The signatures of an export are those of the table."""
    loaded, table = tf.saved_model.load(str(path)).signatures, signatures_of(**of)
    assert set(loaded) == set(table)
    for name, signature in table.items():
        _, takes = loaded[name].structured_input_signature
        assert takes == {given: tf.TensorSpec([None], tf.string, name=given) for given in signature.takes}
        gives = loaded[name].structured_outputs
        assert {output: tensor.dtype.name for output, tensor in gives.items()} == {
            output: tensor.dtype for output, tensor in signature.gives.items()
        }
        for output, tensor in signature.gives.items():
            assert gives[output].shape.rank in (len(tensor.shape.split()), None), f"{name} {output}"


@pytest.mark.long
def test_the_signatures_are_those_of_the_table(copy_run, copy_export, tmp_path):
    assert signatures_of(DecodingConfig(), has_languages=True) == {
        name: signature._replace(takes=(*signature.takes, *(LANGUAGES if signature.is_directed else ())))
        for name, signature in SIGNATURES.items()
    }
    check_signatures(copy_export, decoding=DecodingConfig(), has_languages=False)
    greedy = DecodingConfig(beam_size=1)
    check_signatures(export(copy_run, tmp_path / "greedy", greedy), decoding=greedy, has_languages=False)


def test_the_default_signature(copy_run, copy_export):
    outputs = tf.saved_model.load(str(copy_export)).signatures["serving_default"](text=tf.constant(SENTENCES))
    expected = Translator.load(copy_run).translate(tf.constant(SENTENCES))
    assert outputs["score"].numpy() == pytest.approx(expected.scores.numpy(), abs=1e-4)
    assert not outputs["is_truncated"].numpy().any()


@pytest.mark.long
def test_the_other_signatures(copy_run, copy_export):
    signatures = tf.saved_model.load(str(copy_export)).signatures
    translator, text = Translator.load(copy_run), tf.constant(SENTENCES)
    aligned = signatures["translate_with_attention"](text=text)
    expected = translator.translate_with_attention(text)
    assert aligned["translation"].numpy().tolist() == expected.texts.numpy().tolist()
    assert aligned["target_tokens"].numpy().tolist() == expected.target_tokens.numpy().tolist()
    assert aligned["source_tokens"].numpy().tolist() == expected.source_tokens.numpy().tolist()
    np.testing.assert_allclose(aligned["attention"], expected.attention, atol=1e-4)
    links = [pharaoh(one.links()) for one in translator.aligned_strings(SENTENCES)]
    assert [text.decode() for text in aligned["alignment"].numpy()] == links
    scored = signatures["score"](source=text, target=text)
    wanted = translator.score(text, text)
    np.testing.assert_allclose(scored["log_probability"], wanted.log_probabilities, atol=1e-3)
    np.testing.assert_allclose(scored["token_log_probabilities"], wanted.token_log_probabilities, atol=1e-3)
    assert scored["tokens"].numpy().tolist() == wanted.lengths.numpy().tolist()
    counted = signatures["count_tokens"](text=text)["tokens"].numpy().tolist()
    assert counted == translator.count_tokens(SENTENCES)
    exported = ExportedTranslator(copy_export)
    assert exported.count_tokens(SENTENCES) == counted
    pairs = [(sentence, sentence) for sentence in SENTENCES]
    for one, other in zip(exported.score_strings(pairs), translator.score_strings(pairs), strict=True):
        assert one == pytest.approx(other, abs=1e-3)


@pytest.mark.long
def test_the_steps_of_a_search_and_another_choice(copy_run, copy_export):
    """Every next token that is offered can be chosen: the translation then begins with it, and goes on."""
    signatures = tf.saved_model.load(str(copy_export)).signatures
    steps, text = signatures["search_steps"], tf.constant(["a b c d e", "", "k j i"])
    free = steps(text=text, prefix_ids=tf.constant(["", "", ""]))
    np.testing.assert_array_equal(free["translation"], signatures["serving_default"](text=text)["translation"])
    scores = signatures["score"](source=text[:1], target=free["translation"][:1])["token_log_probabilities"][0]
    ids = free["target_ids"][0].numpy()
    assert ids[-1] == END or ids[-1] == 0
    for place, token in enumerate(ids[ids > 0]):
        offered = list(free["next_ids"][0, place].numpy())
        log_probabilities = free["next_log_probabilities"][0, place].numpy()
        assert list(log_probabilities) == sorted(log_probabilities, reverse=True) and log_probabilities[0] <= 0
        assert log_probabilities[offered.index(token)] == pytest.approx(float(scores[place]), abs=1e-3)
    for other in free["next_ids"][0, 1].numpy()[:4]:
        chosen = [int(ids[0]), int(other)]
        found = steps(text=text[:1], prefix_ids=tf.constant([f"{chosen[0]} {chosen[1]}"]))
        assert found["target_ids"][0, :2].numpy().tolist() == chosen
        assert (
            found["target_tokens"][0, 1].numpy()
            == free["next_tokens"][0, 1].numpy()[list(free["next_ids"][0, 1].numpy()).index(other)]
        )
    best = [token.decode() for token in free["target_tokens"][0].numpy()]
    tree = search_tree(
        [[token.decode() for token in step] for step in free["considered_tokens"][0].numpy()],
        *(free[name][0].numpy() for name in ("parents", "places", "log_probabilities", "scores")),
        best,
    )
    assert [node.token for step in tree for node in step if node.is_best] == [token for token in best if token]
    for wrong in ("99999", "-1", "three", "12345678901234567890", "\xff"):
        found = steps(text=text, prefix_ids=tf.constant([wrong, "", wrong]))
        assert found["target_ids"][:, 0].numpy().tolist() == [UNKNOWN, 0, UNKNOWN]


@pytest.mark.long
@pytest.mark.parametrize("name", ["serving_default", "translate_n_best", "translate_with_attention"])
def test_odd_input_changes_no_other_translation(copy_export, name):
    """Any bytes: each is translated, or cut and said to be; an empty batch gives an empty one."""
    function = tf.saved_model.load(str(copy_export)).signatures[name]
    odd = [b"", b"  \t ", b"a", b"x" * 10_000, b"a " * 10_000, "\u20ac\U0001f469\u200d\U0001f467".encode()]
    odd += [
        "\u05e9\u05dc\u05d5\u05dd".encode(),
        b"\x01\x02\x7f",
        b"\xff\xfe\x80",
        b"a\x00b",
        b"\n\r\n",
        b"<s> </s> <pad>",
    ]
    (text,) = {"translation", "translations"} & function.structured_outputs.keys()
    expected = function(text=tf.constant(SENTENCES[:3]))[text].numpy()
    for item in odd:
        outputs = function(text=tf.constant([SENTENCES[0].encode(), item, *(s.encode() for s in SENTENCES[1:3])]))
        assert outputs[text].numpy()[[0, 2, 3]].tolist() == expected.tolist()
        assert outputs["is_truncated"].numpy().tolist() == [False, len(item) >= 10_000, False, False]
    assert function(text=tf.constant([], tf.string))[text].shape[0] == 0


def test_odd_pairs_change_no_other_score(copy_export):
    function = tf.saved_model.load(str(copy_export)).signatures["score"]
    alone = function(source=SENTENCES[:1], target=SENTENCES[:1])["log_probability"].numpy()
    for source, target in (
        (b"", b"a"),
        (b"a", b""),
        (b"\xff", b"\xfe"),
        (b"a " * 10_000, b"a"),
        (b"a", b"a " * 10_000),
    ):
        outputs = function(source=tf.constant([SENTENCES[0], source]), target=tf.constant([SENTENCES[0], target]))
        assert outputs["log_probability"].numpy()[:1] == pytest.approx(alone, abs=1e-3)
        assert np.isfinite(outputs["log_probability"].numpy()).all()
        assert outputs["is_truncated"].numpy().tolist() == [False, max(len(source), len(target)) >= 10_000]


@pytest.mark.long
def test_an_export_by_xla_gives_the_same(copy_run, copy_export, tmp_path):
    compiled = ExportedTranslator(export(copy_run, tmp_path / "1", DecodingConfig(jit_compile=True)))
    assert compiled.translate_strings(SENTENCES) == ExportedTranslator(copy_export).translate_strings(SENTENCES)


@pytest.mark.long
def test_bfloat16_is_half_as_large_and_nearly_the_same(copy_run, copy_export, tmp_path):
    halved = export(copy_run, tmp_path / "1", dtype="bfloat16")
    sizes = [(path / "variables" / "variables.data-00000-of-00001").stat().st_size for path in (copy_export, halved)]
    assert sizes[0] / 2 <= sizes[1] < 0.6 * sizes[0]
    text = tf.constant(SENTENCES[:7])
    plain, rounded = (tf.saved_model.load(str(path)).signatures for path in (copy_export, halved))
    for name in ("serving_default", "translate_with_attention"):
        expected, found = plain[name](text=text), rounded[name](text=text)
        assert {key: value.dtype for key, value in found.items()} == {k: v.dtype for k, v in expected.items()}
        assert found["translation"].numpy().tolist() == expected["translation"].numpy().tolist()
    scores = [signatures["serving_default"](text=text)["score"].numpy() for signatures in (plain, rounded)]
    np.testing.assert_allclose(*scores, atol=0.1)
    assert (scores[0] != scores[1]).any()


@pytest.mark.long
def test_terms(copy_run, copy_export):
    translator, exported = Translator.load(copy_run), ExportedTranslator(copy_export)
    terms = [["j", "c b"], [], ["e"]]
    found = exported.n_best_strings(SENTENCES[:3], 3, terms=terms)
    expected = translator.n_best_strings(SENTENCES[:3], 3, terms=terms)
    assert [[text for text, _ in row] for row in found] == [[text for text, _ in row] for row in expected]
    assert all(term in text for row, ways in zip(terms, found, strict=True) for term in row for text, _ in ways)
    assert exported.translate_strings(SENTENCES[:3], terms=terms) == [row[0][0] for row in found]
    with pytest.raises(InputError, match=r"gives no alignments with terms: give a run directory"):
        exported.aligned_strings(SENTENCES[:3], terms=terms)
    with pytest.raises(InputError, match=r"a term must have text, and no tab"):
        exported.translate_strings(["a"], terms=[[""]])


@pytest.mark.long
def test_n_best(copy_run, copy_export):
    exported = ExportedTranslator(copy_export)
    assert exported.description["config"]["decoding"]["beam_size"] == 4
    ours, theirs = Translator.load(copy_run).n_best_strings(SENTENCES, 3), exported.n_best_strings(SENTENCES, 3)
    for one, other in zip(ours, theirs, strict=True):
        assert [text for text, _ in one] == [text for text, _ in other]
        assert [score for _, score in one] == pytest.approx([score for _, score in other], abs=1e-4)
        assert sorted((score for _, score in one), reverse=True) == [score for _, score in one]
    assert [[text for text, _ in rows[:1]] for rows in ours] == [[t] for t in exported.translate_strings(SENTENCES)]
    for n in (5, 0, -1):
        with pytest.raises(InputError, match=rf"n_best must be 1 to 4, the beam_size\. Received: {n}"):
            exported.n_best_strings(SENTENCES, n)


@pytest.mark.long
def test_how_it_searches_is_chosen_at_export(copy_run, tmp_path):
    decoding = DecodingConfig(beam_size=2, length_penalty=0.0, max_length=3)
    exported = ExportedTranslator(export(copy_run, tmp_path / "1", decoding))
    assert exported.description["config"]["decoding"] == dataclasses.asdict(decoding)
    translator = Translator.load(copy_run, decoding)
    assert exported.n_best_strings(SENTENCES[:2], 2)[0][1][0] == translator.n_best_strings(SENTENCES[:2], 2)[0][1][0]
    assert all(len(text.split()) <= 3 for text in exported.translate_strings(SENTENCES))


@pytest.mark.long
def test_it_needs_only_tensorflow_and_tensorflow_text(copy_run, copy_export):
    code = f"""
        import json, sys
        import tensorflow as tf, tensorflow_text
        model = tf.saved_model.load({str(copy_export)!r})
        outputs = model.signatures["serving_default"](text=tf.constant({SENTENCES!r}))
        assert not {{"tf_transformer", "sentencepiece"}} & set(sys.modules)
        print(json.dumps([text.decode() for text in outputs["translation"].numpy()]))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False, cwd=copy_export
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == Translator.load(copy_run).translate_strings(SENTENCES)


def test_every_op_is_one_that_runtimes_have(copy_export):
    assert foreign_ops(copy_export) == set()


def test_foreign_ops_are_found(tmp_path):
    module = tf.Module()
    module.table = tf.Variable(tf.zeros([3, 2]))

    @tf.function(input_signature=[tf.TensorSpec([], tf.float32)], jit_compile=False)
    def update(x):
        from tensorflow.compiler.tf2xla.python import xla

        return xla.dynamic_slice(module.table, [0, 0], [1, 2]) * x

    tf.saved_model.save(module, str(tmp_path / "model"), signatures=update)
    assert foreign_ops(tmp_path / "model") == {"XlaDynamicSlice"}


def test_it_describes_itself(copy_export):
    assert is_saved_model(copy_export)
    description = json.loads((copy_export / OF_EXPORT).read_text())
    assert description["config"]["data"]["corpus"] == "copy"
    assert description["checkpoint"]["val_accuracy"] > 0.9


@pytest.mark.long
def test_a_server_finds_requests_to_warm_up_with(copy_export):
    file = copy_export / "assets.extra" / "tf_serving_warmup_requests"
    signatures = tf.saved_model.load(str(copy_export)).signatures
    called = {}
    for record in tf.data.TFRecordDataset(str(file)):
        request = PredictionLog.FromString(record.numpy()).predict_log.request
        inputs = {name: tf.constant(tf.make_ndarray(tensor)) for name, tensor in request.inputs.items()}
        outputs = signatures[request.model_spec.signature_name](**inputs)
        called.setdefault(request.model_spec.signature_name, []).append(len(next(iter(outputs.values()))))
        for text in (text for name, text in inputs.items() if name not in ("prefix_ids", "terms")):
            assert len(text[0].numpy().split()) == 11  # all the words there are
    assert called == {name: [1, 8] for name in signatures}


def test_a_page_beside_it_says_what_it_is(copy_export):
    readme = (copy_export / "README.md").read_text()
    assert readme.startswith("# source to target\n")
    assert "| Trained on | copy: 20,000 pairs |" in readme
    assert "| Search | beam of 4, length penalty 0.6 |" in readme
    assert "| `score` | `source`, `target` | " in readme
    assert "| Validation, accuracy | " in readme


def test_the_page_names_every_corpus_and_no_folder_of_whoever_trained(copy_export):
    description = json.loads((copy_export / OF_EXPORT).read_text())
    corpora = {"corpus": "/home/someone/secret/news", "extra_corpora": ["/mnt/crawled.tsv.gz", "tfds:ted/pt_to_en"]}
    description["config"]["data"] |= corpora
    page = card("1", description, "x.json", {})
    assert "| Trained on | news, crawled.tsv.gz and tfds:ted/pt_to_en: 20,000 pairs |" in page
    assert not any(part in page for part in ("someone", "secret", "/mnt"))


def test_an_existing_target_and_a_foreign_run_are_refused(copy_run, copy_export, tmp_path):
    before = sorted(os.listdir(copy_export))
    with pytest.raises(InputError, match=f"{copy_export} exists"):
        export(copy_run, copy_export)
    assert sorted(os.listdir(copy_export)) == before
    with pytest.raises(InputError, match="is not a run directory"):
        export(tmp_path, tmp_path / "out" / "1")
    assert os.listdir(tmp_path) == []


def test_a_foreign_saved_model_is_refused(tmp_path):
    tf.saved_model.save(tf.Module(), str(tmp_path / "theirs"))
    with pytest.raises(InputError, match="is not a SavedModel exported by tf-transformer"):
        ExportedTranslator(tmp_path / "theirs")


def test_a_full_disk_is_named_without_internals(copy_run, tmp_path, monkeypatch):
    def full(*_, **__):
        raise tf.errors.ResourceExhaustedError(
            None,
            None,
            "{{function_node __wrapped__SaveV2_dtypes_9_device_/job:localhost}} x/1/variables/part-0.tempstate17; "
            "No space left on device [Op:SaveV2]",
        )

    monkeypatch.setattr(tf.saved_model, "save", full)
    with pytest.raises(InputError, match=rf"^cannot write {tmp_path}/new/1: No space left on device$"):
        export(copy_run, tmp_path / "new" / "1")
    assert not list(tmp_path.iterdir())
