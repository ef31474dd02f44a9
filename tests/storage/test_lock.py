"""One writer of a folder at a time."""

import os
import signal
import socket
import subprocess
import sys

import pytest

from tf_transformer.errors import InputError
from tf_transformer.storage.lock import LOCK, sole_writer

HOLD = """
import sys, time
from pathlib import Path
from tf_transformer.storage.lock import sole_writer
with sole_writer(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def holder(tmp_path):
    """A process that holds the lock of a folder, which it has made."""
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path / "run")], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.communicate()


def test_the_second_is_refused_and_told_who_holds_it(holder, tmp_path):
    held = rf"run is in use by process {holder.pid} on {socket.gethostname()}, since .*: wait until it ends or stop it"
    for _ in range(2):
        with pytest.raises(InputError, match=held), sole_writer(tmp_path / "run"):
            pytest.fail("two writers")
    assert (tmp_path / "run" / LOCK).exists()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_that_of_a_dead_process_is_none(holder, tmp_path, number):
    holder.send_signal(number)
    holder.wait()
    with sole_writer(tmp_path / "run"):
        assert f"process {os.getpid()} " in (tmp_path / "run" / LOCK).read_text()
    assert not (tmp_path / "run" / LOCK).exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_of_another_user_a_live_lock_holds_and_a_dead_one_does_not(tmp_path):
    code = HOLD.replace("time.sleep(600)", "pass").replace("with ", "import os\nos.setuid(65534)\nwith ", 1)
    folder = tmp_path / "shared"
    folder.mkdir(mode=0o777)
    folder.chmod(0o777)
    for parent in (tmp_path, *tmp_path.parents[:3]):
        parent.chmod(parent.stat().st_mode | 0o755)
    command = [sys.executable, "-c", code, str(folder)]
    with sole_writer(folder):
        (folder / LOCK).chmod(0o644)
        refused = subprocess.run(command, capture_output=True, text=True)
        assert f"is in use by process {os.getpid()} on " in refused.stderr
    (folder / LOCK).write_text("process 1 on elsewhere\n")  # of a process that was killed
    assert subprocess.run(command, capture_output=True, text=True).stdout == "held\n"
    assert not (folder / LOCK).exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_folder_that_cannot_be_written_to_is_called_so(tmp_path):
    code = HOLD.replace("with ", "import os\nos.setuid(65534)\nwith ", 1)
    for parent in (tmp_path, *tmp_path.parents[:3]):
        parent.chmod(parent.stat().st_mode | 0o755)
    refused = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True)
    assert refused.stderr.splitlines()[-1] == f"PermissionError: [Errno 13] Permission denied: '{tmp_path / LOCK}'"


def test_the_same_process_cannot_hold_it_twice(tmp_path):
    with sole_writer(tmp_path), pytest.raises(InputError, match=f"process {os.getpid()}"), sole_writer(tmp_path):
        pytest.fail("two writers")
    with sole_writer(tmp_path):
        pass


def test_of_a_folder_that_was_made_for_nothing_nothing_stays(tmp_path):
    with pytest.raises(KeyError), sole_writer(tmp_path / "runs" / "mine"):
        raise KeyError
    assert not list(tmp_path.iterdir())
    with sole_writer(tmp_path / "runs" / "mine"):
        (tmp_path / "runs" / "mine" / "x").touch()
    assert (tmp_path / "runs" / "mine" / "x").exists()
