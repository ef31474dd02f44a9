"""Requests made up from the server's own description: none makes it fail, and what it answers is as described."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.serving.conftest import translate


@pytest.mark.long
def test_the_description_holds(served):
    command = [Path(sys.executable).with_name("schemathesis"), "run", f"{served.url}/openapi.json", "--checks", "all"]
    limits = ["--request-timeout", "120", "--max-response-time", "120"]  # a cold signature is compiled first
    command += ["--max-examples", "30", "--seed", "1", *limits, "--no-color"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert served.process.poll() is None
    assert "failed" not in served.log.read_text()
    assert translate(served, ["a b c"])
