"""Models by name: huggingface_hub itself, and a server that answers as the Hub does."""

import hashlib
import http.server
import json
import subprocess
import sys
import threading

import pytest

from tf_transformer.importers.hub import _weights, is_name
from tf_transformer.runs.directory import RunDirectory

NAME = "Somebody/opus-mt-en-de"
COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def hub(unpacked, tmp_path):
    """A server with the sample of MarianMT, and with weights in two formats; gives its address and what was asked."""
    files = {path.name: path.read_bytes() for path in unpacked("marian").iterdir()}
    files |= {"pytorch_model.bin": b"a pickle", "tf_model.h5": b"another"}
    asked = []

    class Hub(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.answer(with_body=True)

        def do_HEAD(self):
            self.answer(with_body=False)

        def answer(self, with_body):
            asked.append(self.path)
            path, status, kind = self.path.partition("?")[0], 200, "application/octet-stream"
            if path.startswith(f"/api/models/{NAME}/tree/"):
                tree = [{"type": "file", "path": name, "size": len(files[name]), "oid": name} for name in files]
                body, kind = json.dumps(tree).encode(), "application/json"
            elif path.startswith(f"/api/models/{NAME}"):
                siblings = [{"rfilename": name} for name in files]
                body, kind = json.dumps({"id": NAME, "sha": COMMIT, "siblings": siblings}).encode(), "application/json"
            elif path.startswith(f"/{NAME}/resolve/") and path.rpartition("/")[2] in files:
                body = files[path.rpartition("/")[2]]
            else:
                body, status = b'{"error": "Repository not found"}', 404
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("ETag", f'"{hashlib.sha1(body).hexdigest()}"')
            self.send_header("X-Repo-Commit", COMMIT)
            if status == 404:
                self.send_header("X-Error-Code", "RepoNotFound")
            self.end_headers()
            if with_body:
                self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", asked
    server.shutdown()


def import_by_name(name, run, endpoint, home, code="from tf_transformer.commands.main import main; sys.exit(main())"):
    settings = {"HF_ENDPOINT": endpoint, "HF_HOME": str(home), "PATH": "", "HF_HUB_DISABLE_XET": "1"}
    command = [sys.executable, "-c", f"import sys; {code}", "import", name, "--run-dir", str(run)]
    return subprocess.run(command, env=settings, capture_output=True, text=True, check=False, timeout=120)


def test_a_model_is_imported_by_its_name(hub, tmp_path):
    address, asked = hub
    done = import_by_name(NAME, tmp_path / "run", address, tmp_path / "home")
    assert done.returncode == 0, done.stderr
    run = RunDirectory(tmp_path / "run")
    assert run.description["origin"]["name"] == NAME
    assert any("model.safetensors" in path for path in asked)
    assert not any("pytorch_model" in path or "tf_model" in path for path in asked)  # one format is enough


def test_what_the_hub_has_not_is_said_in_a_line(hub, tmp_path):
    done = import_by_name("Somebody/opus-mt-xx-yy", tmp_path / "run", hub[0], tmp_path / "home")
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    line = done.stderr.splitlines()[-1]
    assert line.startswith("tf-transformer: error: Somebody/opus-mt-xx-yy: no such folder, and no such model on the")
    assert not (tmp_path / "run").exists()


def test_without_huggingface_hub_the_extra_is_named(tmp_path):
    code = "sys.modules['huggingface_hub'] = None; from tf_transformer.commands.main import main; sys.exit(main())"
    done = import_by_name(NAME, tmp_path / "run", "http://127.0.0.1:9", tmp_path / "home", code)
    assert done.returncode == 2
    assert "pip install 'tf-transformer[hub]'" in done.stderr and done.stderr.count("\n") == 1


def test_a_folder_that_is_here_is_no_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models" / "mine").mkdir(parents=True)
    from pathlib import Path

    assert not is_name(Path("models/mine"))
    assert is_name(Path("models/yours"))
    assert not is_name(Path("yours")) and not is_name(Path("a/b/c")) and not is_name(Path("/a/b"))


@pytest.mark.parametrize(
    ("has_torch", "files", "taken"),
    [
        (True, ["model.safetensors", "pytorch_model.bin"], ["model.safetensors"]),
        (False, ["model.safetensors.index.json", "model-00001-of-00002.safetensors"], ["model-*.safetensors"]),
        (False, ["model.safetensors.index.json", "model.safetensors"], ["model.safetensors"]),
        (True, ["pytorch_model.bin.index.json", "pytorch_model.bin"], ["pytorch_model.bin"]),
        (False, ["tf_model.h5", "pytorch_model.bin"], ["tf_model.h5"]),
        (True, ["tf_model.h5", "pytorch_model.bin"], ["pytorch_model.bin"]),
        (False, ["pytorch_model.bin"], ["pytorch_model.bin"]),
        (True, ["config.json"], []),
    ],
)
def test_one_format_of_the_weights_is_taken(monkeypatch, has_torch, files, taken):
    monkeypatch.setattr("tf_transformer.importers.hub.reads_torch", lambda: has_torch)
    assert _weights(files) == taken
