"""Writes a script with `# %%` cells as a notebook: python scripts/notebook.py examples/tf_tutorial.py."""

import json
import sys
from pathlib import Path


def notebook(script: str) -> str:
    """Return the notebook of a script; the same script gives the same text."""
    cells = []
    for number, cell in enumerate(script.split("# %%")[1:]):
        title, _, body = cell.partition("\n")
        if title.strip() == "[markdown]":
            lines = [line.removeprefix("#").removeprefix(" ") for line in body.strip().splitlines()]
            cells.append(_cell(number, "markdown", "\n".join(lines)))
        else:
            cells.append(_cell(number, "code", f"# {title.strip()}\n{body.strip()}"))
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    content = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def _cell(number: int, kind: str, text: str) -> dict[str, object]:
    cell: dict[str, object] = {"cell_type": kind, "id": f"cell-{number}", "metadata": {}}
    cell["source"] = text.splitlines(keepends=True)
    if kind == "code":
        cell |= {"execution_count": None, "outputs": []}
    return cell


if __name__ == "__main__":
    path = Path(sys.argv[1])
    path.with_suffix(".ipynb").write_text(notebook(path.read_text("utf-8")), "utf-8")
