"""A summary of speed on one screen, to compare a machine with the documentation."""

import argparse
import platform
import time
from collections.abc import Iterator, Sequence

from benchmarks import decode, start_up, train_step
from benchmarks.machine import Machine
from benchmarks.peer import PACKAGES, Row, end, installed, version

ROUNDS = 3
SECONDS = 300
"""The time limit of all rows together."""
STEPS = {"small": 5, "base": 1}
"""The training steps of one turn."""
CASES = ((1, 1), (32, 1), (32, 4))
HEADER = ("work", "ours (least to most)", "peer", "ours is", "docs")
DOCUMENTED: dict[str, dict[str, tuple[float | None, float | None]]] = {
    # "Training steps", the tables of `small` and of `base`, the columns "ours is".
    "train-step small float32": {"torch": (1.72, 1.98), "KerasHub": (1.26, 1.28)},
    "train-step base float32": {"torch": (1.38, 1.24), "KerasHub": (None, 1.26)},
    # "Decoding", the tables of AVX2 and of AVX-512, the columns "ours" and CTranslate2's.
    "decode base, batch 1, beam 1": {
        "CTranslate2 float32": (77 / 164, 96 / 84),
        "CTranslate2 int8": (77 / 67, 96 / 166),
    },
    "decode base, batch 32, beam 1": {
        "CTranslate2 float32": (559 / 1019, 1221 / 1101),
        "CTranslate2 int8": (559 / 668, 1221 / 1598),
    },
    "decode base, batch 32, beam 4": {
        "CTranslate2 float32": (274 / 412, 473 / 558),
        "CTranslate2 int8": (274 / 391, 473 / 795),
    },
    # "Start-up", the last line of the table; less is better.
    "start-up: base, a first sentence": {"CTranslate2 float32": (None, 0.93 / 10.1), "CTranslate2 int8": (None, None)},
    "start-up: tf-transformer --help": {},
}
"""The lines of the table: the work, its peers, and how many times as fast ours is, on AVX2 and on AVX-512, by
docs/performance.md; None where that does not say."""


def measure(options: argparse.Namespace) -> Iterator[Row]:
    """Yield the rows; `base` is trained last, and only if there is enough time."""
    start = time.perf_counter()
    training = ["ours", *installed(("torch", "KerasHub"))]
    yield train_step.row("small", "float32", training, STEPS["small"], options)
    small = time.perf_counter() - start
    translating = installed(decode.PEERS)
    with decode.random_base(options.threads, {"ours": decode.EXACTLY}) as (spec, _):
        peers = decode.peers_forced(spec, ["ours"], translating)
        for size, beam in CASES:
            yield decode.case(peers, size, beam, options.rounds)
        end(peers)
        yield start_up.first_sentence(spec, translating, options.rounds)
    yield start_up.command_line("--help", options.rounds)
    # A turn of `base` takes up to 2 times as long as one of `small`, whoever does it, and starting less.
    if time.perf_counter() - start + 1.8 * small < SECONDS:
        yield train_step.row("base", "float32", training, STEPS["base"], options)


def report(rows: Sequence[Row], machine: Machine, threads: int, seconds: float) -> str:
    """Return the table with its notes."""
    known = {row.work: row for row in rows}
    lines = [line for work in DOCUMENTED if work in known for line in _lines(known[work], machine)]
    missing = sorted({peer for _, _, peer, ratio, _ in lines if ratio == "missing"})
    left_out = [work for work in DOCUMENTED if work not in known]
    packages = ("tf-transformer", "tensorflow", "keras", *PACKAGES.values())
    versions = {"Python": platform.python_version()} | {name: version(name) for name in packages}
    notes = [
        f"ours: target or output tokens/s, or seconds (s); turns of each: {len(rows[0].figures['ours'])}, their median",
        f"ours is: so many times as fast; docs: by docs/performance.md, {'AVX-512' if machine.has_avx512 else 'AVX2'}",
        f"missing: {', '.join(missing)}; pip install 'tf-transformer[bench]'" if missing else "",
        f"left out, for all was to take at most {SECONDS} s: {', '.join(left_out)}" if left_out else "",
        f"CPU: {machine}; used by each: {threads}",
        ", ".join(f"{name} {found}" for name, found in versions.items() if found),
        f"took {seconds:.0f} s",
    ]
    return "\n".join([*_aligned([HEADER, *lines]), "", *filter(None, notes)])


def _lines(row: Row, machine: Machine) -> list[tuple[str, ...]]:
    """Return a line for each peer, or one line without a peer; the first line names the work."""
    told = row.told("ours") + (" s" if row.unit == "seconds" else "")
    lines = []
    for peer, documented in DOCUMENTED[row.work].items():
        expected = documented[machine.has_avx512]
        ratio = f"{row.ratio(peer):.2f}x" if peer in row.figures else "missing"
        lines.append((peer, ratio, "-" if expected is None else f"{expected:.2f}x"))
    first, *rest = lines or [("", "", "")]
    return [(row.work, told, *first), *(("", "", *line) for line in rest)]


def _aligned(lines: Sequence[tuple[str, ...]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        yield "  ".join(map(str.ljust, line, widths)).rstrip()
