"""Corpora: the costs of preparing one, and of training on one of any size, before and beside the model."""

import argparse
import itertools
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.peer import Peer, Row, end, take_turns

VOCABULARY = 10_000
BATCH_TOKENS = 25_000
TOKENISED = 50_000
"""The pairs of one turn."""
LINKED = {"4.5 million": 4_500_000, "50 million": 50_000_000, "1 billion": 1_000_000_000}
"""The pairs of the corpora that training starts on. They link to the shards of the prepared one again and again."""
PARTS = 4
FED = 1_300
"""The batches of one turn: more than a window has, so that planning a window is included."""


def measure(options: argparse.Namespace) -> Iterator[Row]:
    """Yield a row for each cost: preparing, starting, memory and feeding."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        spec = {"threads": options.threads, "source": options.source, "target": options.target}
        spec |= {
            "data": options.data and str(options.data),
            "text": str(place / "text"),
            "corpus": str(place / "whole"),
        }
        writer = Peer("corpus_text.py", spec)
        for name, count in (("text", options.pairs), ("less", options.pairs // 5)):
            writer.work({"folder": str(place / name), "count": count})
        end({"text": writer})
        yield _whole(spec, options)
        spec["tokenizer"] = str(place / "whole" / "tokenizer.model")
        yield _tokenising(spec, options.rounds)
        yield _preparing(spec, place, options)
        shutil.rmtree(place / "text")
        yield from _training(spec, place, options.rounds)
        yield from _feeding(spec, options.rounds)


def _arguments(spec: dict[str, Any], text: Path, output: Path, workers: int, *more: str) -> dict[str, list[str]]:
    """Return the task that prepares text."""
    languages = ["--source", spec["source"], "--target", spec["target"]]
    rest = ["--output", str(output), "--workers", str(workers), *more]
    return {"arguments": ["--data", str(text), *languages, *rest]}


def _whole(spec: dict[str, Any], options: argparse.Namespace) -> Row:
    """Return the row of preparing all text once, which includes finding equal pairs and training a tokenizer."""
    peer = Peer("corpus_prepare.py", spec)
    more = ("--vocab-size", str(VOCABULARY), "--set", "data.drop_duplicates=true")
    found = peer.work(_arguments(spec, Path(spec["text"]), Path(spec["corpus"]), options.threads, *more))
    end({"ours": peer})
    size = sum(file.stat().st_size for file in Path(spec["corpus"]).iterdir())
    notes = {
        "workers": options.threads,
        "most MB of the parent": round(found["parent"]),
        "most MB of a worker": round(found["worker"]),
        "bytes on the disk, a pair": round(size / options.pairs, 1),
        "bytes of text, a pair": round(_size(spec) / options.pairs, 1),
    }
    seconds = {"ours": [found["seconds"]]}
    return Row(
        f"corpus: prepare {options.pairs:,} pairs, without equal ones, and a tokenizer", "seconds", seconds, notes
    )


def _size(spec: dict[str, Any]) -> int:
    return sum((Path(spec["text"]) / f"train.{spec[side]}").stat().st_size for side in ("source", "target"))


def _tokenising(spec: dict[str, Any], rounds: int) -> Row:
    """Return the row that compares making shards with tokenising alone, in one process each."""
    peers = {way: Peer("corpus_tokenise.py", spec | {"pairs": TOKENISED}) for way in ("ours", "SentencePiece alone")}
    tasks = {way: {"way": way} for way in peers}
    figures = {
        way: [TOKENISED / turn["seconds"] for turn in turns] for way, turns in take_turns(peers, rounds, tasks).items()
    }
    facts = peers["ours"].facts
    end(peers)
    return Row("corpus: tokenise, one core", "pairs/s", figures, {"tokens": facts["tokens"], "pieces": facts["pieces"]})


def _preparing(spec: dict[str, Any], place: Path, options: argparse.Namespace) -> Row:
    """Return the row of preparing a part of the text with a given tokenizer, by several numbers of processes."""
    counts = sorted({options.threads, 1}, reverse=True)
    figures: dict[str, list[float]] = {f"ours, workers: {count}": [] for count in counts}
    memory = dict.fromkeys(figures, 0.0)
    peer, pairs = Peer("corpus_prepare.py", spec), options.pairs // 5
    for number, (count, name) in itertools.product(range(options.rounds), zip(counts, figures, strict=True)):
        output = place / f"less {number} {count}"
        found = peer.work(_arguments(spec, place / "less", output, count, "--tokenizer", spec["tokenizer"]))
        figures[name].append(pairs / found["seconds"])
        memory[name] = max(memory[name], found["worker"], found["parent"])
        shutil.rmtree(output)
    end({"ours": peer})
    notes = {"most MB of a process": {name: round(most) for name, most in memory.items()}}
    return Row(f"corpus: prepare {pairs:,} pairs with a tokenizer", "pairs/s", figures, notes)


def _training(spec: dict[str, Any], place: Path, rounds: int) -> Iterator[Row]:
    """Yield rows of starting, and of the memory that going through windows takes, for corpora of all sizes."""
    linker = Peer("corpus_link.py", spec)
    memory: dict[str, list[float]] = {name: [] for name in LINKED}
    for name, count in LINKED.items():
        found = linker.work({"folder": str(place / name), "count": count})
        figures: dict[str, list[float]] = {"start": [], "resume": []}
        stages: dict[str, Any] = {}
        windows = 0
        for _, (way, seconds) in itertools.product(range(rounds), figures.items()):
            work = spec | {"corpus": str(place / name), "batch_tokens": BATCH_TOKENS, "resumes": way == "resume"}
            peer = Peer("corpus_training.py", work)
            stages[way], windows = peer.facts["stages"], peer.facts["windows"]
            seconds.append(sum(stages[way].values()) - stages[way]["imports"])
            if way == "start":
                memory[name].append(peer.work({})["most"] - peer.facts["empty"])
            end({way: peer})
        notes = {"pairs": f"{found['pairs']:,}", "windows": windows, "seconds of the last": stages}
        yield Row(f"corpus: to the first batch of {name} pairs, beyond imports", "seconds", figures, notes)
        shutil.rmtree(place / name)
    end({"link": linker})
    slope = (memory["1 billion"][0] - memory["50 million"][0]) / 950
    notes = {"MB a million pairs, from 50 million to a billion": round(slope, 3)}
    yield Row("corpus: most memory beyond that of the imports", "MB", memory, notes)


def _feeding(spec: dict[str, Any], rounds: int) -> Iterator[Row]:
    """Yield rows of feeding without a model, of padding, and of what each of several machines reads."""
    peers = {"ours": Peer("corpus_feed.py", spec | {"batch_tokens": BATCH_TOKENS})}
    turns = take_turns(peers, rounds, {"ours": {"count": FED}}, warm_up={"count": 10})["ours"]
    end(peers)
    tokens = {"target tokens/s": [round(turn["tokens"] / turn["seconds"]) for turn in turns]}
    yield Row("corpus: feed without a model", "batches/s", {"ours": [FED / turn["seconds"] for turn in turns]}, tokens)
    peer = Peer("corpus_padding.py", spec)
    padding = {
        way: [100 * peer.work({"way": way, "batch_tokens": BATCH_TOKENS})["padding"]] for way in ("windows", "whole")
    }
    notes = {"pairs": f"{peer.facts['pairs']:,}", "windows": peer.facts["windows"]}
    end({"ours": peer})
    yield Row("corpus: padding", "percent of the positions", padding, notes)
    peer = Peer("corpus_parts.py", spec | {"parts": PARTS})
    found = [peer.work({"part": part, "batch_tokens": BATCH_TOKENS}) for part in range(PARTS)]
    end({"ours": peer})
    read = {"in all": [sum(each["bytes"] for each in found) / found[0]["whole"]]}
    read |= {f"machine {part}": [each["bytes"] / each["whole"]] for part, each in enumerate(found, 1)}
    yield Row(f"corpus: read of a window by {PARTS} machines", "times its bytes", read, {})
