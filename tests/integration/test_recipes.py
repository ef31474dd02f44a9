"""The recipes run, on little text."""

import contextlib
import gc
import io
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Client, Listener
from pathlib import Path

import pytest

from tf_transformer import Transformer
from tf_transformer.commands.main import main
from tf_transformer.config import preset
from tf_transformer.config.overrides import override, read_toml
from tf_transformer.data.corpora.toy import pairs

RECIPES = Path(__file__).parents[2] / "scripts" / "recipes"
sys.path.insert(0, str(RECIPES))
import table3  # noqa: E402


@pytest.mark.parametrize("path", sorted(RECIPES.glob("*.toml")), ids=lambda path: path.stem)
def test_its_settings_are_settings(path):
    settings = read_toml(path)
    given = preset(settings.pop("preset"))
    assert override(given, settings) != given


def test_wmt14_is_the_papers_base():
    settings = read_toml(RECIPES / "wmt14_en_de.toml")
    config = override(preset(settings.pop("preset")), settings)
    model, training = config.model, config.training
    assert (model.num_layers, model.d_model, model.num_heads, model.dff, model.dropout_rate) == (6, 512, 8, 2048, 0.1)
    assert (model.norm, model.share_embeddings, config.tokenizer.shared) == ("post", "all", True)
    assert (training.max_steps, training.warmup_steps, training.label_smoothing) == (100_000, 4000, 0.1)
    assert (training.learning_rate_factor, training.ema_decay, training.keep_last) == (1.0, 0.0, 5)
    assert (config.tokenizer.vocab_size, config.data.batch_tokens) == (37_000, 25_000)
    assert (config.decoding.beam_size, config.decoding.length_penalty, config.decoding.max_extra_length) == (4, 0.6, 50)


@pytest.mark.long
@pytest.mark.parametrize(
    ("recipe", "languages", "folder", "splits", "tokenizer"),
    [
        ("multi30k_en_fr", ("en", "fr"), "tok", ("val", "test_2016_flickr"), "tok:none"),
        ("wmt14_en_de", ("en", "de"), "wmt14", ("test",), "tok:13a"),
        ("ted_pt_en", ("pt", "en"), "ted", ("test",), "tok:13a"),
    ],
)
def test_it_goes_from_text_to_an_export(tmp_path, recipe, languages, folder, splits, tokenizer):
    data = tmp_path / "data" / folder
    data.mkdir(parents=True)
    chosen = pairs("train")[:300]
    for split, part in {"train": chosen, "val": chosen[:11], **dict.fromkeys(splits, chosen[:11])}.items():
        for language, side in zip(languages, zip(*part, strict=True), strict=True):
            (data / f"{split}.{language}").write_text("\n".join(side) + "\n", "utf-8")
    sizes = ("model.num_layers=1", "model.d_model=8", "model.num_heads=2", "model.dff=16", "tokenizer.vocab_size=400")
    settings = [f"--set={setting}" for setting in (*sizes, "training.checkpoint_every=1")]
    command = ["sh", str(RECIPES / f"{recipe}.sh"), str(data), "--max-steps", "11", *settings]
    prepared = tmp_path / "prepared" / "small"
    if recipe == "wmt14_en_de":  # its vocabulary of 37,000 is too large for this text
        text = ["--data", str(data), "--source", "en", "--target", "de", "--config", str(RECIPES / f"{recipe}.toml")]
        assert main(["prepare", *text, "--set=tokenizer.vocab_size=400", "--output", str(prepared)]) == 0
    do = run if recipe == "ted_pt_en" else run_here  # one by processes of its own, as all are by hand
    shown = do(command, tmp_path, PREPARED=str(prepared))
    name = f"{recipe[:8]}_tok{recipe[8:]}" if folder == "tok" else recipe
    found = [json.loads(line) for line in shown.splitlines() if line.startswith("{")]
    assert [tokenizer in scores["signature"] for scores in found] == [True] * len(splits)
    for split in splits:
        assert (tmp_path / "runs" / name / f"{split}.{languages[1]}").read_bytes().count(b"\n") == 11
    assert (tmp_path / "saved_models" / name / "1" / "saved_model.pb").exists()


