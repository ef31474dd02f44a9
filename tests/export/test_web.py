"""The export for browsers: its tokenizer, model and search in Node against Python, and its page in Chromium."""

import contextlib
import dataclasses
import functools
import gzip
import http.server
import io
import itertools
import json
import os
import random
import re
import shutil
import subprocess
import threading
from pathlib import Path

import numpy as np
import pytest
import sentencepiece
import tensorflow as tf
from playwright.sync_api import expect

from tests.conftest import unpack
from tf_transformer import PRESETS, Transformer, load
from tf_transformer import Translator as TensorFlowTranslator
from tf_transformer.commands.main import main
from tf_transformer.config import Config, DecodingConfig, TokenizerConfig, override
from tf_transformer.data.corpora import copy_task, toy
from tf_transformer.decoding.search_tree import search_tree
from tf_transformer.errors import InputError
from tf_transformer.export import litert, web, web_runtime
from tf_transformer.importers.opening import import_model
from tf_transformer.litert import Translator
from tf_transformer.litert.encoding import tokenised
from tf_transformer.runs.descriptions import FORMAT_VERSION
from tf_transformer.tokenizers import Tokenizer, train_tokenizer
from tf_transformer.tokenizers.vocabulary import SPACE_MARK, Vocabulary

HERE = Path(__file__).parent / "web"
WEB = Path(__file__).parents[2] / "web"
PAIRS = toy.pairs("train")[:300]
SOURCES = [source for source, _ in PAIRS]
COPIED = [source for source, _ in copy_task.pairs("test")[:200]]
ODD = [
    *("", " ", "\u200b", "  a  b ", "日本語 — naïve ☃ \u2581x", "a" * 57, "\ud800 lone"),
    *("10² ½ ，", "\u1100\u1161\u11a8", "<unk>", "<0x41>", "</s> a", ">>de<< a", "e\u0301"),
    *("\ufeffa\u0000", "👨\u200d👩\u200d👧", "a\u2028b\tc", "\U0010ffff\ue000", ">>de<<", ">>x y<< a>>de<<b"),
    *(
        "مرحبًا ـ\u200f 12٪",
        "क्षि हिन्दी।",
        "e" + "\u0301" * 40,
        "a\r\nb\x85c",
        "「日本」、２０％…",
        "🏴\U000e0067\U000e007f🇩🇪",
    ),
]
NODE = shutil.which("node")
needs_node = pytest.mark.skipif(NODE is None, reason="there is no Node")
needs_litert = pytest.mark.skipif(
    not (WEB / web_runtime.PACKAGE).is_dir(), reason="LiteRT.js is not installed: npm ci --prefix web"
)


