"""LiteRT for browsers, as npm installs it. Nothing of it is kept in this project."""

import gzip
import json
from importlib.metadata import distribution
from pathlib import Path

from tf_transformer.errors import InputError

VERSION = "2.5.3"
"""The version of LiteRT.js whose functions the scripts of the page call; `web/package.json` pins it."""
PACKAGE = Path("node_modules", "@litertjs", "core")
BUILDS = {"relaxed": "litert_wasm_internal", "plain": "litert_wasm_compat_internal"}
"""The builds that an export holds, and their names in the package: with relaxed SIMD, which is faster, and without."""
NOTICE = """\
`relaxed.js`, `relaxed.wasm.gz`, `plain.js` and `plain.wasm.gz` are LiteRT.js {version}, the npm package @litertjs/core
(https://www.npmjs.com/package/@litertjs/core), which Google LLC has published under the Apache License 2.0. They were
changed in one respect: a line at the end of the scripts makes them modules, and the WebAssembly is packed by gzip. The
package holds no further notices. The licence follows.

"""


def find() -> Path:
    """Return the folder of LiteRT.js, which `npm ci --prefix web` installs into a clone or the current folder.

    Raises:
        InputError: it is not installed, or in another version.
    """
    places = [folder / "web" for folder in (Path(__file__).parents[2], Path.cwd())]
    for place in places:
        folder = place / PACKAGE
        try:
            version = json.loads((folder / "package.json").read_bytes())["version"]
        except (OSError, ValueError, KeyError):
            continue
        if version != VERSION:
            raise InputError(f"--format web needs LiteRT.js {VERSION}: run npm ci --prefix web. Received: {version}")
        return folder
    raise InputError(
        "--format web needs LiteRT.js: run npm ci --prefix web in a clone of the project. It is not in "
        + " or ".join(map(str, dict.fromkeys(places)))
    )


def copy(package: Path, folder: Path) -> None:
    """Write the builds and their licence to a new folder."""
    folder.mkdir()
    for name, original in BUILDS.items():
        script = (package / "wasm" / f"{original}.js").read_text("utf-8")
        (folder / f"{name}.js").write_text(f"{script}\nexport default ModuleFactory;\n", "utf-8")
        binary = (package / "wasm" / f"{original}.wasm").read_bytes()
        (folder / f"{name}.wasm.gz").write_bytes(gzip.compress(binary, mtime=0))
    (folder / "LICENSE").write_text(NOTICE.format(version=VERSION) + licence(), "utf-8")


def licence() -> str:
    """Return the text of the Apache License 2.0, which is also that of this project."""
    file = Path(__file__).parents[2] / "LICENSE"
    if file.is_file():
        return file.read_text("utf-8")
    text = distribution("tf-transformer").read_text("licenses/LICENSE")
    if text is None:
        raise InputError("the installation of tf-transformer is damaged: its LICENSE is missing")
    return text
