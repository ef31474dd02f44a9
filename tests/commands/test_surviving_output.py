"""Work goes on when nobody reads standard output any more."""

import subprocess
import sys

CODE = """
import logging, sys, time
from tf_transformer.commands.common.surviving_output import surviving_output
logging.basicConfig(level=logging.INFO, format="%(message)s")
with surviving_output():
    for number in range(100_000):
        print(number, flush=number < 3)
    print("the end")
print("work is done", file=sys.stderr)
"""


def test_the_reader_ends_first():
    process = subprocess.Popen([sys.executable, "-c", CODE], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "0\n"
    process.stdout.close()
    err = process.stderr.read()
    assert process.wait(60) == 0
    assert err == "nobody reads standard output any more: going on without it\nwork is done\n"


def test_what_is_read_is_written_as_ever():
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True)
    assert done.stdout.splitlines()[-2:] == ["99999", "the end"]
    assert done.stderr == "work is done\n"
