"""Every file of examples/ runs, in a short form, and does what it says."""

import importlib.util
import json
import re
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from tf_transformer import MultiHeadAttention
from tf_transformer.data.corpora import copy_task

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
SENTENCES = [source for source, _ in copy_task.pairs("test")[:2]]


def module(path: Path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


BEGIN = f"""
import sys
from tf_transformer import data

def read(config, split, whole=data.read):
    "Of the toy corpus, what is enough for a few updates."
    return data.Pairs(*(side[: 1999 if split == "train" else 53] for side in whole(config, split)))

data.read = read
sys.path.insert(0, {str(EXAMPLES)!r})
"""


@pytest.fixture
def run(in_fork):
    """Runs code that imports examples."""
    return lambda code, **options: in_fork(BEGIN + textwrap.dedent(code), **options)


def test_they_are_short_and_all_are_listed():
    files = sorted(path.name for path in EXAMPLES.glob("*.py"))
    assert len(files) >= 8
    index = (EXAMPLES / "README.md").read_text("utf-8")
    for name in files:
        assert len((EXAMPLES / name).read_text("utf-8").splitlines()) <= 60
        assert f"({name})" in index


@pytest.mark.long
def test_copy_task():
    """A tenth of its updates: it has not learned much yet, and decodes what it has."""
    assert 0 <= module(EXAMPLES / "copy_task.py").main(epochs=1) <= 1


def test_greedy_decoding_of_the_copy_task_stops_after_the_end():
    example = module(EXAMPLES / "copy_task.py")
    source = example.sequences(7, seed=3)
    assert ((source == example.END).sum(axis=1) == 1).all()
    assert (example.shifted(source)[:, 1:] == source[:, :-1]).all()


@pytest.mark.long
def test_text_classification_needs_positions():
    found = module(EXAMPLES / "text_classification.py").main(epochs=4)
    assert found[True] > 0.9 > 0.65 > found[False]


def test_other_scores_are_what_they_are_called(monkeypatch):
    """The dot product with queries divided by sqrt(d_k) is the paper's; a cosine does not depend on lengths."""
    monkeypatch.syspath_prepend(EXAMPLES)
    example = module(EXAMPLES / "attention_scores.py")
    x = np.random.default_rng(0).normal(size=(2, 5, 21)).astype("float32")
    mask = np.ones((2, 1, 5), bool)
    paper, dot = (kind(d_model=21, num_heads=3) for kind in (MultiHeadAttention, example.Scored))
    expected = paper(x, mask=mask)
    dot(x, mask=mask)
    dot.set_weights(paper.get_weights())
    kernel = dot.query_key_value.kernel
    kernel.assign(kernel.numpy() / np.where(np.arange(63) < 21, 7**0.5, 1))  # the biases are 0
    for ours, theirs in zip(dot(x, mask=mask), expected, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)
    cosine = example.Scored(d_model=21, num_heads=3)
    cosine.score = "cosine"
    _, weights = cosine(x, mask=mask)
    np.testing.assert_allclose(cosine(2 * x, mask=mask)[1], weights, atol=1e-5)  # biases are 0 at first
    additive = example.Scored(d_model=21, num_heads=3)
    additive.score = "additive"
    additive.build(x.shape)
    q, k = np.random.default_rng(1).normal(size=(2, 1, 3, 5, 7)).astype("float32")
    by_hand = np.tanh(q[:, :, :, None] + k[:, :, None]).sum(axis=-1)
    np.testing.assert_allclose(additive.scores(q, k), by_hand, atol=1e-5)


@pytest.mark.long
def test_variants_train_side_by_side(run, tmp_path):
    """Models of one small layer, for 12 updates."""
    small = "norms.SIZES |= dict(num_layers=1, d_model=16, dff=16)"
    code = f"import json, norms, {{0}}; {small}; print(json.dumps({{0}}.main(updates=12)))"
    for example, names in (("norms", 3), ("attention_scores", 4)):
        found = json.loads(run(code.format(example), cwd=tmp_path).splitlines()[-1])
        assert len(found) == names
        last = [losses[-1] for losses in found.values()]
        assert np.isfinite(last).all() and len(set(last)) == names
        assert all(len(losses) == 6 and losses[-1] < losses[0] for losses in found.values())


@pytest.mark.long
def test_several_devices_find_the_same_losses(tmp_path, run):
    code = "import json, several_devices; print(json.dumps(several_devices.main({}, updates=12)))"
    one, two = (json.loads(run(code.format(devices), cwd=tmp_path).splitlines()[-1]) for devices in (1, 2))
    assert len(one) == 12
    assert one[-1] < one[0]
    assert two == pytest.approx(one, rel=1e-4)


@pytest.mark.long
def test_translator_from_tsv(tmp_path, run):
    (tmp_path / "pairs.tsv").write_text(
        "".join(f"{'a b ' * (i % 7 + 1)}{i}\t{i}{' x y' * (i % 7 + 1)}\n" for i in range(400))
    )
    small = {"num_layers": 1, "d_model": 16, "num_heads": 2, "dff": 16}
    code = f"""
        import translator_from_tsv as t
        t.PRESETS = {{"tiny": t.override(t.PRESETS["tiny"], {{"model": {small}}})}}
        t.main("pairs.tsv", updates=12)
    """
    out = run(code, cwd=tmp_path)
    assert re.search(r"BLEU [\d.]+ on \d+ sentences", out)
    assert (tmp_path / "runs/example/export/1/saved_model.pb").exists()


@pytest.mark.long
def test_the_tutorial_as_script_and_as_notebook(tmp_path, run):
    out = run("import tf_tutorial", cwd=tmp_path, TUTORIAL_STEPS="12")
    assert "(2048, 512)" in out and re.search(r"^\(2, 8, \d+, 1[0-9]\)$", out, flags=re.M)
    sys.path.insert(0, str(ROOT / "scripts"))
    from notebook import notebook

    script = (EXAMPLES / "tf_tutorial.py").read_text("utf-8")
    assert (EXAMPLES / "tf_tutorial.ipynb").read_text("utf-8") == notebook(script), "run scripts/notebook.py"
    cells = json.loads(notebook(script))["cells"]
    code = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    assert re.sub(r"\s", "", code) in re.sub(r"\s|%%", "", script).replace("[markdown]", "")


@pytest.mark.long
def test_wordpiece(tmp_path, run):
    out = run("import wordpiece; print(wordpiece.main(updates=12))", cwd=tmp_path)
    assert re.search(r"^\['.*', '.*'\]$", out, flags=re.M)
    code = """
import wordpiece
tokenizer, size = wordpiece.tokenizer_of(["The cat sleeps.", "The cats slept."] * 50, 60)
ids = wordpiece.encoded(tokenizer, ["The cat sleeps."])
assert ids[0][-1] == 3 and 1 not in ids[0] and min(ids[0][:-1]) > 3, ids
print(b" ".join(tokenizer.detokenize([ids[0][:-1]]).to_list()[0]).decode())
"""
    assert run(code, cwd=tmp_path) == "The cat sleeps .\n"


@pytest.mark.long
def test_load_export(copy_export, capsys):
    assert module(EXAMPLES / "load_export.py").main(str(copy_export), SENTENCES) == SENTENCES
    out = capsys.readouterr().out
    log_p = re.search(rf"{SENTENCES[0]} -> {SENTENCES[0]}   \(log P (-?[\d.]+)\)", out)[1]
    assert f"as a given translation: log P {log_p}" in out


@pytest.mark.long
def test_attention_pictures(copy_run, tmp_path, capsys):
    files = module(EXAMPLES / "attention_pictures.py").main(str(copy_run), SENTENCES[1], str(tmp_path))
    assert [file.name for file in files] == ["encoder.svg", "decoder.svg", "cross.svg"]
    assert all(SENTENCES[1] in file.read_text("utf-8") for file in files)
    assert re.search(r"sharpest: layer \d+, head \d+", capsys.readouterr().out)
