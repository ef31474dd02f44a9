"""Collects the pages of the site: README.md and docs/, with the files of the repository that they link to as pages.

Usage: python scripts/site_source.py OUTPUT
"""

import functools
import importlib
import inspect
import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = {
    "README.md": "index.md",
    "README.zh.md": "zh.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
"""What stands outside docs/, and its page."""
TRANSLATOR = "toy_en_de"
"""The folder of the site with the export for browsers, which scripts/docs.sh writes."""
FRAME = """\
{text}

<iframe src="{up}{folder}/" title="Translator, English to German" loading="lazy"
style="width: 100%; height: 36rem; border: 1px solid #8886"></iframe>
"""
API = """\
# API reference

{parts}
"""
MODULES = {
    "Layers and model": "tf_transformer.model",
    "Without TensorFlow": "tf_transformer.litert",
    "Training": "tf_transformer.training",
    "Data": "tf_transformer.data",
    "Search": "tf_transformer.decoding",
    "Pictures": "tf_transformer.plotting",
}
"""The packages whose public names the reference has."""
TRANSLATORS = (
    "tf_transformer.translation.translator.Translator",
    "tf_transformer.translation.tensors.TensorTranslator",
)


def main(output: Path) -> None:
    """Write all pages to an empty folder."""
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir(parents=True)
    sources = {ROOT / name: page for name, page in PAGES.items()}
    for file in sorted((ROOT / "docs").rglob("*")):
        if file.suffix == ".md":
            name = file.relative_to(ROOT / "docs")
            sources[file] = (name.parent / "index.md" if name.name == "README.md" else name).as_posix()
        elif file.is_file():
            target = output / file.relative_to(ROOT / "docs")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, target)
    linked: dict[Path, str] = {}
    for file, page in sources.items():
        write(output / page, with_links(file, page, sources, linked))
    for file, page in linked.items():
        write(output / page, as_page(file))
    listed = {title: entries(module) for title, module in MODULES.items()}
    listed["Translators"] = [f"::: {name}" for name in TRANSLATORS]
    parts = "\n\n".join(f"## {title}\n\n" + "\n\n".join(found) for title, found in listed.items())
    write(output / "api.md", API.format(parts=parts))


def write(path: Path, text: str) -> None:
    """Write a page."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


def with_links(file: Path, page: str, sources: dict[Path, str], linked: dict[Path, str]) -> str:
    """Return the text of a file with its links as those of its page; files that are no pages are added to `linked`."""

    def changed(match: re.Match[str]) -> str:
        target, anchor = match[2], match[3] or ""
        path = (file.parent / target).resolve()
        if "://" in target or target.startswith("mailto:") or not path.is_relative_to(ROOT) or not path.exists():
            return match[0]
        if path.is_relative_to(ROOT / "docs") and path.suffix != ".md":
            to = path.relative_to(ROOT / "docs").as_posix()
        else:
            to = sources.get(path) or linked.setdefault(path, f"source/{path.relative_to(ROOT).as_posix()}.md")
        up = "../" * page.count("/")
        return f"{match[1]}({up}{to}{anchor})"

    text = file.read_text("utf-8")
    parts = re.split(r"(^```.*?^```$)", text, flags=re.M | re.S)  # code has no links
    parts[::2] = [with_frames(re.sub(r"(\])\(([^)#\s]+)(#[^)\s]*)?\)", changed, part), page) for part in parts[::2]]
    return re.sub(r"^```(\w+) file=\S+$", r"```\1", "".join(parts), flags=re.M)


def with_frames(text: str, page: str) -> str:
    """Return a text with the translator in place of each comment `<!-- translator: what is said of it -->`."""
    frame = functools.partial(FRAME.format, up="../" * page.count("/"), folder=TRANSLATOR)
    return re.sub(r"^<!-- translator: (.+?) -->$", lambda match: frame(text=match[1]), text, flags=re.M | re.S)


def as_page(file: Path) -> str:
    """Return a page that shows a file, or the names of a folder."""
    name = file.relative_to(ROOT).as_posix()
    if file.is_dir():
        return f"# {name}\n\n" + "\n".join(f"- `{path.name}`" for path in sorted(file.iterdir()))
    kind = {".py": "python", ".sh": "sh", ".toml": "toml", ".c": "c"}.get(file.suffix, "text")
    return f"# {name}\n\n````{kind}\n{file.read_text('utf-8').rstrip()}\n````\n"


def entries(module: str) -> list[str]:
    """Return directives of mkdocstrings for the public classes and functions of a package."""
    package = importlib.import_module(module)
    found = [getattr(package, name) for name in package.__all__]
    return [
        f"::: {one.__module__}.{one.__qualname__}" for one in found if inspect.isclass(one) or inspect.isfunction(one)
    ]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
