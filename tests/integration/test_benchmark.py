import json
import os
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "scripts" / "benchmark.py"


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
