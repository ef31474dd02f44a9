"""Table 3 of the paper at a quarter of its widths: train every row on Multi30k, and write a table and a bar chart.

Run it by `sh scripts/recipes/table3.sh`. What was stopped goes on.
"""

import argparse
import csv
import json
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple


class Row(NamedTuple):
    """A row of the paper's table 3, on English to German, newstest2013."""

    changes: dict[str, Any]
    """settings that differ from the base model"""
    perplexity: float
    """per piece, on the development set"""
    bleu: float
    millions: int | None = None
    """parameters; None where the paper leaves them out, because they are those of base"""


BASE = {"num_layers": 6, "d_model": 512, "num_heads": 8, "dff": 2048, "dropout_rate": 0.1, "label_smoothing": 0.1}
ROWS = {
    "base": Row({}, 4.92, 25.8, 65),
    "A, 1 head": Row({"num_heads": 1}, 5.29, 24.9),
    "A, 4 heads": Row({"num_heads": 4}, 5.00, 25.5),
    "A, 16 heads": Row({"num_heads": 16}, 4.91, 25.8),
    "A, 32 heads": Row({"num_heads": 32}, 5.01, 25.4),
    "B, d_k / 4": Row({"key_dim": 16}, 5.16, 25.1, 58),
    "B, d_k / 2": Row({"key_dim": 32}, 5.01, 25.4, 60),
    "C, N / 3": Row({"num_layers": 2}, 6.11, 23.7, 36),
    "C, 2/3 N": Row({"num_layers": 4}, 5.19, 25.3, 50),
    "C, 4/3 N": Row({"num_layers": 8}, 4.88, 25.5, 80),
    "C, d_model / 2": Row({"d_model": 256, "key_dim": 32, "value_dim": 32}, 5.75, 24.5, 28),
    "C, 2 d_model": Row({"d_model": 1024, "key_dim": 128, "value_dim": 128}, 4.66, 26.0, 168),
    "C, d_ff / 2": Row({"dff": 1024}, 5.12, 25.4, 53),
    "C, 2 d_ff": Row({"dff": 4096}, 4.75, 26.2, 90),
    "D, dropout 0": Row({"dropout_rate": 0.0}, 5.77, 24.6),
    "D, dropout 0.2": Row({"dropout_rate": 0.2}, 4.95, 25.5),
    "D, smoothing 0": Row({"label_smoothing": 0.0}, 4.67, 25.3),
    "D, smoothing 0.2": Row({"label_smoothing": 0.2}, 5.47, 25.7),
    "E, learned positions": Row({"positions": "learned"}, 4.92, 25.7),
    "big": Row({"d_model": 1024, "dff": 4096, "num_heads": 16, "dropout_rate": 0.3}, 4.33, 26.4, 213),
}
SCALE = {"num_layers": 2, "d_model": 4, "dff": 4, "key_dim": 4, "value_dim": 4}
"""What the sizes of the paper are divided by."""
LONGER = {"big": 3}
"""The paper trains the big model for three times as many updates."""


def settings(name: str, scale: dict[str, int] | None = None) -> dict[str, Any]:
    """Return all settings of a row, with the paper's sizes or, divided by `scale`, smaller ones."""
    return {
        key: value // scale[key] if key in (scale or {}) else value
        for key, value in (BASE | ROWS[name].changes).items()
    }


def train(name: str, run_dir: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Train a row, translate val with it, and return what it came to."""
    result = run_dir / "val.json"
    if not result.exists():
        sections = {key: f"{'training' if key == 'label_smoothing' else 'model'}.{key}" for key in settings(name)}
        changes = [f"--set={sections[key]}={value}" for key, value in settings(name, SCALE).items()]
        corpus = ["--data", str(options.data), "--source", "en", "--target", "de"]
        updates = ["--max-steps", str(options.updates * LONGER.get(name, 1))]
        config = ["--config", str(Path(__file__).with_suffix(".toml"))]
        _run("train", *config, *corpus, *updates, *changes, *options.settings, "--run-dir", str(run_dir))
        translated = ["--split", "val", "--tokenize", "none", "--output", str(run_dir / "val.de"), "--json"]
        found = _run("evaluate", "--model", str(run_dir), "--data", str(options.data), *translated)
        result.write_text(found.splitlines()[-1] + "\n")
    with (run_dir / "history.csv").open() as file:
        last = [row for row in csv.DictReader(file) if row["val_loss"]][-1]
    described = json.loads(_run("info", str(run_dir), "--json"))
    return {
        "bleu": json.loads(result.read_text())["bleu"],
        "perplexity": float(last["val_perplexity"]),
        "parameters": described["parameters"],
    }


def _run(*command: str) -> str:
    """Run a command of the project; its progress goes to the error stream. Return what it printed."""
    print("$ tf-transformer", *command, flush=True)
    return subprocess.run(
        [sys.executable, "-m", "tf_transformer", *command], check=True, stdout=subprocess.PIPE, text=True
    ).stdout


def table(found: dict[str, dict[str, Any]]) -> str:
    """Return the rows as a table in Markdown, ours beside the paper's."""
    lines = [
        "| row | parameters | perplexity, `val` | BLEU, `val` | paper: parameters, millions | perplexity | BLEU |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, ours in found.items():
        paper = ROWS[name]
        millions = "" if paper.millions is None else f"{paper.millions}"
        lines.append(
            f"| {name} | {ours['parameters']:,} | {ours['perplexity']:.2f} | {ours['bleu']:.1f} "
            f"| {millions} | {paper.perplexity:.2f} | {paper.bleu:.1f} |"
        )
    return "\n".join(lines) + "\n"


def draw(found: dict[str, dict[str, Any]], path: Path) -> None:
    """Draw how far each row is from base, in BLEU, ours beside the paper's."""
    from tf_transformer.plotting.style import COLOURS, new_figure, save, style

    names = [name for name in found if name != "base"]
    with style():
        figure = new_figure(7, 6)
        axis = figure.subplots()
        for place, (label, of) in enumerate(
            {
                "here, Multi30k": {name: found[name]["bleu"] - found["base"]["bleu"] for name in names},
                "paper, newstest2013": {name: ROWS[name].bleu - ROWS["base"].bleu for name in names},
            }.items()
        ):
            heights = [number + 0.4 * place for number in range(len(names))]
            axis.barh(heights, [of[name] for name in names], 0.38, color=COLOURS[place], label=label)
        axis.set_yticks([number + 0.2 for number in range(len(names))], names)
        axis.invert_yaxis()
        axis.axvline(0, color="black", linewidth=0.8)
        axis.set(xlabel="BLEU, difference from base", title="Table 3 of the paper")
        axis.legend()
    save(figure, path)


def main() -> None:
    """Train all rows, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, help="a folder with train, val and their languages, en and de")
    parser.add_argument("--output", type=Path, default=Path("runs/table3"))
    parser.add_argument("--updates", type=int, default=1500)
    parser.add_argument("--rows", nargs="*", choices=list(ROWS), default=list(ROWS), metavar="ROW")
    options, options.settings = parser.parse_known_args()
    found = {}
    for name in options.rows:
        folder = "".join(letter if letter.isalnum() else "_" for letter in name)
        found[name] = train(name, options.output / folder, options)
        (options.output / "table.md").write_text(table(found))
        if "base" in found:
            draw(found, options.output / "table.svg")
    print(table(found))


if __name__ == "__main__":
    main()
