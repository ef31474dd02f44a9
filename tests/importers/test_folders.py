"""Folders as people have them: where ids are written, what the keys of their files do, and what they are not."""

import dataclasses
import json
import logging
import shutil
import sys
import zipfile
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf
from safetensors.numpy import load_file, save_file

from tf_transformer import Translator, load
from tf_transformer.config.special_tokens import END, PAD, UNKNOWN
from tf_transformer.errors import InputError
from tf_transformer.importers.keys import (
    CONFIG_REFUSED,
    CONFIG_TAKEN,
    CONFIG_WITHOUT_EFFECT,
    GENERATION_NOT_OURS,
    GENERATION_TAKEN,
    GENERATION_WITHOUT_EFFECT,
)
from tf_transformer.importers.opening import _reader, import_model
from tf_transformer.runs.directory import RunDirectory
from tf_transformer.tokenizers.vocabulary import Vocabulary

FIRST = 301
"""The id after the pieces of the sample of NLLB."""
PUBLISHED = {"eng_Latn": FIRST, "deu_Latn": FIRST + 1, "<mask>": FIRST + 2}
"""As the models that Meta published have them. The sample has the mask first."""


def read(folder):
    """All but the weights."""
    return _reader(folder)(folder)


def weights_of(imported):
    with imported.open() as tensors:
        return dict(imported.weights(tensors))


def token(text, special=True, **more):
    return {"content": text, "special": special, **more}


def as_tokenizer_json(ids, content):
    added = [token(text, id=id) for text, id in ids.items()]
    return {"tokenizer.json": content | {"added_tokens": content["added_tokens"][:4] + added}}


def as_decoder(ids, content):
    return {"tokenizer_config.json": {"added_tokens_decoder": {str(id): token(text) for text, id in ids.items()}}}


def as_added_tokens(ids, content):
    return {"added_tokens.json": ids, "special_tokens_map.json": {"additional_special_tokens": list(ids)[:2]}}


@pytest.mark.parametrize("written", [as_tokenizer_json, as_decoder, as_added_tokens])
def test_ids_are_those_that_are_written(changed, unpacked, written):
    content = json.loads((unpacked("nllb") / "tokenizer.json").read_text("utf-8"))
    ids = PUBLISHED | {"tyv_Cyrl": FIRST + 3}
    files = written(ids, content)

    def one_more(tensors):
        table = tensors["model.shared.weight"]
        tensors["model.shared.weight"] = np.concatenate([table, table[:5]])

    without = [name for name in ("tokenizer.json", "tokenizer_config.json") if name not in files]
    folder = changed({"vocab_size": FIRST + 8}, one_more, files, without, of="nllb")
    imported = read(folder)
    listed = ids.keys() - {"<mask>"} if written is not as_added_tokens else {"eng_Latn", "deu_Latn", "tyv_Cyrl"}
    assert set(imported.languages) == listed
    table = load_file(folder / "model.safetensors")["model.shared.weight"]
    ours = weights_of(imported)["transformer/encoder/embedding/tokens/table"]
    vocabulary = Vocabulary(imported.tokenizers["tokenizer.model"], vocab_size=len(ours), languages=imported.languages)
    for language, id in vocabulary.languages.items():
        np.testing.assert_array_equal(ours[id], table[ids[language]])


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (as_decoder(PUBLISHED, None), "'eng_Latn' has the id 302 in tokenizer.json and 301 in tokenizer_config.json"),
        ({"added_tokens.json": {"kaz_Cyrl": 302}}, "the id 302 is 'eng_Latn' in tokenizer.json and 'kaz_Cyrl' in"),
        ({"added_tokens.json": {"kaz_Cyrl": 17}}, "gives 'kaz_Cyrl' the id 17, which contradicts the vocabulary"),
        ({"added_tokens.json": {"kaz_Cyrl": 999}}, "vocabulary of 1000 pieces, but its model has 304"),
        ({"tokenizer_config.json": {"additional_special_tokens": ["tyv_Cyrl"]}}, "lists 'tyv_Cyrl' as a token, but no"),
    ],
    ids=["decoder", "id", "piece", "size", "list"],
)
def test_files_that_contradict_each_other_are_refused(refuses, files, said):
    refuses({"of": "nllb", "files": files}, said)


