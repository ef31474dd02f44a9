"""What long work says while its user waits."""

import os
import re
import subprocess
import sys

import pytest

from tf_transformer.progress import progress_bar, waiting_for


@pytest.mark.parametrize(
    ("total", "line"),
    [
        (3, r"reading: \d/3 lines in 00:00, 00:00 left, +[\d.]+ lines/s"),
        (None, r"reading: \d lines in 00:00, +[\d.]+ lines/s"),
    ],
)
def test_a_log_gets_lines(capfd, total, line):
    with progress_bar("reading", "lines", total, mininterval=0, delay=1e-9) as bar:
        for _ in range(3):
            bar.update()
    err = capfd.readouterr().err
    assert err.count("\n") >= 3 and "\r" not in err
    assert all(re.fullmatch(line, text) for text in err.splitlines()), err


def test_a_log_gets_nothing_of_what_is_done_within_a_minute(capfd):
    with waiting_for("loading"), progress_bar("reading", "lines", 2) as bar:
        bar.update(2)
    assert capfd.readouterr() == ("", "")


def test_a_terminal_sees_the_seconds_even_while_standard_error_leads_elsewhere():
    pty = pytest.importorskip("pty")
    code = """
import os, time
from tf_transformer.progress import waiting_for
with waiting_for("loading"):
    kept = os.dup(2)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    time.sleep(1.5)
    os.dup2(kept, 2)
os.write(2, b"done")
"""
    ours, theirs = pty.openpty()
    process = subprocess.Popen([sys.executable, "-c", code], stderr=theirs)
    os.close(theirs)
    shown = b""
    while b"done" not in shown:
        shown += os.read(ours, 1024)
    assert process.wait(60) == 0
    assert b"\rloading ... 0 s\rloading ... 1 s" in shown
    assert re.search(rb"\r +\rdone", shown)
