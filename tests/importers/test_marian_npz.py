"""Marian's own .npz: the same as CTranslate2's converter makes of it, and what is refused."""

import json

import ctranslate2
import numpy as np
import pytest
import tensorflow as tf
import yaml

from tf_transformer import Translator, load
from tf_transformer.commands.main import main
from tf_transformer.errors import InputError
from tf_transformer.importers.marian_npz import _vocabulary
from tf_transformer.importers.opening import import_model
from tf_transformer.runs.directory import RunDirectory

D, H, DFF, ENCODER, DECODER = 28, 7, 31, 3, 2
POST = {"transformer-preprocess": "", "transformer-postprocess": "dan", "transformer-postprocess-top": ""}
PRE = {"transformer-preprocess": "n", "transformer-postprocess": "da", "transformer-postprocess-top": "n"}
SETTINGS = {
    "type": "transformer",
    "transformer-decoder-autoreg": "self-attention",
    "transformer-no-projection": False,
    "transformer-ffn-activation": "swish",
    "transformer-postprocess-emb": "d",
    "transformer-guided-alignment-layer": "last",
    "transformer-heads": H,
    "transformer-dim-ffn": DFF,
    "dim-emb": D,
    "enc-depth": ENCODER,
    "dec-depth": DECODER,
    "tied-embeddings-all": True,
}


def random_weights(settings, vocabulary):
    """Arrays as Marian calls them; sharp enough to say something different to every sentence."""
    rng = np.random.default_rng(5)
    arrays = {}

    def add(name, *shape, scale=None):
        arrays[name] = (rng.normal(size=shape) * (scale or 1.6 / np.sqrt(shape[0]))).astype(np.float32)

    def norm(name, suffix):
        add(f"{name}_ln_scale{suffix}", 1, D, scale=0.1)
        arrays[f"{name}_ln_scale{suffix}"] += 1
        add(f"{name}_ln_bias{suffix}", 1, D, scale=0.1)

    suffix = "_pre" if settings["transformer-preprocess"] else ""
    if settings.get("tied-embeddings-all"):
        add("Wemb", vocabulary, D, scale=0.3)
    else:
        for side in ("encoder", "decoder"):
            add(f"{side}_Wemb", vocabulary, D, scale=0.3)
    for side, depth in (("encoder", ENCODER), ("decoder", DECODER)):
        for i in range(1, depth + 1):
            for kind in ("self", "context") if side == "decoder" else ("self",):
                for part in "qkvo":
                    add(f"{side}_l{i}_{kind}_W{part}", D, D)
                    add(f"{side}_l{i}_{kind}_b{part}", 1, D, scale=0.1)
                norm(f"{side}_l{i}_{kind}_Wo", suffix)
            add(f"{side}_l{i}_ffn_W1", D, DFF)
            add(f"{side}_l{i}_ffn_b1", 1, DFF, scale=0.1)
            add(f"{side}_l{i}_ffn_W2", DFF, D)
            add(f"{side}_l{i}_ffn_b2", 1, D, scale=0.1)
            norm(f"{side}_l{i}_ffn_ffn", suffix)
        if suffix:
            norm(f"{side}_top", "")
    if not (settings.get("tied-embeddings-all") or settings.get("tied-embeddings")):
        add("decoder_ff_logit_out_W", D, vocabulary, scale=0.3)
    add("decoder_ff_logit_out_b", 1, vocabulary, scale=0.5)
    return arrays


@pytest.fixture
def written(marian, tmp_path):
    """Makes a folder as OPUS-MT's archives are: the vocabulary and SentencePiece models are those of the sample."""

    def write(changes=None, arrays=None, decoder=None):
        folder = tmp_path / "npz"
        folder.mkdir()
        pieces = json.loads((marian / "vocab.json").read_text("utf-8"))
        pieces = [piece for piece in sorted(pieces, key=pieces.get) if piece != "<pad>"]
        lines = (f"{json.dumps(piece, ensure_ascii=False)}: {i}\n" for i, piece in enumerate(pieces))
        (folder / "opus.vocab.yml").write_text("".join(lines), "utf-8")
        for side in ("source", "target"):
            (folder / f"{side}.spm").write_bytes((marian / f"{side}.spm").read_bytes())
        settings = SETTINGS | POST | (changes or {})
        weights = random_weights(settings, len(pieces))
        if arrays:
            arrays(weights)
        text = np.frombuffer(yaml.safe_dump(settings).encode() + b"\0", np.int8)
        np.savez(folder / "model.npz", **weights, **{"special:model.yml": text})
        said = {"models": ["model.npz"], "vocabs": ["opus.vocab.yml"] * 2, "beam-size": 6, "normalize": 1}
        (folder / "decoder.yml").write_text(yaml.safe_dump(said | (decoder or {})), "utf-8")
        return folder

    return write