@pytest.fixture
def saved(changed, unpacked):
    """A folder as transformers 4.57 and PEFT saved it, by scripts/oracles/folders.py; gives also what it expects.

    The weights are those of the sample, but for the rows of the languages.
    """

    def get(name, of):
        place = unpacked("folders") / name
        expected = json.loads((place / "expected.json").read_text("utf-8"))
        rows = place / "rows.npy"

        def replace(tensors):
            table = tensors["model.shared.weight"]
            if rows.exists():
                tensors["model.shared.weight"] = np.concatenate([table[:FIRST], np.load(rows)])

        folder = changed(tensors=replace, of=of)
        if rows.exists():
            (folder / "tokenizer.json").unlink()
        for file in place.glob("*"):
            shutil.copy(file, folder)
        return folder, expected

    return get


@pytest.mark.long_but_first
@pytest.mark.parametrize(
    ("name", "languages"),
    [
        ("nllb_slow_published", ("eng_Latn", "deu_Latn")),
        ("nllb_slow_added", ("eng_Latn", "deu_Latn", "tyv_Cyrl")),
        ("marian_adapter", ()),
    ],
)
def test_folders_of_others_translate_as_in_transformers(saved, tmp_path, name, languages):
    """NLLB by the slow tokenizer, with the mask behind the languages; one more language; an adapter beside its base."""
    of = name.partition("_")[0]
    folder, expected = saved(name, of)
    run = import_model(folder, tmp_path / "run")
    assert run.languages == languages
    special = {1: PAD, 3: UNKNOWN, 2: END} if languages else {279: PAD, 1: UNKNOWN, 0: END}
    rest = [i for i in range(json.loads((folder / "config.json").read_text("utf-8"))["vocab_size"]) if i not in special]
    ours = special | {theirs: 4 + i for i, theirs in enumerate(rest)}
    loaded, length = load(run), expected["search"]["max_new_tokens"]
    direction = expected["directions"][-1]
    towards = {f"{side}_language": direction[f"{side}_language"] for side in ("source", "target") if languages}
    limits = {"max_length": length - bool(languages), "max_extra_length": length, "likely_stopping": False}
    search = dataclasses.replace(loaded.config.decoding, beam_size=4, **towards, **limits)
    translator = Translator(loaded.model, loaded.source_tokenizer, loaded.target_tokenizer, search)
    texts = tf.constant(direction["sentences"])
    for mine, theirs in zip(translator.encode_source(texts).ids.numpy().tolist(), direction["ids"], strict=True):
        assert [i for i in mine if i != PAD] == [ours[i] for i in theirs]
    found = translator.search(texts)[1].ids[:, 0].numpy().tolist()
    for mine, theirs in zip(found, direction["beam"]["ids"], strict=True):
        mine = [i for i in mine if i not in (PAD, END)]
        theirs = [ours[i] for i in theirs[2 if languages else 1 :]]
        if len(mine) < length - 2:  # there transformers forces the end token
            assert mine == [i for i in theirs if i not in (PAD, END)]


def test_tokenizer_json_alone_is_enough(changed, unpacked):
    """As transformers 5 saves NLLB."""
    found, whole = read(changed(of="nllb", without=["sentencepiece.bpe.model"])), read(unpacked("nllb"))
    assert found.config == whole.config and found.languages == whole.languages


def test_an_added_word_is_no_language(changed, caplog):
    """`zebra` is cut off where it begins a word, as transformers does it there."""
    ids = {"added_tokens.json": {"zebra": FIRST + 3}}
    folder = changed({"vocab_size": FIRST + 4}, files=ids, of="nllb")
    imported = read(folder)
    assert imported.languages == ("eng_Latn", "deu_Latn")
    assert "the added words zebra are tokens only where they begin a word" in caplog.text
    vocabulary = Vocabulary(imported.tokenizers["tokenizer.model"], vocab_size=FIRST + 5)
    ids, bare = vocabulary.encode(["the zebra he", "the he"])
    assert vocabulary.pieces[ids[-2]] == "▁zebra" and ids[:-2] + ids[-1:] == bare


