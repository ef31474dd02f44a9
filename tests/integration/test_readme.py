"""What the README shows runs."""

import re
import shlex
from collections import Counter
from pathlib import Path

import pytest

from tf_transformer.commands.main import parser

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")
PAGES = {path.name: path.read_text("utf-8") for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))}


@pytest.mark.long
@pytest.mark.parametrize("page", ["README.md", "training.md"])
def test_the_python_example_runs_and_is_short(page, tmp_path, in_fresh_process):
    (code,) = [block for block in re.findall(r"```python\n(.*?)```", PAGES[page], flags=re.S) if ".fit(" in block]
    assert len(code.splitlines()) <= 40
    code = re.sub(r"epochs=\d+", "epochs=1", code).replace("1024", "4096")  # fewer steps
    printed = in_fresh_process(code, cwd=tmp_path)
    losses = [float(number) for number in re.findall(r"val_loss: ([\d.]+)", printed)]
    assert losses
    assert losses[-1] < 6  # 6.9 is that of 1,000 equally probable tokens
    assert "val_loss" not in printed.splitlines()[-1]  # a translation, which may still be empty


@pytest.mark.long
def test_the_python_of_the_page_for_keras_runs_and_prints_what_it_says(tmp_path, in_fresh_process):
    blocks = re.findall(r"```python\n(.*?)```", PAGES["keras.md"], flags=re.S)
    assert len(blocks) >= 4
    # One process: TensorFlow is imported once.
    code = "\nprint('----')\n".join(f"exec({block!r}, {{}})" for block in blocks)
    parts = in_fresh_process(code, cwd=tmp_path)
    for block, printed in zip(blocks, parts.split("----\n"), strict=True):
        said = re.findall(r"^print\(.*\)  # (.*)$", block, flags=re.M)
        assert said
        for line, comment in zip(printed.splitlines(), said, strict=True):
            if comment.endswith(" or so"):
                name, number = comment.removesuffix(" or so").split()
                assert line.startswith(name) and abs(float(line.split()[1]) - float(number)) <= 0.05
            else:
                assert line == comment.partition(":")[0]


def test_the_chinese_one_has_the_same_parts():
    """Levels of headings, rows of tables, code, commands, links and numbers; the words are another language's."""
    chinese = (ROOT / "README.zh.md").read_text("utf-8")

    def parts(text):
        code = re.findall(r"^```.*?^```$", text, flags=re.M | re.S)
        text = re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)
        lines = re.findall(r"^(#+|- \*\*|\||!)", text, flags=re.M)
        links = sorted(link for link in re.findall(r"\]\(([^)]+)\)", text) if not link.startswith("README"))
        numbers = Counter(re.findall(r"\d[\d,.]*\d|\d", text))
        return code, lines, links, sorted(re.findall(r"`[^`]+`", text)), numbers - Counter(["11"])  # November

    for of_english, of_chinese in zip(parts(README), parts(chinese), strict=True):
        assert of_english == of_chinese
    anchors = re.findall(r"\]\(#([\w-]+)\)", chinese)
    assert len(anchors) == 4 and all(f'<a id="{anchor}"></a>\n\n## ' in chinese for anchor in anchors)
    headings = re.findall(r"^## (.+)$", README, flags=re.M)
    assert set(anchors) <= {heading.lower().replace(" ", "-") for heading in headings}


def test_every_command_they_show_exists():
    pages = "\n".join(PAGES.values()).replace("\\\n", " ")  # a command may go on in the next line
    shown = re.findall(r"^ *(?:exec |srun )?tf-transformer +([^\n|<>#]*)", pages, flags=re.M)
    assert len(shown) >= 12
    for line in shown:
        assert _exit_code(shlex.split(line)) == 0, line


def _exit_code(arguments: list[str]) -> int:
    """Return what the parser ends with: 0 for arguments that it understands, and for --help."""
    try:
        parser().parse_args(arguments)
    except SystemExit as exit:
        return exit.code
    return 0


def test_the_files_it_names_exist():
    for name in re.findall(r"[`(]((?:scripts|docs|saved_models)/[\w./]+\.\w+)[`)]", "\n".join(PAGES.values())):
        assert (ROOT / name).exists(), name
