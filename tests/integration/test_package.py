"""The distribution that a user installs."""

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def distribution(tmp_path_factory):
    output = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(output), str(ROOT)],
        check=True,
        capture_output=True,
    )
    return output


def test_the_wheel_holds_every_module_and_the_licence(distribution):
    (wheel,) = distribution.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {str(file.relative_to(ROOT)) for file in (ROOT / "tf_transformer").rglob("*.py")} <= names
    assert "tf_transformer/py.typed" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert not [name for name in names if name.startswith("tests")]


def test_the_source_distribution_holds_tests_and_scripts(distribution):
    (sdist,) = distribution.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"pyproject.toml", "README.md", "LICENSE", "scripts/demo.sh", "tests/conftest.py"} <= names


def test_the_wheel_installs_and_runs(distribution, tmp_path):
    (wheel,) = distribution.glob("*.whl")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(tmp_path), str(wheel)]
    subprocess.run(pip, check=True, capture_output=True)
    code = (
        "import tf_transformer; print(tf_transformer.__file__)\n"
        "from tf_transformer.commands.main import main; main(['--version'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path, env={"PYTHONPATH": ""}
    )
    where, version = done.stdout.split("\n", 1)
    assert Path(where).is_relative_to(tmp_path)
    assert version.startswith("tf-transformer 0.")