@pytest.mark.parametrize("is_special", [True, False])
@pytest.mark.parametrize("of", ["marian", "m2m100", "nllb"])
def test_added_tokens_that_are_no_role_and_no_language_are_words(changed, unpacked, caplog, of, is_special):
    """Such as a fine-tune adds them. They are read as one token, as in transformers, and said."""
    size = json.loads((unpacked(of) / "config.json").read_text("utf-8"))["vocab_size"]
    settings = json.loads((unpacked(of) / "tokenizer_config.json").read_text("utf-8"))
    settings |= {"added_tokens_decoder": {str(size): token("<formal>", is_special)}}
    if is_special:
        settings["extra_special_tokens"] = [*settings.get("extra_special_tokens", []), "<formal>"]
    folder = changed({"vocab_size": size + 1}, files={"tokenizer_config.json": settings}, of=of)
    imported = read(folder)
    assert imported.languages == read(unpacked(of)).languages
    assert "the added words <formal> are tokens only where they begin a word" in caplog.text
    ours = imported.config.model.input_vocab_size
    vocabulary = Vocabulary(next(iter(imported.tokenizers.values())), vocab_size=ours, languages=imported.languages)
    ids, bare = vocabulary.encode(["<formal> the dog", "the dog"])
    assert ids[-1 - len(bare) :] == [ours - 1, *bare] and vocabulary.pieces[ours - 1] == "▁<formal>"


@pytest.mark.parametrize("texts", [("zebra", " zebra"), ("zebra ", "zebra", "▁zebra"), ("a b", "a▁b", " a b")])
@pytest.mark.parametrize("of", ["marian", "nllb"])
def test_added_words_that_differ_only_in_spaces_are_pieces_of_their_own(changed, unpacked, of, texts):
    size = json.loads((unpacked(of) / "config.json").read_text("utf-8"))["vocab_size"]
    added = {text: size + i for i, text in enumerate(texts)}
    imported = read(changed({"vocab_size": size + len(texts)}, files={"added_tokens.json": added}, of=of))
    for model in imported.tokenizers.values():
        vocabulary = Vocabulary(model, languages=imported.languages)
        pieces = [vocabulary.processor.id_to_piece(i) for i in range(vocabulary.processor.vocab_size())]
        assert len(set(pieces)) == len(pieces)


def test_ids_without_a_piece_get_one_that_is_not_there(changed, marian):
    pieces = json.loads((marian / "vocab.json").read_text("utf-8")) | {"<unused_281>": 280}
    model = read(changed({"vocab_size": 283}, files={"vocab.json": pieces})).tokenizers["source.model"]
    assert Vocabulary(model).pieces[281:284] == ["<unused_281>", "<<unused_281>>", "<unused_282>"]


def test_a_piece_that_sentencepiece_cannot_have_is_refused(refuses, marian):
    pieces = json.loads((marian / "vocab.json").read_text("utf-8")) | {"a\0b": 280}
    refuses({"config": {"vocab_size": 281}, "files": {"vocab.json": pieces}}, "make no SentencePiece model")


def test_a_vocabulary_may_be_smaller_than_its_model(changed, expected):
    def padded(tensors):
        tensors["model.shared.weight"] = np.pad(tensors["model.shared.weight"], [[0, 40], [0, 0]])
        tensors["final_logits_bias"] = np.pad(tensors["final_logits_bias"], [[0, 0], [0, 40]])

    imported = read(changed({"vocab_size": 320}, padded))
    assert imported.config.model.target_vocab_size == 321
    assert weights_of(imported)["transformer/output_bias"].shape == (321,)


def test_an_output_of_its_own_is_no_table(changed):
    def own_output(tensors):
        tensors["lm_head.weight"] = 2 * tensors["model.shared.weight"]

    weights = weights_of(read(changed({"tie_word_embeddings": False}, own_output)))
    tables = [weights[f"transformer/{side}/embedding/tokens/table"] for side in ("encoder", "decoder")]
    np.testing.assert_array_equal(*tables)
    np.testing.assert_array_equal(weights["transformer/output/kernel"], 2 * tables[0].T)


TABLES = {
    "config": [CONFIG_TAKEN, CONFIG_WITHOUT_EFFECT, set(CONFIG_REFUSED)],
    "generation": [GENERATION_TAKEN, GENERATION_WITHOUT_EFFECT, set(GENERATION_NOT_OURS)],
}