def small_text(folder: Path) -> Path:
    """A folder of 300 pairs to train on and 11 to validate on, English to German."""
    chosen = pairs("train")[:300]
    folder.mkdir(parents=True)
    for split, part in {"train": chosen, "val": chosen[:11]}.items():
        for language, side in zip(("en", "de"), zip(*part, strict=True), strict=True):
            (folder / f"{split}.{language}").write_text("\n".join(side) + "\n", "utf-8")
    return folder


def run(command: list[str], folder: Path, **environment: str) -> str:
    """Run a recipe as a user does, and return what it shows."""
    programs = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    settings = {"PATH": programs, "TF_CPP_MIN_LOG_LEVEL": "3"} | environment
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder, env=os.environ | settings)
    assert done.returncode == 0, done.stderr
    return done.stdout


ASK = """#!{python}
import os, sys
from multiprocessing.connection import Client

with Client({address!r}) as here:
    here.send((os.getcwd(), sys.argv[1:]))
    code, shown = here.recv()
print(shown, end="")
sys.exit(code)
"""
"""A `tf-transformer` that asks another process to do what is wanted."""


def run_here(command: list[str], folder: Path, **environment: str) -> str:
    """As `run`, but this process, which has imported TensorFlow already, does what the recipe's commands are to do."""
    with (
        tempfile.TemporaryDirectory() as short,  # the address of a socket has at most 108 characters
        Listener(f"{short}/here") as listener,
        ThreadPoolExecutor(1) as pool,
    ):
        program = Path(short) / "tf-transformer"
        program.write_text(ASK.format(python=sys.executable, address=listener.address))
        program.chmod(0o755)
        done = pool.submit(run, command, folder, PATH=f"{short}:{os.environ['PATH']}", **environment)
        done.add_done_callback(lambda _: Client(listener.address).send(None))
        while True:
            with listener.accept() as caller:
                asked = caller.recv()
                if asked is None:
                    return done.result()
                caller.send(_do(*asked))


def _do(folder: str, arguments: list[str]) -> tuple[int, str]:
    shown = io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True)
    with contextlib.chdir(folder), contextlib.redirect_stdout(shown):
        code = main(arguments)
    return code, shown.buffer.getvalue().decode()


@pytest.mark.long
def test_every_row_of_table_3_has_the_papers_parameters():
    """With one table of 41,000 embeddings, as guide page 18 infers it; the big model has a smaller one there."""
    checked = 0
    for name, row in table3.ROWS.items():
        if row.millions is None:
            continue
        sizes = {key: value for key, value in table3.settings(name).items() if key != "label_smoothing"}
        model = Transformer(**sizes, input_vocab_size=8, target_vocab_size=8, share_embeddings="all")
        model.build(((None, None), (None, None)))
        rows = 36_200 if name == "big" else 41_000
        count = model.count_params() + (rows - 8) * sizes["d_model"]
        assert round(count / 1e6) == row.millions, name
        checked += 1
        del model
        gc.collect()  # all of them together take gigabytes
    assert checked == 11
    assert {name[0] for name in table3.ROWS} == {"b", "A", "B", "C", "D", "E"}


def test_the_small_rows_of_table_3_are_the_papers_divided():
    small = table3.settings("B, d_k / 4", table3.SCALE)
    assert small == {
        **{"num_layers": 3, "d_model": 128, "num_heads": 8, "dff": 512, "dropout_rate": 0.1, "label_smoothing": 0.1},
        "key_dim": 4,
    }
    for name in table3.ROWS:
        sizes = table3.settings(name, table3.SCALE)
        assert sizes.get("key_dim") or sizes["d_model"] % sizes["num_heads"] == 0


@pytest.mark.long
def test_table_3_goes_from_text_to_a_table_and_a_picture_and_goes_on(tmp_path):
    data = small_text(tmp_path / "tok")
    command = ["sh", str(RECIPES / "table3.sh"), str(data), "--output", "found", "--updates", "2", "--rows", "base"]
    options = ["--set=tokenizer.vocab_size=400", "--set=training.warmup_steps=1", "--set=model.num_layers=1"]
    run([*command, *options], tmp_path)
    trained = (tmp_path / "found/base/config.json").stat().st_mtime_ns
    shown = run([*command, "B, d_k / 4", *options], tmp_path)
    assert (tmp_path / "found/base/config.json").stat().st_mtime_ns == trained
    lines = (tmp_path / "found/table.md").read_text().splitlines()
    assert [line.split(" | ")[0] for line in lines[2:]] == ["| base", "| B, d_k / 4"]
    assert lines[-1] in shown
    parameters = [int(line.split(" | ")[1].replace(",", "")) for line in lines[2:]]
    assert parameters[0] - parameters[1] == 3 * 2 * 8 * 12 * (128 + 1)  # 3 attentions, Q and K, 12 fewer of each head
    picture = (tmp_path / "found/table.svg").read_text()
    assert "B, d_k / 4" in picture and "difference from base" in picture