@pytest.mark.long_but_first
@pytest.mark.parametrize(
    "changes",
    [
        {},
        PRE | {"transformer-ffn-activation": "relu"},
        {"tied-embeddings-all": False, "tied-embeddings": True},
        {"tied-embeddings-all": False},
    ],
    ids=["post", "pre", "target", "none"],
)
def test_ctranslate2_makes_the_same_of_it(written, expected, tmp_path, changes):
    folder = written(changes)
    vocabulary = str(folder / "opus.vocab.yml")
    converter = ctranslate2.converters.MarianConverter(str(folder / "model.npz"), [vocabulary, vocabulary])
    converter.convert(str(tmp_path / "theirs"))
    other = ctranslate2.Translator(str(tmp_path / "theirs"), compute_type="float32")
    # CTranslate2 has the positions and the epsilon of transformers.
    layers = {"model": {"positions": "opus", "norm_epsilon": 1e-5}, "decoding": {"max_length": 19, "beam_size": 1}}
    run = import_model(folder / "model.npz", tmp_path / "run", layers)
    model, source, target, config = load(run.path)
    translator = Translator(model, source, target, config.decoding)
    texts = expected["sentences"]
    pieces = [[source.pieces[i] for i in ids] for ids in source.tokenize(texts).to_list()]
    _, found = translator.search(tf.constant(texts))
    results = other.translate_batch(pieces, beam_size=1, min_decoding_length=0, max_decoding_length=19)
    mine = [
        [target.pieces[i] if i != 1 else "<unk>" for i in ids if i not in (0, 3)] for ids in found.ids[:, 0].numpy()
    ]
    assert sum(ours != theirs.hypotheses[0] for ours, theirs in zip(mine, results, strict=True)) <= 1  # a near-tie
    scored = translator.score_strings(list(zip(texts, texts, strict=True)))
    results = other.score_batch(pieces, [[target.pieces[i] for i in ids] for ids in target.tokenize(texts).to_list()])
    for ours, result in zip(scored, results, strict=True):
        assert ours == pytest.approx(result.log_probs, abs=1e-4)


def test_it_searches_as_decoder_yml_says_with_marians_positions(written, tmp_path):
    run = import_model(written(), tmp_path / "run")
    assert (run.config.decoding.beam_size, run.config.decoding.length_penalty) == (6, 1.0)
    assert run.config.decoding.length_penalty_offset == 0
    assert (run.config.model.positions, run.config.model.norm_epsilon) == ("marian", 1e-6)
    model = load(run.path).model
    np.testing.assert_array_equal(model.encoder.embedding.tokens.table.numpy()[[0, 2]], np.zeros((2, D)))
    assert (model.output_bias.numpy()[[0, 2]] == -100).all()