@pytest.mark.parametrize("version", ["4.57.6", "5.24.0"])
def test_each_key_of_transformers_is_in_one_table(request, version):
    """The keys of MarianConfig, M2M100Config and GenerationConfig, as both versions list them."""
    keys = json.loads(request.path.with_name("keys.json").read_text("utf-8"))[version]
    every = [table for tables in TABLES.values() for table in tables]
    for key in [*keys["config"], *keys["generation"]]:
        assert sum(key in table for table in every) == 1, key


@pytest.fixture
def as_set(changed, caplog):
    """Imports MarianMT with other settings of the search; gives its config and what was warned of."""

    def get(said, **change):
        folder = changed(files={"generation_config.json": said}, **change)
        with caplog.at_level(logging.WARNING):
            imported = read(folder)
        return imported, caplog.text

    return get


@pytest.mark.parametrize("key", sorted(GENERATION_NOT_OURS))
def test_settings_that_the_search_has_not_are_warned_of(as_set, key):
    assert f"generation_config.json: the search has no {key}=2.5; ignored" in as_set({key: 2.5})[1]


def test_settings_that_change_nothing_are_ignored(as_set, imported):
    neutral = {key: values[0] for key, values in GENERATION_NOT_OURS.items() if values}
    idle = dict.fromkeys([*GENERATION_WITHOUT_EFFECT, *GENERATION_NOT_OURS]) | neutral
    idle |= dict.fromkeys(GENERATION_WITHOUT_EFFECT - {"_from_model_config"}, 2)
    leftover = dict.fromkeys(CONFIG_WITHOUT_EFFECT, 2)
    found, warned = as_set(idle | {"pad_token_id": 279}, config=leftover)
    assert not warned
    assert found.config == RunDirectory(imported).config


def test_lengths_are_read(as_set):
    assert (
        as_set({"max_length": 100.0, "max_new_tokens": 60, "min_new_tokens": 7.0})[0].config.decoding.max_length == 60
    )


def test_lengths_of_new_tokens_leave_out_the_start(as_set):
    """In transformers, max_new_tokens=59 is max_length=60."""
    decoding = as_set({"max_length": 60.0, "min_length": 5})[0].config.decoding
    assert (decoding.max_length, decoding.min_length) == (59, 4)


def test_forbidden_tokens_get_no_probability(as_set, marian):
    words = {"bad_words_ids": [[279], [17], [0], [5, 6]], "suppress_tokens": [31], "renormalize_logits": True}
    imported, warned = as_set(words)
    assert "no bad_words_ids of several tokens; ignored: [[5, 6]]" in warned
    plain = load_file(marian / "model.safetensors")["final_logits_bias"][0]
    bias = weights_of(imported)["transformer/output_bias"]
    order = [279, 1, 279, 0, *range(2, 279)]
    changed = {id for ours, id in enumerate(order) if ours != 2 and bias[ours] != plain[id]}
    assert changed == {279, 17, 31}  # not the end


@pytest.mark.parametrize("key", ["bad_words_ids", "suppress_tokens"])
@pytest.mark.parametrize(("of", "unknown"), [("marian", 1), ("m2m100", 3), ("nllb", 3)])
def test_an_unknown_token_that_is_forbidden_is_not_written(changed, key, of, unknown):
    for place, id in enumerate((unknown, 17)):
        said = {"generation_config.json": {key: [[id]] if key == "bad_words_ids" else [id]}}
        found = read(changed(files=said, of=of, name=f"changed_{place}"))
        assert found.config.decoding.ban_unknown == (id == unknown)


@pytest.mark.parametrize("key", ["no_repeat_ngram_size", "min_length"])
@pytest.mark.parametrize(("beams", "renormalized"), [(4, True), (4, False), (1, True)])
def test_renormalising_after_a_step_is_warned_of(as_set, key, beams, renormalized):
    """transformers does it for all that is forbidden; our beams do not, and greedy search need not."""
    warned = as_set({"renormalize_logits": renormalized, "num_beams": beams, key: 3})[1]
    assert ("renormalize_logits is ignored for what" in warned) == (renormalized and beams > 1)


@pytest.mark.parametrize(("of", "id", "said"), [("marian", 5, "begin with it"), ("nllb", 5, "the id of a language")])
def test_a_first_token_that_is_no_language_is_refused(refuses, of, id, said):
    refuses({"of": of, "files": {"generation_config.json": {"forced_bos_token_id": id}}}, said)


