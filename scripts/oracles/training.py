"""What the oracles share: a model of transformers is trained for some minutes, and what it finds is written down."""

import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

RATE = 1.5e-3
"""The highest learning rate; it falls to a twentieth of that."""
ROWS = 64
"""Pairs of a batch."""
SEARCH = {"max_new_tokens": 60, "num_beams": 4, "length_penalty": 1.0, "early_stopping": "never"}

Pairs = list[tuple[str, str]]


def lines(path: Path) -> list[str]:
    """Return the lines of a file."""
    return path.read_text("utf-8").splitlines()


def train(
    model: torch.nn.Module,
    corpora: list[tuple[Pairs, Callable[[list[str], list[str]], Any]]],
    steps: int,
    after_step: Callable[[], None] = lambda: None,
) -> None:
    """Train on corpora in turn, each of which comes with what makes a batch of it, padding not yet left out."""
    rng, start = random.Random(1), time.monotonic()
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, betas=(0.9, 0.98), weight_decay=0.0)
    model.train()
    for step in range(steps):
        rate = min((step + 1) / 400, 1.0) * max(0.05, 1 - step / steps)
        for group in optimizer.param_groups:
            group["lr"] = RATE * rate
        pairs, batch_of = corpora[step % len(corpora)]
        # Like lengths together.
        chosen = sorted(rng.sample(pairs, ROWS * 8), key=lambda pair: len(pair[0]))
        first = rng.randrange(8) * ROWS
        sources, targets = zip(*chosen[first : first + ROWS], strict=True)
        batch = batch_of(list(sources), list(targets))
        batch["labels"][batch["labels"] == model.config.pad_token_id] = -100
        loss = model(**batch).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        after_step()
        if step % 100 == 99:
            print(f"step {step + 1}, {time.monotonic() - start:.0f} s, loss {loss.item():.3f}", flush=True)


@torch.no_grad()
def found_by(
    model: torch.nn.Module, tokenizer: Any, sentences: list[str], beams: int, **forced: Any
) -> dict[str, list[Any]]:
    """Return what `generate` finds for sentences: texts, ids, and the scores of a beam."""
    found: dict[str, list[Any]] = {"texts": [], "scores": [], "ids": []}
    search = SEARCH | {"num_beams": beams} if beams > 1 else {"max_new_tokens": SEARCH["max_new_tokens"]}
    for i in range(0, len(sentences), 32):
        batch = tokenizer(sentences[i : i + 32], return_tensors="pt", padding=True)
        result = model.generate(**batch, **search, **forced, output_scores=True, return_dict_in_generate=True)
        found["texts"] += tokenizer.batch_decode(result.sequences, skip_special_tokens=True)
        found["ids"] += result.sequences.tolist()
        if beams > 1:
            found["scores"] += result.sequences_scores.tolist()
    return found


@torch.no_grad()
def logits_of(model: torch.nn.Module, tokenizer: Any, sentences: list[str], **forced: Any) -> dict[str, Any]:
    """Return for some sentences what encoder and decoder read, and the logits that come of it."""
    batch = tokenizer(sentences, return_tensors="pt", padding=True)
    generated = model.generate(**batch, **forced, num_beams=1, max_new_tokens=SEARCH["max_new_tokens"])
    logits = model(**batch, decoder_input_ids=generated[:, :-1]).logits
    return {"source": batch["input_ids"], "target": generated[:, :-1], "logits": logits}