@pytest.mark.long
def test_distillation_goes_from_teachers_to_a_student_and_goes_on(tmp_path):
    data = small_text(tmp_path / "tok")
    sizes = ["--set=model.num_layers=1", "--set=model.d_model=8", "--set=model.num_heads=2", "--set=model.dff=16"]
    few = [*sizes, "--set=tokenizer.vocab_size=400", "--max-steps=3", "--set=training.samples=0"]
    text = ["--data", str(data), "--source", "en", "--target", "de"]
    for seed in ("0", "1"):
        assert main(["train", *text, *few, "--seed", seed, "--run-dir", str(tmp_path / seed)]) == 0
    command = ["sh", str(RECIPES / "distil.sh"), str(data), "en", "de", str(tmp_path / "0"), str(tmp_path / "1")]
    options = {"LINES": "200", "OPTIONS": " ".join([*few, "--set=model.num_decoder_layers=1"])}
    run_here(command, tmp_path, **options)
    parts = sorted((tmp_path / "runs/student.text.parts").glob("target.*"))
    assert [part.read_bytes().count(b"\n") for part in parts] == [200, 100]
    kept = parts[0].stat().st_mtime_ns
    parts[1].unlink()
    run_here(command, tmp_path, **options)
    assert parts[0].stat().st_mtime_ns == kept and parts[1].exists()
    described = json.loads((tmp_path / "runs/student/config.json").read_text())
    assert described["data"]["train"]["pairs"] == 600
    assert described["config"]["model"]["num_decoder_layers"] == 1
    (data / "train.en").write_text("Other text.\n" * 300)
    refused = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=os.environ | options)
    assert refused.returncode == 2
    assert "holds translations of other text or by other teachers" in refused.stderr


@pytest.mark.long
def test_a_student_of_another_seed_takes_over_the_teacher_and_its_text(tmp_path):
    data = small_text(tmp_path / "tok")
    for language in ("en", "de"):
        (data / f"test_2016_flickr.{language}").write_bytes((data / f"val.{language}").read_bytes())
    sizes = ("model.num_layers=1", "model.d_model=8", "model.num_heads=2", "model.dff=16", "tokenizer.vocab_size=400")
    settings = [f"--set={setting}" for setting in (*sizes, "training.checkpoint_every=1")]
    command = ["sh", str(RECIPES / "multi30k_distilled.sh"), str(data), "en", "de", "--max-steps", "11", *settings]
    shown = run_here(command, tmp_path)
    scores = [json.loads(line) for line in shown.splitlines() if line.startswith("{")]
    assert ["tok:none" in found["signature"] for found in scores] == [True, True]
    runs, name = tmp_path / "runs", "multi30k_tok_en_de_distilled"
    assert json.loads((runs / name / "config.json").read_text())["data"]["train"]["pairs"] == 600
    teacher = json.loads((runs / f"{name}_teacher/config.json").read_text())
    assert (teacher["data"]["train"]["pairs"], teacher["config"]["training"]["max_steps"]) == (300, 11)
    text = runs / f"{name}_teacher.text"
    assert (text / "train.en").read_bytes() == (data / "train.en").read_bytes()
    assert (text / "train.de").read_bytes().count(b"\n") == 300
    assert (tmp_path / f"saved_models/{name}/1/saved_model.pb").exists()

    kept = [path.stat().st_mtime_ns for path in (runs / f"{name}_teacher/averaged", *Path(f"{text}.parts").iterdir())]
    run_here([*command, "--seed", "1"], tmp_path, RUN_DIR="runs/1")
    again = [path.stat().st_mtime_ns for path in (runs / f"{name}_teacher/averaged", *Path(f"{text}.parts").iterdir())]
    assert again == kept
    assert json.loads((runs / "1/config.json").read_text())["config"]["training"]["seed"] == 1