def test_a_first_token_is_the_target_language(changed):
    folder = changed(of="nllb", files={"generation_config.json": {"forced_bos_token_id": FIRST + 2}})
    assert read(folder).config.decoding.target_language == "deu_Latn"


def test_a_byte_order_mark_is_no_damage(changed, marian):
    folder = changed()
    for file in folder.glob("*.json"):
        file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())
    assert read(folder).config == read(marian).config


VALUES = (None, "4", [1], {}, -1, 10**30, 0.5)
FUZZED = {
    "marian": ("config.json", "generation_config.json", "tokenizer_config.json", "vocab.json", "added_tokens.json"),
    "m2m100": ("config.json", "generation_config.json", "tokenizer_config.json", "vocab.json"),
    "nllb": ("tokenizer.json", "tokenizer_config.json", "added_tokens.json"),
}


def said_of(folder):
    """Why a folder is refused, or an empty string."""
    try:
        read(folder)
    except InputError as error:
        return str(error)
    return ""


@pytest.mark.long_but_first
@pytest.mark.parametrize("of", FUZZED)
def test_no_value_of_any_key_is_a_traceback(changed, of):
    """It is read or refused, in one line that names file and key."""
    folder = changed(of=of, files={"generation_config.json": {}, "added_tokens.json": {}})
    logging.disable(logging.WARNING)
    try:
        for file in (folder / name for name in FUZZED[of]):
            before = json.loads(file.read_text("utf-8"))
            known = {"config": CONFIG_TAKEN | GENERATION_TAKEN, "generation_config": GENERATION_TAKEN}.get(
                file.stem, ()
            )
            for key in (None, *sorted({*sorted(before)[:40], *known})):
                for value in VALUES:
                    file.write_text(json.dumps(value if key is None else before | {key: value}), "utf-8")
                    error = said_of(folder)
                    assert "\n" not in error
                    assert not error or folder.name in error
                    # In a vocabulary, the keys are pieces.
                    assert (
                        not error or key is None or key in error or file.stem in ("tokenizer", "vocab", "added_tokens")
                    )
            file.write_text(json.dumps(before), "utf-8")
    finally:
        logging.disable(logging.NOTSET)


