"""Reading `history.csv`, which training writes."""

import csv
from pathlib import Path


def read_history(path: Path) -> list[dict[str, str]]:
    """Return the whole rows of a history; a line that a killed process left unfinished is passed over."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if None not in row and None not in row.values()]
    return [row for row in rows if row["step"].isdecimal()]


def validations(path: Path, best_by: str, step: int) -> list[float]:
    """Return the validation losses, or the BLEU scores, of a history up to `step`."""
    rows = [row for row in read_history(path) if int(row["step"]) <= step]
    return [float(row[f"val_{best_by}"]) for row in rows if row[f"val_{best_by}"]]
