import importlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "benchmark.py"


@pytest.mark.long
def test_it_measures_and_writes_what_it_measured(tmp_path):
    figures = tmp_path / "figures.json"
    subprocess.run(
        [sys.executable, str(SCRIPT), "--work", "limit", "--rounds", "2", "--threads", "1", "--json", str(figures)],
        check=True,
        capture_output=True,
        env=os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"},
    )
    rows = json.loads(figures.read_text())
    assert [row["unit"] for row in rows] == ["GFLOP/s", "GFLOP/s", "GB/s"] + 5 * ["steps/s"]
    for row in rows:
        assert len(row["figures"]["machine"]) == 2
        assert min(row["figures"]["machine"]) <= row["medians"]["machine"] <= max(row["figures"]["machine"])


@pytest.mark.long
@pytest.mark.parametrize("backend", ["tensorflow", "jax"])
def test_a_training_step_is_measured_on_a_backend(backend, tmp_path):
    figures = tmp_path / "figures.json"
    options = ["--presets", "small", "--dtypes", "float32", "--peers", "ours", "--backend", backend, "--rounds", "1"]
    subprocess.run(
        [sys.executable, str(SCRIPT), "--work", "train-step", *options, "--json", str(figures)],
        check=True,
        capture_output=True,
    )
    (row,) = json.loads(figures.read_text())
    assert row["medians"]["ours"] > 0 and row["notes"]["parameters"]["ours"] == 2_875_392


def test_a_ratio_says_how_many_times_better_the_first_is(monkeypatch):
    monkeypatch.syspath_prepend(SCRIPT.parent)
    from benchmarks.peer import Row
    from benchmarks.train_step import flops_per_target_token

    three_times = {"ours": [5.0, 6.0, 13.0], "peer": [1.0, 2.0, 3.0]}
    assert Row("training", "target tokens/s", three_times, {}).ratio("peer") == 3
    assert Row("start-up", "seconds", three_times, {}).ratio("peer") == 1 / 3
    reached = Row("training", "target tokens/s", three_times, {}, {"memory read, GB/s": 7, "not measured": 1})
    assert reached.shares({"memory read, GB/s": 28}) == {"memory read, GB/s": 0.25}
    # One layer each, widths of 1, one token a side: 4 + 2 + 2 + 2 and 4 + 2 + 2 + 4 products and one of the output,
    # twice counted as operations, three times for forward and backward.
    sizes = {"num_layers": 1, "d_model": 1, "dff": 1, "source": 1, "target": 1, "vocabulary": 1}
    assert flops_per_target_token(sizes) == 6 * (10 + 12 + 1)


def test_a_quick_run_is_one_table_beside_the_documented_ratios(monkeypatch):
    monkeypatch.syspath_prepend(SCRIPT.parent)
    from benchmarks.machine import Machine
    from benchmarks.peer import Row
    from benchmarks.quick import DOCUMENTED, report

    small, sentence, command, base = (
        next(work for work in DOCUMENTED if part in work) for part in ("small", "first sentence", "--help", "step base")
    )
    monkeypatch.setitem(DOCUMENTED, small, {"torch": (1.5, 2.5), "KerasHub": (None, 1.25)})
    monkeypatch.setitem(DOCUMENTED, sentence, {"CTranslate2 float32": (None, 0.125)})
    rows = [
        Row(sentence, "seconds", {"ours": [8.0, 9.0, 10.0], "CTranslate2 float32": [0.8, 0.9, 1.0]}, {}),
        Row(small, "target tokens/s", {"ours": [5000.0, 6000.0, 13000.0], "torch": [1000.0, 2000.0, 3000.0]}, {}),
        Row(command, "seconds", {"ours": [0.1, 0.1, 0.1]}, {}),
    ]
    old, new = (
        report(rows, Machine("A CPU", 2, 4, frozenset(flags)), 4, 61.4) for flags in ((), ("avx512f", "avx_vnni"))
    )
    split = [re.split(r"\s{2,}", line) for line in new.splitlines()]
    assert split[:6] == [
        ["work", "ours (least to most)", "peer", "ours is", "docs"],
        [small, "6,000 (5,000 to 13,000)", "torch", "3.00x", "2.50x"],
        ["", "KerasHub", "missing", "1.25x"],
        [sentence, "9 (8 to 10) s", "CTranslate2 float32", "0.10x", "0.12x"],
        [command, "0.1 (0.1 to 0.1) s"],
        [""],
    ]
    assert "missing: KerasHub; pip install 'tf-transformer[bench]'" in new
    assert f"{base}," in next(line for line in new.splitlines() if line.startswith("left out"))
    assert "A CPU; cores: 2, threads: 4; AVX-512: yes, VNNI: yes" in new and new.endswith("took 61 s")
    assert "AVX-512: no, VNNI: no" in old and "1.50x" in old and "docs/performance.md, AVX2" in old
    assert re.search(r"KerasHub +missing +-\n", old)


def test_a_machine_is_what_linux_says_of_its_threads(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(SCRIPT.parent)
    from benchmarks.machine import machine

    cpuinfo = tmp_path / "cpuinfo"
    thread = "processor\t: {}\nmodel name\t: A CPU: fast\nphysical id\t: 0\ncore id\t: {}\nflags\t\t: sse avx512f\n\n"
    cpuinfo.write_text("".join(thread.format(i, i // 2) for i in range(4)))
    found = machine(cpuinfo)
    assert found == ("A CPU: fast", 2, 4, {"sse", "avx512f"})
    assert found.has_avx512 and not found.has_vnni
    assert not machine(tmp_path / "none").flags


@pytest.mark.parametrize(
    ("other", "error"),
    [
        (["--work", "limit"], "argument --work: not allowed with argument --quick"),
        (["--presets", "base"], "not allowed with --quick: --presets"),
    ],
)
def test_a_quick_run_refuses_what_it_does_not_take(monkeypatch, capsys, other, error):
    monkeypatch.syspath_prepend(SCRIPT.parent)
    monkeypatch.setattr(sys, "argv", ["benchmark.py", "--quick", *other])
    benchmark = importlib.import_module("benchmark")
    with pytest.raises(SystemExit, match="2"):
        benchmark.arguments()
    assert capsys.readouterr().err.splitlines()[1:] == [f"benchmark.py: error: {error}"]