def quantised(tensors):
    tensors["model.encoder.layers.0.fc1.weight"] = np.zeros((64, 32), np.int8)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"config": {"quantization_config": {"quant_method": "bitsandbytes"}}}, "is quantised ('bitsandbytes')"),
        ({"tensors": quantised}, "is quantised: import the model that it was made of"),
        ({"of": "m2m100", "files": {"tokenizer_config.json": {"tokenizer_class": "SMALL100Tokenizer"}}}, "SMaLL-100"),
        ({"of": "m2m100", "config": {"_name_or_path": "alirezamsh/small100"}}, "is SMaLL-100"),
        ({"of": "m2m100", "config": {"_name_or_path": "me/SMaLL-100-tuned"}}, "is SMaLL-100"),
        ({"files": {"tokenizer_config.json": {"tokenizer_class": "T5Tokenizer"}}}, "Received: 'T5Tokenizer'"),
        ({"config": {"architectures": ["MarianForCausalLM"]}}, "must be of encoder and decoder"),
        ({"files": {"adapter_config.json": {"peft_type": "LORA"}}}, "but no adapter_model.safetensors"),
        ({"config": {"num_beams": "4"}, "without": ["generation_config.json"]}, "num_beams must be an integer"),
        ({"files": {"generation_config.json": []}}, "generation_config.json must hold a JSON object. Received: []"),
        ({"config": {"dropout": None}}, "config.json: dropout must be a number from 0 to 0.999. Received: None"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_it_is_not_is_said(refuses, change, said):
    refuses(change, said)


@pytest.mark.parametrize(
    ("of", "name"), [("marian", "opus-small-100"), ("m2m100", "m2m-small-1000-steps"), ("m2m100", "small100k")]
)
def test_a_name_alone_makes_no_small100(changed, of, name):
    read(changed(of=of, name=name))


LORA = {"peft_type": "LORA", "r": 3, "lora_alpha": 6, "base_model_name_or_path": "Helsinki-NLP/opus-mt-en-de"}
WEIGHT = "model.encoder.layers.0.fc1.weight"


def write_adapter(folder, settings, name=WEIGHT, rows=64):
    rng = np.random.default_rng(1)
    factors = {side: rng.standard_normal(shape, np.float32) for side, shape in (("A", (3, 32)), ("B", (rows, 3)))}
    place = f"base_model.model.{name.removesuffix('.weight')}"
    save_file(
        {f"{place}.lora_{side}.weight": array for side, array in factors.items()}, folder / "adapter_model.safetensors"
    )
    (folder / "adapter_config.json").write_text(json.dumps(settings), "utf-8")
    return factors["B"] @ factors["A"]


@pytest.mark.parametrize(("more", "scale"), [({}, 2.0), ({"use_rslora": True}, 6 / 3**0.5)])
def test_an_adapter_is_added_to_its_base(changed, marian, more, scale):
    folder = changed()
    product = write_adapter(folder, LORA | more)
    found, plain = weights_of(read(folder)), weights_of(read(marian))
    kernel = "transformer/encoder/layer_0/feed_forward/inner/kernel"
    np.testing.assert_allclose(found.pop(kernel), plain.pop(kernel) + scale * product.T, rtol=1e-5, atol=1e-6)
    for name, array in found.items():
        np.testing.assert_array_equal(array, plain[name])


def write_head(tensors):
    tensors["lm_head.weight"] = tensors["model.shared.weight"].copy()


@pytest.mark.parametrize("of", ["marian", "m2m100", "nllb"])
@pytest.mark.parametrize("name", ["lm_head.weight", "model.shared.weight"])
def test_an_adapter_of_one_use_of_a_tied_table_is_refused(changed, of, name):
    """The other uses do not have its factors in transformers, and ours would."""
    folder = changed(tensors=write_head, of=of)
    write_adapter(folder, LORA, name, rows=len(load_file(folder / "model.safetensors")[name]))
    with pytest.raises(InputError, match=f"the adapter beside it changes {name}, which is one with other weights"):
        weights_of(read(folder))


def test_an_adapter_of_an_output_of_its_own_is_added(changed):
    folder = changed({"tie_word_embeddings": False}, write_head)
    plain = weights_of(read(folder))
    product = write_adapter(folder, LORA, "lm_head.weight", rows=280)
    found = weights_of(read(folder))
    order = [279, 1, 279, 0, *range(2, 279)]
    for name, array in found.items():
        more = 2 * product[order].T if name == "transformer/output/kernel" else 0
        np.testing.assert_allclose(array, plain[name] + more, rtol=1e-5, atol=1e-6)


def test_an_adapter_alone_names_its_base(tmp_path):
    write_adapter(tmp_path, LORA)
    with pytest.raises(InputError, match=r"is an adapter of 'Helsinki-NLP/opus-mt-en-de', and no model: copy its"):
        import_model(tmp_path, tmp_path / "run")


@pytest.mark.parametrize(
    ("settings", "name", "said"),
    [
        ({"peft_type": "IA3"}, WEIGHT, "peft_type must be LORA"),
        ({"use_dora": True}, WEIGHT, "use_dora must be unset"),
        ({"rank_pattern": {"fc1": 4}}, WEIGHT, "rank_pattern must be unset"),
        ({"init_lora_weights": "pissa"}, WEIGHT, "init_lora_weights must be one that leaves"),
        ({}, "model.encoder.layers.7.fc1.weight", "is no pair of factors of a weight of the model beside it"),
        ({}, "model.encoder.layers.0.fc2.weight", "do not fit"),
    ],
    ids=lambda value: value if isinstance(value, str) and " " in value else "",
)
def test_other_adapters_are_refused(changed, tmp_path, settings, name, said):
    folder = changed()
    write_adapter(folder, LORA | settings, name)
    with pytest.raises(InputError, match=said):
        import_model(folder, tmp_path / "run")


@pytest.fixture
def torch(monkeypatch):
    """Stands for PyTorch: a file has the name of the safetensors that it is made of; only zip files can be mapped."""

    def load(file, *, mmap, **_):
        if mmap and not zipfile.is_zipfile(file):
            raise RuntimeError("mmap can only be used with files saved with `_use_new_zipfile_serialization=True`")
        if zipfile.is_zipfile(file):
            with zipfile.ZipFile(file) as whole:
                name = whole.read("name").decode()
        else:
            name = file.read_text()
        return {key: Array(array) for key, array in load_file(name).items()}

    class Array(np.ndarray):
        def __new__(cls, array):
            return array.view(cls)

        def float(self):
            return self

        def numpy(self):
            return np.array(self)

    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(load=load, Tensor=Array))
    monkeypatch.setattr("tf_transformer.importers.tensors.reads_torch", lambda: True)


