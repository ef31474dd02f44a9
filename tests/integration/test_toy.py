"""The demo's translator."""

import json
from pathlib import Path

import pytest

from tf_transformer.cli import main
from tf_transformer.data import toy

CONFIG = Path(__file__).parents[2] / "scripts" / "toy.toml"


@pytest.mark.long
def test_at_least_95_percent_of_held_out_sentences_come_out_exactly(tmp_path, capsys):
    run = str(tmp_path / "run")
    assert main(["train", "--data", "toy", "--config", str(CONFIG), "--run-dir", run]) == 0
    capsys.readouterr()
    assert main(["evaluate", "--model", run, "--split", "test", "--json", "--output", str(tmp_path / "test.de")]) == 0
    assert json.loads(capsys.readouterr().out)["sentences"] == 1000
    translations = (tmp_path / "test.de").read_text().splitlines()
    references = [target for _, target in toy.pairs("test")]
    assert sum(map(str.__eq__, translations, references)) >= 950
