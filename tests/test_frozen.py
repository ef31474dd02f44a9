"""What an earlier version wrote stays readable: a format may grow, and may not break."""

from pathlib import Path

import numpy as np
import pytest

from tests.conftest import unpack
from tf_transformer.commands.main import main

FROZEN = Path(__file__).parent / "frozen"
SAMPLES = ["shared_ema", "separate_learned", "averaged", "export_shared_ema", "export_separate_learned"]


def unpacked(name: str, folder: Path) -> Path:
    unpack(FROZEN / f"{name}.tar.xz", folder)
    return folder / name.removeprefix("export_")


def numbers_and_texts(output: str, texts: bool) -> tuple[list[float], list[str]]:
    """The numbers of lines of numbers, or of numbers before a text, and those texts."""
    rows = [line.split("\t") for line in output.removesuffix("\n").split("\n")]
    assert rows
    if texts:
        return [float(row[0]) for row in rows], [row[1] for row in rows]
    return [float(number) for row in rows for number in row], []


def with_certain_nothing(scores: str) -> str:
    """The scores as a run gives them now: a pair of empty lines is certain, as in its search. Exports keep theirs."""
    source, target = ((FROZEN / name).read_text("utf-8").splitlines() for name in ("source.txt", "target.txt"))
    rows = zip(scores.splitlines(), map(any, zip(source, target, strict=True)), strict=True)
    return "\n".join(row if has_text else "0\t1\t0" for row, has_text in rows)


@pytest.mark.long_but_first
@pytest.mark.parametrize("name", SAMPLES)
def test_it_translates_and_scores_as_it_did(name, tmp_path, capfdbinary, monkeypatch):
    model = str(unpacked(name, tmp_path))
    commands = {
        "n_best": ["translate", "--model", model, "--n-best", "4", "--scores"],
        "score": ["score", "--model", model, "--tokens", str(FROZEN / "source.txt"), str(FROZEN / "target.txt")],
    }
    for kind, command in commands.items():
        with (FROZEN / "source.txt").open("rb") as source:
            monkeypatch.setattr("sys.stdin", type("Stdin", (), {"buffer": source, "isatty": lambda: False}))
            assert main(command) == 0
        found = numbers_and_texts(capfdbinary.readouterr().out.decode(), kind == "n_best")
        before = (FROZEN / f"{name.removeprefix('export_')}.{kind}.txt").read_bytes().decode()
        if kind == "score" and not name.startswith("export_"):
            before = with_certain_nothing(before)
        expected = numbers_and_texts(before, kind == "n_best")
        np.testing.assert_allclose(found[0], expected[0], atol=2e-3)
        assert found[1] == expected[1]


@pytest.mark.long_but_first
@pytest.mark.parametrize("name", ["shared_ema", "separate_learned"])
def test_it_goes_on(name, tmp_path, caplog):
    run = unpacked(name, tmp_path)
    settings = {
        "shared_ema": "tokenizer.vocab_size=280 training.ema_decay=0.9 training.keep_last=1",
        "separate_learned": "tokenizer.vocab_size=17 tokenizer.shared=false tokenizer.byte_fallback=false "
        "model.share_embeddings=target model.positions=learned model.max_positions=80 model.norm=post "
        "training.ema_decay=0 training.keep_last=2",
    }[name] + (
        " model.d_model=8 model.num_heads=2 model.dff=12 model.num_layers=1 data.batch_tokens=64 data.max_length=16 "
        "training.samples=0 training.checkpoint_every=3"
    )
    given = [word for setting in settings.split() for word in ("--set", setting)]
    data = ["--data", str(FROZEN / "corpus"), "--source", "xx", "--target", "yy"]
    with caplog.at_level("INFO"):
        assert main(["train", *data, *given, "--max-steps", "12", "--run-dir", str(run)]) == 0
    assert f"going on from {run / 'checkpoints' / 'step-00000009.npz'}" in caplog.text
    assert (run / "checkpoints" / "step-00000012.npz").exists()


def test_the_average_is_averaged(tmp_path, capfd):
    averaged = unpacked("averaged", tmp_path)
    assert main(["info", "--json", str(averaged)]) == 0
    assert '"steps": [' in capfd.readouterr().out