def as_old_pickle(source, file):
    file.write_text(str(source))


def as_zip(source, file):
    with zipfile.ZipFile(file, "w") as whole:
        whole.writestr("name", str(source))


@pytest.mark.parametrize("write", [as_old_pickle, as_zip])
@pytest.mark.usefixtures("torch")
def test_both_formats_of_torch_are_read(changed, marian, write):
    """That of versions before 1.6 is a pickle alone."""
    folder = changed(without=["model.safetensors"])
    write(marian / "model.safetensors", folder / "pytorch_model.bin")
    found, plain = (weights_of(read(each)) for each in (folder, marian))
    assert all(np.array_equal(found[name], array) for name, array in plain.items())


@pytest.mark.parametrize("parts", ["old", "gone"])
@pytest.mark.parametrize("whole", ["model.safetensors", "pytorch_model.bin"])
@pytest.mark.usefixtures("torch")
def test_a_whole_file_is_taken_before_the_index_of_old_parts(changed, marian, whole, parts):
    """A folder that is saved to again keeps the index."""
    folder = changed()
    tensors = load_file(folder / "model.safetensors")
    stem, _, kind = whole.partition(".")
    part, old = f"{stem}-00001-of-00001.{kind}", folder / "old"
    if parts == "old":
        save_file({name: 0 * array for name, array in tensors.items()}, old)
        shutil.copy(old, folder / part) if kind == "safetensors" else as_zip(old, folder / part)
    (folder / f"{whole}.index.json").write_text(json.dumps({"weight_map": dict.fromkeys(tensors, part)}))
    if kind == "bin":
        (folder / "model.safetensors").unlink()
        as_zip(marian / "model.safetensors", folder / whole)
    found, plain = (weights_of(read(each)) for each in (folder, marian))
    assert all(np.array_equal(found[name], array) for name, array in plain.items())


@pytest.mark.parametrize("name", ["sub/model.safetensors", "../model.safetensors", "/", ".", "..", "", "a\0b"])
def test_parts_elsewhere_are_refused(refuses, name):
    index = {"model.safetensors.index.json": {"weight_map": {"model.shared.weight": name}}}
    said = "is missing or damaged" if "\0" in name else "index.json: weight_map must name files beside it"
    refuses({"files": index, "without": ["model.safetensors"]}, said)


POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 298763\n"


@pytest.mark.parametrize("name", ["model.safetensors", "pytorch_model.bin", "vocab.json", "source.spm"])
def test_a_clone_without_its_large_files_is_named(changed, tmp_path, name):
    folder = changed(without=["model.safetensors"] if name == "pytorch_model.bin" else ())
    (folder / name).write_text(POINTER)
    with pytest.raises(InputError, match=f"{name} is only a pointer of Git LFS: run git lfs pull"):
        import_model(folder, tmp_path / "run")


def test_folders_of_others_are_named(changed, tmp_path):
    """A folder of checkpoints, a package of Argos Translate, an archive, and an OPUS-MT model without SentencePiece."""
    (tmp_path / "trainer").mkdir()
    folder = changed().rename(tmp_path / "trainer" / "checkpoint-500")
    said = {folder.parent: "but checkpoint-500 in it has: give ", tmp_path / "opus.zip": "is packed: unpack it"}
    (tmp_path / "opus.zip").write_bytes(b"PK")
    for name, files, expected in (
        ("ct2", ["model.bin", "config.json"], "is a model for CTranslate2: import the model"),
        ("argos", ["metadata.json", "model/config.json"], "but model in it has: give "),
        (
            "opus",
            ["decoder.yml", "source.bpe", "target.bpe"],
            "its text is cut by source.bpe, and not by SentencePiece",
        ),
    ):
        for file in files:
            (tmp_path / name / file).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name / file).write_text("{}")
        said[tmp_path / name] = expected
    for place, expected in said.items():
        with pytest.raises(InputError, match=expected):
            import_model(place, tmp_path / "run")
    assert not (tmp_path / "run").exists()