def in_node(script, folder, given):
    done = subprocess.run(
        [NODE, str(HERE / script), str(folder)],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


@pytest.mark.long
@needs_litert
def test_the_scripts_have_the_types_that_they_say():
    done = subprocess.run(["npx", "tsc"], cwd=WEB, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout


def test_the_version_is_the_pinned_one():
    wanted = json.loads((WEB / "package.json").read_text())["dependencies"]["@litertjs/core"]
    locked = json.loads((WEB / "package-lock.json").read_text())["packages"]["node_modules/@litertjs/core"]
    assert wanted == locked["version"] == web_runtime.VERSION
    assert locked["integrity"]


# Tokenizers: what this project trains, and what SentencePiece has besides.
TRAINED = [
    ("bpe", "nfc", True),
    ("unigram", "nfc", True),
    ("unigram", "nmt_nfkc_cf", False),
    ("bpe", "identity", False),
    ("char", "nfc", False),
    ("word", "nmt_nfkc", True),
]
DEFINED = ["<x>", "ab", "abc", "gives a", f"{SPACE_MARK}the", "☃", "é", "..."]
OTHERS = [
    {"user_defined_symbols": DEFINED, "model_type": "unigram"},
    {"user_defined_symbols": DEFINED, "model_type": "bpe"},
    {"treat_whitespace_as_suffix": True, "model_type": "unigram"},
    {"treat_whitespace_as_suffix": True, "model_type": "word"},
    {"add_dummy_prefix": False, "remove_extra_whitespaces": False, "model_type": "bpe"},
    {"remove_extra_whitespaces": False, "model_type": "unigram", "unk_surface": " ?? "},
]


def made_up(count):
    """Lines of any characters."""
    rng = random.Random(3)
    places = [(0x20, 0x250), (0x250, 0x3000), (0x3000, 0xD800), (0xE000, 0x11000), (0x11000, 0x20000)]
    for _ in range(count):
        yield "".join(chr(rng.randrange(*rng.choice(places))) for _ in range(rng.randrange(1, 30)))


def mixed(count):
    """Lines of pieces that are defined, parts of them, and words."""
    rng = random.Random(7)
    parts = [*DEFINED, "the", "the a", "a", "b", "c", "..", "e", " ", "thesis", *SOURCES[0].split()]
    for _ in range(count):
        yield "".join(rng.choice(parts) + rng.choice(["", " "]) for _ in range(rng.randrange(1, 12)))


@pytest.fixture(scope="module")
def tokenised_in_node(tmp_path_factory):
    """By kind of tokenizer and the number of its pieces that are not in use: the ids and texts of Node and Python."""
    folder, text = tmp_path_factory.mktemp("tokenizers"), list(itertools.chain.from_iterable(PAIRS))
    lines = [*SOURCES[:50], *ODD, *made_up(300), *mixed(300), "<x>gives a☃ x <x>", " ".join(SOURCES[:9])]
    rng = random.Random(5)
    asked, expected = [], {}
    for number, kind in enumerate([*TRAINED, *OTHERS]):
        file = folder / f"{number}.model"
        file.write_bytes(tokenizer_of(kind, text, folder))
        for unused in (0, 31):
            size = Vocabulary.load(file).vocab_size - unused
            vocabulary = Vocabulary.load(file, vocab_size=size)
            ids = [[rng.randrange(size) for _ in range(rng.randrange(9))] for _ in range(300)]
            ids += [[rng.randrange(4, min(264, size)) for _ in range(6)] for _ in range(200)]
            asked.append({"model": str(file), "size": size, "lines": lines, "ids": ids})
            texts = [vocabulary.processor.decode([id for id in row if id == 1 or id > 3]) for row in ids]
            texts = [text.replace(SPACE_MARK, " ").removeprefix(" ") for text in texts]
            expected[str(kind), unused] = {"ids": tokenised(vocabulary, lines), "texts": texts}
    said = in_node("tokens.mjs", web.SCRIPTS, {"blanks": web.BLANKS, "of": asked})
    return {key: (ours, theirs) for (key, theirs), ours in zip(expected.items(), said, strict=True)}


def tokenizer_of(kind, text, folder):
    """A SentencePiece model; byte_fallback and the like are those of `kind`."""
    if isinstance(kind, tuple):
        model_type, normalization, byte_fallback = kind
        options = {"model_type": model_type, "normalization": normalization, "byte_fallback": byte_fallback}
        return train_tokenizer(text, TokenizerConfig(vocab_size=400, **options), ["de"])
    options = {"pad_id": 0, "unk_id": 1, "bos_id": 2, "eos_id": 3, "hard_vocab_limit": False, "minloglevel": 2}
    model = io.BytesIO()
    trainer = sentencepiece.SentencePieceTrainer
    trainer.train(sentence_iterator=iter(text), model_writer=model, vocab_size=300, **options, **kind)
    return model.getvalue()


@pytest.mark.long_but_first
@needs_node
@pytest.mark.parametrize("what", ["ids", "texts"])
@pytest.mark.parametrize("unused", [0, 31])
@pytest.mark.parametrize("kind", [*TRAINED, *OTHERS], ids=str)
def test_the_tokenizer_is_that_of_sentencepiece(tokenised_in_node, kind, unused, what):
    ours, theirs = tokenised_in_node[str(kind), unused]
    assert ours[what] == theirs[what]


# A model of random weights with much that an encoder and a decoder may have, and models that transformers has trained.
KINDS = ["random", "marian", "nllb"]
RANDOM = {"norm": "pre", "activation": "gelu", "positions": "learned", "max_positions": 67}
RANDOM |= {"num_decoder_layers": 1, "output_bias": True, "key_dim": 5, "value_dim": 3}
SEARCHES = [
    {},
    {"beam_size": 1, "no_repeat_ngram": 2, "ban_unknown": True},
    {"coverage_penalty": 0.4, "length_penalty": 1.1},
    {"min_length": 7, "max_length": 11, "likely_stopping": True},
    {"early_stopping": True, "max_source_length": 9, "length_penalty": -0.5},
]
LANGUAGES = {"source": "deu_Latn", "target": "eng_Latn"}


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """Gives an export for browsers of a kind of model, in float32."""

    @functools.cache
    def get(kind):
        folder = tmp_path_factory.mktemp(kind)
        if kind == "random":
            random_model(folder / "web")
            web.complete(folder / "web", "web", web_runtime.find())
            return folder / "web"
        unpack(Path(__file__).parents[1] / "importers" / f"{kind}.tar.xz", folder)
        run = import_model(folder / kind, folder / "run")
        between = {"source_language": "eng_Latn", "target_language": "deu_Latn"} if run.languages else {}
        decoding = dataclasses.replace(run.config.decoding, beam_size=3, max_length=30, **between)
        return web.export(run, folder / "web", decoding, "float32")

    return get


def random_model(folder):
    """Write an export for LiteRT."""
    tf.keras.utils.set_random_seed(5)
    text = list(itertools.chain.from_iterable(PAIRS))
    tokenizer = Tokenizer(train_tokenizer(text, TokenizerConfig(vocab_size=440)))
    sizes = {"input_vocab_size": tokenizer.vocab_size, "target_vocab_size": tokenizer.vocab_size}
    model = Transformer(num_layers=2, d_model=14, num_heads=2, dff=33, **sizes, **RANDOM)
    model.build(((None, None), (None, None)))
    rng = np.random.default_rng(5)
    for weight in model.weights:
        if weight.path.endswith(("kernel", "table")):
            weight.assign(weight.numpy() * 1.7)
        elif weight.path.endswith(("bias", "beta", "gamma")):
            weight.assign(weight.numpy() + rng.normal(size=weight.shape) * 0.1)
    config = PRESETS["tiny"]
    whole = config.as_dict()
    whole["model"] = {name: model.config[name] for name in whole["model"]}
    whole["data"] |= {"corpus": "toy", "max_length": 67}
    whole["decoding"] |= {"beam_size": 3, "max_extra_length": 13}
    description = {"format_version": FORMAT_VERSION, "packages": {"tf-transformer": "", "tensorflow": ""}}
    litert.save(model, tokenizer, tokenizer, description | {"config": whole}, folder, "float32")


def python_of(exported, folder):
    """The translator in Python of the same files, unpacked."""
    shutil.copytree(exported, folder)
    for file in folder.glob("*.gz"):
        file.with_suffix("").write_bytes(gzip.decompress(file.read_bytes()))
    return Translator.load(folder, threads=1)


@needs_node
@needs_litert
@pytest.mark.long_but_first
@pytest.mark.parametrize("count", [12, 1000])
@pytest.mark.parametrize("kind", KINDS)
def test_it_translates_as_python_does(exported, tmp_path, kind, count):
    python = python_of(exported(kind), tmp_path / "python")
    sources = list(dict.fromkeys(source for source, _ in toy.pairs("train")))[:count]
    sentences = [*sources, *ODD, SOURCES[5] + " " + SOURCES[7]]
    searches = [*SEARCHES, LANGUAGES] if kind == "nllb" else SEARCHES
    asked = [{"sentences": sentences, "options": each | {"n": each.get("beam_size", 3)}} for each in searches]
    different, usual = 0, python.decoding
    for settings, said in zip(searches, in_node("translate.mjs", exported(kind), asked), strict=True):
        names = {name: f"{name}_language" for name in LANGUAGES}
        python.decoding = dataclasses.replace(usual, **{names.get(name, name): it for name, it in settings.items()})
        theirs = python.search(sentences, python.decoding.beam_size)
        for one, other in zip(said["found"], theirs, strict=True):
            scores = [score for score in other.scores if np.isfinite(score)]
            assert [each["score"] for each in one["translations"]] == pytest.approx(scores, abs=3e-4)
            assert one["isCut"] == other.source.is_cut
            texts = [text.replace("\n", " ") for text in other.texts[: len(scores)]]  # a translation is one line
            different += [each["text"] for each in one["translations"]] != texts
        attention = python.aligned(theirs)[0]
        if said["found"][0]["translations"][0]["text"] == attention.translation:
            np.testing.assert_allclose(said["attention"]["weights"], attention.attention, atol=1e-4)
    assert different <= len(sentences) * len(searches) // 50  # near-ties


@pytest.mark.long
@needs_node
@needs_litert
@pytest.mark.parametrize("prefix", ["", "Die"])
def test_the_steps_of_the_search_are_those_of_tensorflow(exported, prefix):
    """Those of the server's page come from there."""
    folder = exported("marian")
    sentence = SOURCES[0]
    model, source, target, config = load(folder.parent / "run")
    decoding = dataclasses.replace(config.decoding, beam_size=3, max_length=30)
    translator = TensorFlowTranslator(model, source, target, decoding)
    ids = target.tokenize([prefix]).to_list()[0]
    theirs = translator.translate_with_steps(tf.constant([sentence]), tf.constant([ids], tf.int32))
    asked = [{"sentences": [sentence], "options": {}, "prefix": ids}]
    ours = in_node("translate.mjs", folder, asked)[0]["steps"]
    assert ours["translation"] == theirs.texts[0].numpy().decode()
    assert ours["ids"] == theirs.target_ids[0].numpy().tolist()
    shown = [[one["id"] for one in of_step] for of_step in ours["next"]]
    assert shown == theirs.next_ids[0].numpy().tolist()
    probabilities = [[one["probability"] for one in of_step] for of_step in ours["next"]]
    np.testing.assert_allclose(probabilities, np.exp(theirs.next_log_probabilities[0]), atol=1e-5)
    pieces = [[piece.decode() for piece in row] for row in theirs.considered_tokens[0].numpy()]
    tree = search_tree(pieces, *(each[0] for each in theirs.considered[1:]), ours["tokens"])
    assert len(tree) == len(ours["tree"])
    for one, other in zip(itertools.chain(*tree), itertools.chain(*ours["tree"]), strict=True):
        assert other == pytest.approx(one._asdict(), abs=1e-4)


@pytest.mark.long
@needs_node
@needs_litert
def test_options_that_do_nothing_are_refused(exported):
    options = [{"beamsize": 3}, {"n": 4}, {"n": 1.5}, {"target": "toString"}]
    answers = in_node("translate.mjs", exported("nllb"), [{"sentences": ["a"], "options": each} for each in options])
    assert [answer.get("error") for answer in answers] == [
        "There is no setting beamsize of the search.",
        "n must be 1 to 3, the size of the beam. Received: 4",
        "n must be 1 to 3, the size of the beam. Received: 1.5",
        "The model has no target language toString.",
    ]


VALUES = ["abc", "3", "", None, True, False, [], {}, -11, -1, 0, 0.5, 1, 1.5, 2, 3, 10.5, 101, 1_000_000, 1_000_001]
IDLE = {"temperature", "top_k", "top_p", "seed", "attention_layer", "jit_compile", "source_language", "target_language"}


@needs_node
@needs_litert
@pytest.mark.parametrize("name", [field.name for field in dataclasses.fields(DecodingConfig)])
def test_a_setting_is_taken_where_python_takes_it_and_it_acts(exported, name):
    assert (name in web.SETTINGS) == (name not in IDLE)
    said = in_node("settings.mjs", exported("random"), [[name, value] for value in VALUES])
    for value, why in zip(VALUES, said, strict=True):
        try:
            override(Config(), {"decoding": {name: value}})
            is_wrong = name in IDLE
        except InputError:
            is_wrong = True
        assert bool(why) == is_wrong, (value, why)


@pytest.mark.long
@needs_node
@needs_litert
def test_why_a_setting_is_not_taken(exported):
    said = {
        ("beam_size", "3"): 'beam_size must be an integer, at least 1 and at most 1000000. Received: "3"',
        ("max_length", 0): "max_length must be an integer or null, at least 1 and at most 1000000. Received: 0",
        ("length_penalty_offset", -1): "length_penalty_offset must be a finite number, at least 0. Received: -1",
        ("ban_unknown", 1): "ban_unknown must be true or false. Received: 1",
        ("top_k", 3): "There is no setting top_k of the search.",
        (
            "target_language",
            "fra_Latn",
        ): "There is no setting target_language of the search: give the language as target.",
        ("toString", 1): "There is no setting toString of the search.",
    }
    assert in_node("settings.mjs", exported("random"), [*said]) == [*said.values()]
    [why] = in_node("settings.mjs", exported("nllb"), [["max_source_length", 2]])
    assert why.startswith("max_source_length must be at least 3 for a model with several languages")


@pytest.mark.long_but_first
@needs_node
@needs_litert
@pytest.mark.parametrize("kind", ["nllb", "random"])
def test_whatever_fails_its_memory_is_freed(exported, kind):
    kept = in_node("memory.mjs", exported(kind), None)
    for of_work in (kept["loading"], *kept["working"].values()):
        assert len(of_work) > 5
        assert not any(of_work), kept


def test_a_search_that_samples_is_refused(copy_run, tmp_path, capsys):
    sampling = ["--sampling-temperature", "1"]
    command = ["export", "--format", "web", "--run-dir", str(copy_run), "--output", str(tmp_path / "web")]
    assert main([*command, *sampling]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert not (tmp_path / "web").exists()


@pytest.fixture(scope="module")
def exported_copy(made_once, copy_run):
    """The model that copies, exported by the command line."""

    def export(output):
        kind = ["--format", "web", "--run-dir", str(copy_run)]
        assert main(["export", *kind, "--output", str(output / "web")]) == 0

    return made_once("copy_web", export) / "web"


class Handler(http.server.SimpleHTTPRequestHandler):
    """A plain web server: none that this project has. It breaks off in the middle of a file, or has rules.

    Or it sends one page for whatever it does not have.
    """

    breaks_off = None
    rules = ""
    falls_back = False

    def translate_path(self, path):
        found = super().translate_path(path)
        return str(Path(self.directory) / "index.html") if self.falls_back and not Path(found).exists() else found

    def copyfile(self, source, outputfile):
        content = source.read()
        outputfile.write(content[: len(content) // 2] if self.path == self.breaks_off else content)

    def end_headers(self):
        if self.rules:
            self.send_header("Content-Security-Policy", self.rules)
        super().end_headers()

    def log_message(self, *arguments):
        pass


@contextlib.contextmanager
def serve(folder, port=0, **how):
    handler = type("Handler", (Handler,), how)
    with http.server.ThreadingHTTPServer(("127.0.0.1", port), functools.partial(handler, directory=folder)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture
def page(context):
    page = context.new_page()
    page.asked, page.said = [], []
    page.on("request", lambda request: page.asked.append(request.url))
    page.on("console", lambda message: page.said.append(message.text))
    page.on("pageerror", lambda error: page.said.append(str(error)))
    return page


def translate(page, text):
    page.wait_for_load_state()  # a page that loads itself anew has a form before it has scripts, which take the key
    page.fill("#text", text)
    page.keyboard.press("Enter")


def copies(page, text):
    """Hold that the page, whose model copies, translates a text."""
    translate(page, text)
    expect(page.locator("#translation")).to_have_text(text)


@pytest.mark.long
@needs_litert
def test_the_page_translates_and_does_so_without_a_network(exported_copy, page):
    with serve(exported_copy) as address:
        page.goto(address)
        translate(page, "\n".join(COPIED[:2]))
        expect(page.locator("#translation")).to_have_text("\n".join(COPIED[:2]))
        expect(page.locator("#loading")).to_have_count(0)
        assert all(url.startswith(address) for url in page.asked)
    page.reload()  # the server is gone
    copies(page, COPIED[2])
    assert page.locator(".n-best tbody tr").count() > 1
    rows = page.locator(".attention tbody tr")
    expect(rows).to_have_count(11)  # ten symbols and the end
    page.locator(".steps summary").click()
    expect(page.locator(".tokens button")).to_have_count(11)
    page.get_by_role("button", name="write", exact=False).first.click()
    expect(page.locator(".tokens .chosen")).to_have_count(1)
    assert page.locator(".tree rect").count() > 11
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert page.said == []


@needs_litert
def test_a_program_translates_as_python_does(exported_copy, tmp_path, page):
    sentences = COPIED + ODD
    with serve(exported_copy) as address:
        page.goto(f"{address}README.md")
        found = page.evaluate(
            """async (sentences) => {
              const {Translator} = await import("/translator.js");
              const translator = await Translator.load("/");
              const found = await translator.translate(sentences);
              translator.batch = 3;
              const [first] = await translator.translate(sentences.slice(0, 5));
              return first.translations[0].text === found[0].translations[0].text ? found : [];
            }""",
            sentences,
        )
    theirs = python_of(exported_copy, tmp_path / "python").translate_strings(sentences)
    assert [each["translations"][0]["text"] for each in found[:200]] == theirs[:200] == sentences[:200]
    # What the model has never seen is a tie of many translations.
    assert [each["translations"][0]["text"] for each in found[200:203]] == ["", "", ""]


@pytest.mark.long
@needs_litert
def test_odd_text_is_said_or_translated(exported_copy, page):
    with serve(exported_copy) as address:
        page.goto(address)
        translate(page, "  \n ")
        expect(page.locator("#problem")).to_have_text("Write what is to be translated.")
        translate(page, "<b>&amp;" + "x y " * 400)
        expect(page.locator("#result")).to_be_visible()
        expect(page.locator(".cut")).to_be_visible()


@needs_litert
def test_the_languages_are_chosen_on_the_page(exported, tmp_path, page):
    text = "Der Hund schläft. Die Katze auch."
    with serve(exported("nllb")) as address:
        page.goto(address)
        page.locator("#source_language").select_option("deu_Latn")
        page.locator("#target_language").select_option("eng_Latn")
        translate(page, text)
        expect(page.locator("#sentences summary").nth(3)).to_be_visible()  # both are there
        translated = page.locator("#translation").inner_text()
    python = python_of(exported("nllb"), tmp_path / "python")
    python.decoding = dataclasses.replace(python.decoding, source_language="deu_Latn", target_language="eng_Latn")
    assert translated == " ".join(python.translate_strings(["Der Hund schläft.", "Die Katze auch."]))


@pytest.mark.long
@needs_litert
def test_a_code_at_the_front_is_that_of_all_sentences(exported, tmp_path, page):
    python = python_of(exported("marian"), tmp_path / "python")
    sentences = [f">>de<< {text}" for text in ("The dog sleeps.", "A man.", "Two men.")]
    first, second, third = python.translate_strings(sentences)
    with serve(exported("marian")) as address:
        page.goto(address)
        translate(page, ">>de<< The dog sleeps. A man.\nTwo men.")
        expect(page.locator("#sentences > details").nth(2)).to_be_visible()  # all are there
        assert page.locator("#translation").inner_text() == f"{first} {second}\n{third}"


@pytest.mark.long
@needs_litert
def test_what_is_open_stays_open_while_more_is_translated(exported_copy, page):
    with serve(exported_copy) as address:
        page.goto(address)
        # What is asked for waits for the panel of the first sentence, which is opened as soon as it is there.
        page.evaluate(
            """() => new MutationObserver((_, observer) => {
              const first = document.querySelector("#sentences > details");
              if (!first) return;
              observer.disconnect();
              first.open = first.isOfFirst = true;
            }).observe(document.getElementById("sentences"), {childList: true})"""
        )
        translate(page, "\n".join(COPIED[:20]))
        expect(page.locator("#sentences > details")).to_have_count(20)
        assert page.evaluate("document.querySelector('#sentences > details').isOfFirst")
        assert page.locator("#sentences > details[open]").count() == 1
        expect(page.locator("#translation")).to_have_text("\n".join(COPIED[:20]))


@pytest.mark.long
@needs_litert
def test_a_text_that_nobody_waits_for_is_stopped(exported_copy, page):
    """Another text comes after the batch of the first that is computed, not after all of them."""
    with serve(exported_copy) as address:
        page.add_init_script(
            """globalThis.posted = [];
            globalThis.Worker = class extends Worker {
              constructor(...given) {
                super(...given);
                this.addEventListener("message", ({data}) => void (data.part && posted.push(data)));
              }
            };"""
        )
        page.goto(address)
        translate(page, "\n".join(COPIED * 5))
        expect(page.locator("#sentences > details").first).to_be_visible()
        translate(page, "\n".join(COPIED[:20]))
        expect(page.locator("#translation")).to_have_text("\n".join(COPIED[:20]))
        parts = page.evaluate("posted.map(({id, part}) => [id, part.sentences.length])")
    first, last = [[size for id, size in parts if id == of] for of in dict.fromkeys(id for id, _ in parts)]
    assert sum(first) < 500  # of 1000
    assert last == [1, 8, 8]  # each sentence comes once, and the rest with the answer


@pytest.fixture
def changed(exported_copy, tmp_path):
    """Gives a copy of the export in which a function changes a file."""

    def change(file, to):
        folder = shutil.copytree(exported_copy, tmp_path / "web")
        (folder / file).write_bytes(to((folder / file).read_bytes()))
        return folder

    return change


def half(content):
    return content[: len(content) // 2]


@pytest.mark.long_but_first
@needs_litert
@pytest.mark.parametrize("beam_size", [1, 4])
def test_the_example_in_the_readme_runs(changed, page, beam_size):
    def search(content):
        description = json.loads(content)
        description["config"]["decoding"]["beam_size"] = beam_size
        return json.dumps(description).encode()

    folder = changed("tf_transformer.json", search)
    [example] = re.findall(r"```html\n(.+?)```", (folder / "README.md").read_text("utf-8"), flags=re.S)
    (folder / "own.html").write_text(f"<link rel=icon href='data:,'>\n{example.replace('...', COPIED[0])}", "utf-8")
    with serve(folder) as address, page.expect_console_message() as message:
        page.goto(f"{address}own.html")
        assert message.value.text.startswith(f"{COPIED[0]} -"), page.said


DAMAGED = {
    "model": ("model.tflite.gz", half),
    "tokenizer": ("tokenizer.model.gz", lambda content: half(gzip.decompress(content))),
    "model, whole but damaged": ("model.tflite.gz", lambda content: gzip.compress(half(gzip.decompress(content)))),
}


@pytest.mark.long_but_first
@needs_litert
@pytest.mark.parametrize("what", DAMAGED)
def test_a_damaged_file_is_said_and_not_kept(changed, exported_copy, page, what):
    file, change = DAMAGED[what]
    folder = changed(file, change)
    os.utime(folder / file, (0, 0))  # browsers keep a file for longer that has not changed for long
    with serve(folder) as address:
        page.goto(address)
        said = f"{file} is damaged or cut off. Load the page again."
        expect(page.locator("#problem")).to_have_text(said)
        shutil.copyfile(exported_copy / file, folder / file)
        page.reload()
        copies(page, COPIED[0])


@needs_litert
def test_a_download_that_breaks_off_is_said_and_tried_again(exported_copy, page):
    with serve(exported_copy, breaks_off="/model.tflite.gz") as address:
        page.goto(address)
        said = "model.tflite.gz cannot be loaded: the connection broke off."
        expect(page.locator("#problem")).to_have_text(said)
    translate(page, COPIED[0])
    said = "model.tflite.gz cannot be loaded: the web server does not answer."
    expect(page.locator("#problem")).to_have_text(said)


@needs_litert
@pytest.mark.parametrize("file", ["runtime/relaxed.wasm.gz", "tf_transformer.json"])
def test_a_page_that_comes_instead_of_a_file_is_said(changed, page, file):
    with serve(changed(file, lambda content: b"<!doctype html>")) as address:
        page.goto(address)
        said = f"{file} is damaged or cut off. Load the page again."
        expect(page.locator("#problem")).to_have_text(said)


@needs_litert
def test_a_browser_with_no_memory_is_said(changed, page):
    none = b"WebAssembly.instantiate = () => Promise.reject(new RangeError('Out of memory'));\n"
    with serve(changed("worker.js", lambda content: none + content)) as address:
        page.goto(address)
        said = "The model needs more memory than the browser gives to a page."
        expect(page.locator("#problem")).to_have_text(said)


FORBIDDEN = "The web server forbids WebAssembly: its Content-Security-Policy needs script-src 'wasm-unsafe-eval'."
RULES = {"'self'": ("problem", FORBIDDEN), "'self' 'wasm-unsafe-eval'": ("translation", COPIED[0])}


@needs_litert
@pytest.mark.parametrize("scripts", RULES)
def test_rules_of_the_web_server_are_kept_or_said(exported_copy, page, scripts):
    where, what = RULES[scripts]
    with serve(exported_copy, rules=f"default-src 'self'; script-src {scripts}") as address:
        page.goto(address)
        translate(page, COPIED[0])
        expect(page.locator(f"#{where}")).to_have_text(what)


@needs_litert
@pytest.mark.parametrize("way", ["Enter", "click"])
def test_a_page_in_a_frame_that_may_send_no_form_translates(exported_copy, page, way):
    with serve(exported_copy) as address:
        page.goto(f"{address}README.md")
        page.evaluate(
            """() => new Promise((resolve) => {
              const frame = Object.assign(document.createElement("iframe"), {src: "/", onload: resolve});
              frame.sandbox = "allow-scripts allow-same-origin";
              document.body.append(frame);
            })"""
        )
        frame = page.frame_locator("iframe")
        frame.locator("#text").fill(COPIED[0])
        if way == "Enter":
            frame.locator("#text").press("Enter")
        else:
            frame.get_by_role("button", name="Translate").click()
        expect(frame.locator("#translation")).to_have_text(COPIED[0])


@pytest.mark.long
@needs_litert
def test_a_web_server_that_holds_back_files_about_the_page_keeps_none_from_it(changed, page):
    folder = changed("README.md", lambda content: content)
    for name in ("README.md", "package.json"):
        (folder / name).unlink()
    with serve(folder) as address:
        page.goto(address)
        copies(page, COPIED[0])
    page.reload()  # the server is gone
    copies(page, COPIED[1])


@pytest.mark.long
@needs_litert
def test_a_newer_export_is_shown_the_second_time_that_it_is_there(changed, page):
    folder = changed("README.md", lambda content: content)
    with serve(folder) as address:
        page.goto(address)
        copies(page, COPIED[0])
        index = folder / "index.html"
        index.write_text(index.read_text("utf-8").replace("<h1>Translate", "<h1>Newer"), "utf-8")
        (folder / web.CONTENTS).unlink()
        (folder / web.CONTENTS).write_text(web._contents(folder), "utf-8")
        page.reload()
        page.evaluate(
            """async () => {
              const registration = await navigator.serviceWorker.ready;
              while (!registration.waiting) await new Promise((resolve) => setTimeout(resolve, 50));
            }"""
        )
        expect(page.locator("h1")).to_have_text("Translate")
        page.reload()
        expect(page.locator("h1")).to_have_text("Newer")
        copies(page, COPIED[1])


READ = "async (path) => (await fetch(path, {cache: 'no-store'})).text()"
"""What is at a path now: the browser's own cache does not see that a file changes within a second."""


@pytest.mark.long
@needs_litert
def test_of_what_is_at_the_same_address_only_the_export_is_kept(changed, page):
    folder = changed("README.md", lambda content: content)
    with serve(folder) as address:
        page.goto(address)
        copies(page, COPIED[0])
        for text in ("one", "two"):
            (folder / "api").write_text(text)
            assert page.evaluate(READ, "api?q=1") == text
        assert page.evaluate(READ, "page.js?v=2") == (folder / "page.js").read_text("utf-8")
        urls = page.evaluate(
            """async () => {
              const [name] = await caches.keys();
              return (await (await caches.open(name)).keys()).map((request) => request.url);
            }"""
        )
    files = {url.removeprefix(address) for url in urls}
    assert {"", "index.html", "worker.js", "model.tflite.gz"} < files
    assert not files & {"README.md", "api", "api?q=1", "page.js?v=2"}
    assert all((folder / file).exists() for file in files)


@pytest.mark.long
@needs_litert
@pytest.mark.parametrize("falls_back", [False, True])
def test_another_project_at_the_same_address_is_shown(exported_copy, tmp_path, page, falls_back):
    (tmp_path / "index.html").write_text("<link rel=icon href='data:,'><h1>Another</h1>", "utf-8")
    with serve(exported_copy) as address:
        page.goto(address)
        copies(page, COPIED[0])
    page.reload()  # there is no network
    expect(page.locator("h1")).to_have_text("Translate")
    with serve(tmp_path, int(address.rstrip("/").rpartition(":")[2]), falls_back=falls_back):
        page.goto(address)
        expect(page.locator("h1")).to_have_text("Another")
        page.reload()
        expect(page.locator("h1")).to_have_text("Another")
        assert page.evaluate("caches.keys()") == []
        assert page.evaluate("navigator.serviceWorker.getRegistrations().then((all) => all.length)") == 0


@needs_litert
def test_a_service_worker_that_does_not_start_is_not_waited_for(exported_copy, page):
    page.add_init_script("ServiceWorkerContainer.prototype.register = () => new Promise(() => {})")
    page.clock.install()
    with serve(exported_copy) as address:
        page.goto(address)
        translate(page, COPIED[0])
        page.clock.fast_forward(10_000)
        expect(page.locator("#translation")).to_have_text(COPIED[0])
    assert any("its service worker does not start" in said for said in page.said)


REFUSED = b"=> Promise.reject(new DOMException('', 'QuotaExceededError'));\n"


@pytest.mark.long_but_first
@needs_litert
@pytest.mark.parametrize("method", [b"put", b"addAll"])
def test_a_browser_with_no_room_translates_all_the_same(changed, page, method):
    folder = changed("service-worker.js", lambda content: b"Cache.prototype." + method + b" = () " + REFUSED + content)
    with serve(folder) as address:
        page.goto(address)
        copies(page, COPIED[0])


@pytest.mark.long
@needs_litert
def test_two_tabs_translate_at_once(exported_copy, page):
    with serve(exported_copy) as address:
        tabs = [page, page.context.new_page()]
        for tab, text in zip(tabs, COPIED, strict=False):
            tab.goto(address)
            translate(tab, text)
        for tab, text in zip(tabs, COPIED, strict=False):
            expect(tab.locator("#translation")).to_have_text(text)


TOO_OLD = {
    "WebAssembly.validate = () => false": "WebAssembly with SIMD",
    "delete globalThis.WebAssembly": "WebAssembly with SIMD",
    "delete globalThis.DecompressionStream": "decompression of files",
}


@needs_litert
@pytest.mark.parametrize("missing", TOO_OLD)
def test_a_browser_that_is_too_old_is_told(exported_copy, page, missing):
    page.add_init_script(missing)
    with serve(exported_copy) as address:
        page.goto(address)
        said = f"This browser is too old: it has no {TOO_OLD[missing]}, which the translator needs."
        expect(page.locator("#problem")).to_have_text(said)


@needs_litert
def test_a_page_that_is_opened_from_a_file_is_told(exported_copy, page):
    page.goto((exported_copy / "index.html").as_uri())
    expect(page.locator("#problem")).to_be_hidden()
    expect(page.get_by_role("alert")).to_contain_text("browsers do not run it from a file")


@needs_litert
def test_a_worker_that_cannot_be_started_is_said(exported_copy, page):
    page.add_init_script("globalThis.Worker = class extends Worker { constructor() { super('nowhere.js'); } }")
    with serve(exported_copy) as address:
        page.goto(address)
        why = "the browser or a rule of the web server does not let it start"
        said = f"The translator has stopped: {why}. Load the page again."
        for _ in range(2):
            expect(page.locator("#problem")).to_have_text(said)
            translate(page, COPIED[0])


def test_what_is_not_installed_is_named(copy_run, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(web_runtime, "PACKAGE", Path("nowhere"))
    assert main(["export", "--format", "web", "--run-dir", str(copy_run), "--output", str(tmp_path / "web")]) == 2
    assert "npm ci --prefix web" in capsys.readouterr().err
    assert not (tmp_path / "web").exists()


@needs_litert
def test_another_version_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(web_runtime, "VERSION", "1.0.0")
    with pytest.raises(InputError, match="needs LiteRT.js 1.0.0"):
        web_runtime.find()
