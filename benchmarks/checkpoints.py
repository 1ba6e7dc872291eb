"""Peak of memory and time of one training step by what is kept: python -m benchmarks.checkpoints.

An encoder of twelve layers, forward and backward. Each way runs in a process of its own, since the
largest number of bytes never falls. Bytes are those above the weights that were there before.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import Any, Final

import numpy as np

import phlox as px
from benchmarks import networks

LAYERS, D_MODEL, HEADS, D_WIDE = 12, 256, 8, 1024
BATCH, LENGTH = 8, 128
RUNS: Final = 3
WAYS: Final = ("none", "balanced", "per block")


def measure(way: str) -> tuple[int, float]:
    """Bytes at most above those before, and seconds of the fastest of some runs."""
    strategy = px.BalancedCheckpointing() if way == "balanced" else px.NoCheckpointing()
    device = px.Autodiff(px.Cpu(), checkpointing=strategy)
    px.seed(0)
    model: Any = networks.encoder(LAYERS, D_MODEL, HEADS, D_WIDE, device)
    rng = np.random.default_rng(0)
    data = rng.standard_normal((BATCH, LENGTH, D_MODEL)).astype("float32")
    x = px.asarray(data, device=device)
    for param in model.param_list():
        assert param.value is not None  # lazy ones are made now
    before = px.Cpu().memory().current

    def step() -> Any:
        h = x
        for block in model.blocks:
            h = px.checkpoint(block)(h) if way == "per block" else block(h)
        return h.square().mean().backward()

    seconds = []
    for _ in range(RUNS):
        start = time.perf_counter()
        grads = step()
        px.Cpu().sync()
        seconds.append(time.perf_counter() - start)
        del grads
    return px.Cpu().memory().peak - before, min(seconds)


def main() -> None:
    """Print the table."""
    if len(sys.argv) > 1:
        print(json.dumps(measure(sys.argv[1])))
        return
    found: dict[str, tuple[int, float]] = {}
    for way in WAYS:
        command = [sys.executable, "-m", "benchmarks.checkpoints", way]
        out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        nbytes, seconds = json.loads(out)
        found[way] = int(nbytes), float(seconds)
    most, fastest = found["none"]
    for way, (nbytes, seconds) in found.items():
        print(
            f"{way:<10} {nbytes / 2**20:8.1f} MiB {1 - nbytes / most:7.1%} less "
            f"{seconds * 1e3:8.1f} ms {seconds / fastest - 1:+7.1%}"
        )


if __name__ == "__main__":
    main()
