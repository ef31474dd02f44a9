"""What the README shows runs."""

import os
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

from tf_transformer.arguments import parser

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")


def test_the_python_example_runs_and_is_short(tmp_path):
    (code,) = [block for block in re.findall(r"```python\n(.*?)```", README, flags=re.S) if "model.fit" in block]
    assert len(code.splitlines()) <= 40
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().endswith(".")


def test_every_command_it_shows_exists():
    shown = re.findall(r"^tf-transformer +([^\n|<>#]*)", README, flags=re.M)
    assert len(shown) >= 5
    for line in shown:
        parser(defaultdict(lambda: print)).parse_args(line.split())


def test_the_files_it_names_exist():
    for name in re.findall(r"`((?:scripts|docs|saved_models)/[\w./]+\.\w+)`", README):
        assert (ROOT / name).exists(), name
