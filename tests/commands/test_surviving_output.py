"""Work goes on when nobody reads standard output any more."""

import subprocess
import sys

import pytest

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


BREAKS = """
import argparse, os, sys
from tf_transformer.commands.main import run_command

def prints(options):
    for number in range(100_000):
        print(number, flush=number < 3)

def writes_to_another_program(options):
    reading, writing = os.pipe()
    os.close(reading)
    os.write(writing, b"a")

print("0", flush=True)
sys.exit(run_command(argparse.Namespace(run=RUN)))
"""


@pytest.mark.parametrize(
    ("run", "code", "said"),
    [("prints", 0, ""), ("writes_to_another_program", 2, "tf-transformer: error: Broken pipe\n")],
)
def test_only_a_reader_of_the_output_may_end_a_command_in_silence(run, code, said):
    command = [sys.executable, "-c", BREAKS.replace("RUN", run)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "0\n"
    if code == 0:
        process.stdout.close()
    assert (process.wait(60), process.stderr.read()) == (code, said)