def test_keys_of_a_vocabulary_as_marian_writes_them(tmp_path):
    file = tmp_path / "vocab.yml"
    lines = [
        "</s>: 0",
        "<unk>: 1",
        '"\\"": 2',
        "no: 3",
        "'a: b': 4",
        '"\\\\": 5',
        '"\\x85": 6',
        "? ü:ü",
        ": 7",
        '"ß": 8',
    ]
    file.write_text("\n".join(lines) + "\n", "utf-8")
    expected = ["</s>", "<unk>", '"', "no", "a: b", "\\", "\x85", "ü:ü", "ß"]
    assert _vocabulary(file).pieces == expected
    assert ctranslate2.converters.marian.load_vocab(str(file)) == expected


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"changes": {"type": "s2s"}}, "type=s2s"),
        ({"changes": {"transformer-decoder-autoreg": "rnn"}}, "transformer-decoder-autoreg=rnn"),
        ({"changes": {"transformer-ffn-activation": "gelu"}}, "Received: gelu"),
        ({"changes": {"transformer-postprocess-emb": "nd"}}, "transformer-postprocess-emb=nd"),
        ({"changes": {"transformer-postprocess": "dn"}}, "post-norm or pre-norm"),
        ({"changes": {"dec-depth": 3}}, "'decoder_l3_self_Wq'"),
        ({"changes": {"enc-depth": 2}}, "no place in this architecture: encoder_l3"),
        ({"arrays": lambda arrays: arrays.pop("decoder_ff_logit_out_b")}, "'decoder_ff_logit_out_b'"),
        ({"decoder": {"models": ["a.npz", "b.npz"]}}, "must name one file"),
        ({"decoder": {"models": ["other.npz"]}}, "other.npz"),
        ({"decoder": {"vocabs": ["other.yml"]}}, "other.yml"),
        ({"decoder": {"beam-size": 6.9}}, "decoder.yml: beam-size must be an integer from 1 to 1000000. Received: 6.9"),
        ({"decoder": {"beam-size": "six"}}, "decoder.yml: beam-size must be an integer"),
        ({"decoder": {"normalize": [1]}}, "decoder.yml: normalize must be a number from 0 to 10. Received: [1]"),
        ({"decoder": {"normalize": "yes!"}}, "decoder.yml: normalize must be a number"),
        ({"changes": {"transformer-ffn-activation": ["relu"]}}, "Received: ['relu']"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_does_not_fit_is_refused(written, tmp_path, capsys, change, said):
    assert main(["import", str(written(**change)), "--run-dir", str(tmp_path / "run")]) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["npz"]


@pytest.mark.parametrize(
    "line",
    [
        *(r'"\x": 2', r'"\UFFFFFFFF": 2', r'"\ud800": 2', '"a"b": 2'),
        *("a: 2.5", "a: -2", "a: " + 5000 * "9", "a: \u00b2"),
    ],
    ids=lambda line: line[:12],
)
def test_a_line_that_is_no_piece_is_named(tmp_path, line):
    file = tmp_path / "vocab.yml"
    file.write_text(f"</s>: 0\n<unk>: 1\n{line}\n", "utf-8")
    with pytest.raises(InputError, match=r"vocab\.yml, line 3"):
        _vocabulary(file)


NO_YAML = ("a: [", "a: 2001-99-99", "!!bool maybe", "!!int x", "!!timestamp x", "[" * 5000, "[1]")


@pytest.mark.parametrize("text", NO_YAML, ids=lambda text: text[:12])
def test_what_is_no_yaml_is_named(written, tmp_path, text):
    folder = written()
    (folder / "decoder.yml").write_text(text)
    with pytest.raises(InputError, match=r"decoder\.yml is not a YAML mapping"):
        import_model(folder, tmp_path / "run")


def test_a_setting_of_the_search_may_be_empty(written, tmp_path):
    decoding = import_model(written(decoder={"beam-size": None, "normalize": None}), tmp_path / "run").config.decoding
    assert (decoding.beam_size, decoding.length_penalty) == (12, 0.0)


@pytest.mark.parametrize("kept", [0, 100, 0.5, 0.999])
def test_an_npz_that_is_cut_off_is_named(written, tmp_path, kept):
    file = written() / "model.npz"
    whole = file.read_bytes()
    file.write_bytes(whole[: int(kept * len(whole)) if isinstance(kept, float) else kept])
    with pytest.raises(InputError, match=r"model\.npz"):
        import_model(file, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_settings_that_follow_from_the_weights_stay(written, tmp_path, capsys):
    folder, run = str(written()), str(tmp_path / "run")
    assert main(["import", folder, "--run-dir", run, "--set", "model.num_layers=2"]) == 2
    assert "model.num_layers follows from the weights" in capsys.readouterr().err
    chosen = ["--set", "decoding.beam_size=3", "--set", "data.source=en", "--set", "model.positions=opus"]
    assert main(["import", folder, "--run-dir", run, *chosen]) == 0
    config = RunDirectory(run).config
    assert (config.decoding.beam_size, config.data.source, config.model.positions) == (3, "en", "opus")


def test_a_vocabulary_that_is_a_sentencepiece_model_is_refused(written, tmp_path):
    with pytest.raises(InputError, match="models whose vocabulary is a SentencePiece model cannot be imported"):
        import_model(written(decoder={"vocabs": ["source.spm"] * 2}), tmp_path / "run")
