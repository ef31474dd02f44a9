"""Training steps: target tokens per second."""

import argparse
from collections.abc import Collection, Iterator

from benchmarks.peer import Peer, Row, end, rates

from tf_transformer import PRESETS

SIZES = {
    preset: {size: getattr(PRESETS[preset].model, size) for size in ("num_layers", "d_model", "num_heads", "dff")}
    for preset in ("small", "base")
}
BATCH = {"batch": 64, "source": 32, "target": 32, "vocabulary": 8000}
STEPS = {"small": 10, "base": 2}
WORKERS = {
    "ours": "train_ours.py",
    "torch": "train_torch.py",
    "KerasHub": "train_keras_hub.py",
    "TF tutorial": "train_tutorial.py",
}


def measure(options: argparse.Namespace) -> Iterator[Row]:
    """Yield a row for each preset and dtype."""
    for preset in options.presets:
        for dtype in options.dtypes:
            yield row(preset, dtype, options.peers, STEPS[preset], options)


def row(preset: str, dtype: str, names: Collection[str], steps: int, options: argparse.Namespace) -> Row:
    """Return the row of a preset and a dtype for those of `WORKERS` that are named, in turns of so many steps."""
    spec = BATCH | SIZES[preset] | {"preset": preset, "dtype": dtype, "threads": options.threads}
    scripts = WORKERS if options.backend == "tensorflow" else WORKERS | {"ours": "train_keras.py"}
    peers = {
        name: Peer(script, spec, onednn=True, backend=options.backend if name == "ours" else "tensorflow")
        for name, script in scripts.items()
        if name in names
    }
    if options.opennmt_tf:
        # It has no bfloat16 on a CPU.
        work, python = spec | {"dtype": "float32"}, options.opennmt_tf / "bin" / "python"
        peers["OpenNMT-tf float32"] = Peer("train_opennmt_tf.py", work, python=python, onednn=True)
    notes = {"parameters": {name: peer.facts["parameters"] for name, peer in peers.items()}}
    figures = rates(peers, options.rounds, steps * spec["batch"] * spec["target"], count=steps)
    end(peers)
    found = Row(f"train-step {preset} {dtype}", "target tokens/s", figures, notes)
    gigaflops = found.median("ours") * flops_per_target_token(spec) / 1e9
    if product := peers["ours"].facts.get("product"):
        notes[f"of a product by {options.backend}, {product:,.0f} GFLOP/s"] = f"{gigaflops / product:.0%}"
    return found._replace(reached={f"{dtype} product, GFLOP/s": gigaflops})


def flops_per_target_token(spec: dict[str, int]) -> float:
    """Return the floating point operations of the matrix products of a training step, per target token.

    Each product is made once forward and twice backward, with 2 operations per multiplication.
    """
    d, inner, s, t = spec["d_model"], spec["dff"], spec["source"], spec["target"]
    projections = 4 * d * d
    source = spec["num_layers"] * (projections + 2 * d * inner + 2 * s * d)
    # Of the attention to the source the keys and values are a product by source token.
    source += spec["num_layers"] * 2 * d * d
    target = spec["num_layers"] * (projections + 2 * d * d + 2 * d * inner + 2 * (s + t) * d)
    target += d * spec["vocabulary"]
    return 3 * 2 * (source * s / t + target)
