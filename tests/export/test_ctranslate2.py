"""Against CTranslate2: other people's encoder, decoder and search, with our weights."""

import ctranslate2
import numpy as np
import pytest
import tensorflow as tf

from tf_transformer import PRESETS, Transformer, Translator
from tf_transformer.commands.main import main
from tf_transformer.config import DecodingConfig, TokenizerConfig
from tf_transformer.data.corpora import copy_task, toy
from tf_transformer.errors import InputError
from tf_transformer.export.ctranslate2 import export, save
from tf_transformer.runs.weights import load
from tf_transformer.tokenizers import Tokenizer, train_tokenizer

PAIRS = toy.pairs("train")[:500]
SOURCES = [source for source, _ in PAIRS]
OPTIONS = [
    {},
    {"norm": "pre"},
    {"positions": "learned", "max_positions": 97},
    {"share_embeddings": "target", "activation": "gelu"},
    {"share_embeddings": "all", "norm": "pre", "activation": "silu"},
    {"share_embeddings": "all", "positions": "marian", "output_bias": True, "norm_epsilon": 1e-3},
    {"positions": "m2m100", "num_decoder_layers": 1, "output_bias": True},
]


@pytest.fixture(scope="module")
def tokenizers() -> tuple[Tokenizer, Tokenizer]:
    return tuple(
        Tokenizer(train_tokenizer([pair[i] for pair in PAIRS], TokenizerConfig(vocab_size=size, byte_fallback=False)))
        for i, size in enumerate((300, 400))
    )


def theirs(path) -> ctranslate2.Translator:
    return ctranslate2.Translator(str(path), compute_type="float32", intra_threads=2)


def pieces_of(tokenizer, texts):
    return [[tokenizer.pieces[i] for i in row] for row in tokenizer.tokenize(texts).to_list()]


def compare(translator, other, texts, **options):
    """Check that both find the same translations; gives how many are near-ties, different but equally good."""
    _, found = tf.function(translator.search)(tf.constant(texts))
    given = pieces_of(translator.source_tokenizer, texts)
    results = other.translate_batch(
        given,
        beam_size=translator.decoding.beam_size,
        min_decoding_length=0,
        length_penalty=0,
        return_scores=True,
        **options,
    )
    near_ties = 0
    pieces = translator.target_tokenizer.pieces
    for ids, total, result in zip(found.ids[:, 0].numpy(), found.log_probabilities[:, 0].numpy(), results, strict=True):
        ours = [pieces[i] for i in ids if i > 3 or i == 1]
        if ours != result.hypotheses[0]:
            assert abs(total - result.scores[0]) < 1e-3, (ours, result.hypotheses[0])
            near_ties += 1
        elif "suppress_sequences" not in options:
            assert total == pytest.approx(result.scores[0], abs=1e-4 * (len(ours) + 1))
    return near_ties


def random_model(sizes, seed=3, **option) -> Transformer:
    """Of weights that are sharp enough to say something different to every sentence."""
    tf.keras.utils.set_random_seed(seed)
    model = Transformer(**sizes | option)
    model.build(((None, None), (None, None)))
    for weight in model.weights:
        if weight.path.endswith(("kernel", "table")):
            weight.assign(weight.numpy() * 1.5)
        elif weight.path.endswith(("bias", "beta", "gamma")):
            weight.assign(weight.numpy() + np.random.default_rng(seed).normal(size=weight.shape) * 0.1)
    return model


@pytest.mark.long_but_first
@pytest.mark.parametrize("option", OPTIONS, ids=lambda o: "-".join(map(str, o.values())) or "paper")
def test_every_kind_of_model_gives_the_same(tokenizers, option, tmp_path):
    """Greedy translations, and the log-probability of every token of given ones."""
    if option.get("share_embeddings") == "all":
        tokenizers = tokenizers[:1] * 2
    source, target = tokenizers
    sizes = {"num_layers": 2, "d_model": 28, "num_heads": 7, "dff": 31}
    sizes |= {"input_vocab_size": source.vocab_size, "target_vocab_size": target.vocab_size}
    model = random_model(sizes, **option)
    save(model, source, target, tmp_path)
    other = theirs(tmp_path)
    translator = Translator(model, source, target, DecodingConfig(beam_size=1, max_length=19))
    never = [[target.pieces[0]], [target.pieces[2]]]  # padding and start, which ours does not write
    near_ties = compare(translator, other, SOURCES[:31], max_decoding_length=19, suppress_sequences=never)
    assert near_ties <= 1
    sides = [source for source, _ in PAIRS[:31]], [target for _, target in PAIRS[:31]]
    scored = translator.score_strings(list(zip(*sides, strict=True)))
    results = other.score_batch(pieces_of(source, sides[0]), pieces_of(target, sides[1]))
    for ours, result in zip(scored, results, strict=True):
        assert ours == pytest.approx(result.log_probs, abs=1e-4)


@pytest.mark.long
def test_a_random_base_model_gives_the_same(tokenizers, tmp_path):
    source, _ = tokenizers
    config = PRESETS["base"].model
    sizes = {name: getattr(config, name) for name in ("num_layers", "d_model", "num_heads", "dff", "share_embeddings")}
    model = random_model(sizes | {"input_vocab_size": source.vocab_size, "target_vocab_size": source.vocab_size})
    save(model, source, source, tmp_path)
    for beam_size in (1, 4):
        decoding = DecodingConfig(beam_size=beam_size, length_penalty=0.0, max_length=17)
        translator = Translator(model, source, source, decoding)
        assert compare(translator, theirs(tmp_path), SOURCES[:13], max_decoding_length=17) == 0


@pytest.mark.long_but_first
@pytest.mark.parametrize("beam_size", [1, 4])
def test_a_trained_model_gives_the_same(copy_run, beam_size, tmp_path):
    translator = Translator.load(copy_run, DecodingConfig(beam_size=beam_size, length_penalty=0.0))
    assert main(["export", "--run-dir", str(copy_run), "--output", str(tmp_path / "1"), "--format", "ctranslate2"]) == 0
    assert sorted(path.name for path in (tmp_path / "1").glob("*.model")) == ["tokenizer.model"]
    texts = [source for source, _ in copy_task.pairs("test")[:200]]
    assert compare(translator, theirs(tmp_path / "1"), texts, max_decoding_length=100) <= 1


def test_what_it_cannot_write_is_refused(copy_run, tokenizers, tmp_path, capsys):
    with pytest.raises(InputError, match=f"{tmp_path} exists"):
        export(copy_run, tmp_path)
    sizes = {"num_layers": 1, "d_model": 4, "num_heads": 2, "dff": 3, "input_vocab_size": 5, "target_vocab_size": 5}
    with pytest.raises(InputError, match="CTranslate2 has no activation 'mish'; it has relu"):
        save(random_model(sizes, activation="mish"), *tokenizers, tmp_path)
    with pytest.raises(InputError, match="heads of width d_model / num_heads. Received: key_dim=2, value_dim=3"):
        save(random_model(sizes, value_dim=3), *tokenizers, tmp_path)
    command = ["export", "--run-dir", str(copy_run), "--output", str(tmp_path / "1"), "--format", "ctranslate2"]
    assert main([*command, "--beam-size", "2"]) == 2
    assert "is told how to search when it is called" in capsys.readouterr().err
    assert main([*command, "--dtype", "bfloat16"]) == 2
    assert "chooses its type when it loads a model" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_the_vocabulary_is_that_of_the_tokenizer(copy_run, tmp_path):
    output = export(copy_run, tmp_path / "1")
    assert (output / "tokenizer.model").read_bytes() == load(copy_run).source_tokenizer.model
