"""Peak of memory and time of a training step by what is kept.

An encoder of twelve layers with dropout in training, forward and backward, and a step of Sgd.
Peaks are bytes above those of the weights, each measured in a process of its own, since the largest
number of bytes never falls. Beside PyTorch also the step of the digits example.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np

import phlox as px
from benchmarks import train
from benchmarks.case import Run
from benchmarks.timing import interleaved
from examples.mnist.model import DigitsConfig
from phlox import nn, optim

LAYERS, D_MODEL, HEADS, D_WIDE = 12, 256, 8, 1024
BATCH, LENGTH = 8, 128
STEPS: Final = 3
NONE, BALANCED, PER_BLOCK = "none", "balanced", "per block"
# How much fewer bytes than without, and how much more time, at least and at most.
WANTED: Final = {NONE: (0.0, 0.0), BALANCED: (0.35, 0.15), PER_BLOCK: (0.65, 0.40)}
DEMO, DEMO_TORCH = "demo CNN, b64, AdamW", "demo CNN, b64, AdamW, PyTorch"


@dataclass(frozen=True)
class Row:
    """A line of the table: the peak and the time of a step, and what they are compared with."""

    name: str
    bytes: int
    seconds: float
    bytes_wanted: float = 0.0
    seconds_wanted: float = 0.0

    def __str__(self) -> str:
        """The line; a limit that is passed is marked by ``!``."""
        size = f"{self.bytes / 2**20:.1f} MiB{_limit(self.bytes, self.bytes_wanted, 2**20, 'MiB')}"
        time = f"{self.seconds * 1e3:.1f} ms{_limit(self.seconds, self.seconds_wanted, 1e-3, 'ms')}"
        return f"{self.name:<44} {size:>28} {time:>28}"


def _limit(value: float, wanted: float, unit: float, name: str) -> str:
    return f"{'' if value <= wanted else ' !'} (≤ {wanted / unit:.1f} {name})" if wanted else ""


def report(*, with_torch: bool) -> list[dict[str, Any]]:
    """Measure and print the table."""
    sizes = {way: _peak(way) for way in WANTED}
    seconds = dict(zip(WANTED, interleaved([encoder(way) for way in WANTED]), strict=True))
    rows = []
    for way, (less, more) in WANTED.items():
        limits = (sizes[NONE] * (1 - less), seconds[NONE] * (1 + more)) if less else (0.0, 0.0)
        name = f"encoder d{D_MODEL} L{LAYERS} h{HEADS}, b{BATCH} s{LENGTH}: {way}"
        rows.append(Row(name, sizes[way], seconds[way], *limits))
    if with_torch:
        theirs, limit = interleaved([demo(), torch_demo()]), _peak(DEMO_TORCH)
        rows.append(Row(DEMO, _peak(DEMO), theirs[0], limit, theirs[1]))
    for row in rows:
        print(row, flush=True)
    return [{"group": "checkpoints", **asdict(row)} for row in rows]


def encoder(way: str) -> Run:
    """A step of the encoder that goes on from the one before."""
    strategy = px.BalancedCheckpointing() if way == BALANCED else px.NoCheckpointing()
    device = px.Autodiff(px.Cpu(), checkpointing=strategy)
    layer = nn.TransformerEncoderLayerConfig(D_MODEL, HEADS, D_WIDE)
    model = nn.TransformerEncoderConfig(layer, LAYERS).init(device)
    data = np.random.default_rng(0).standard_normal((BATCH, LENGTH, D_MODEL), np.float32)
    x = px.asarray(data, device=device)
    rule = optim.SgdConfig().init()

    def step(model: Any, lr: float) -> tuple[Any, Any]:
        h = x
        for block in model.layers:
            h = px.checkpoint(block)(h) if way == PER_BLOCK else block(h)
        loss = h.square().mean()
        return rule.step(lr, model, loss.backward()), loss

    return train.going(step, model)


def _digits() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.standard_normal((64, 1, 28, 28), np.float32), rng.integers(0, 10, 64)


def demo() -> Run:
    """A step of the digits example."""
    model = DigitsConfig().init(px.Autodiff(px.Cpu()))
    return train.classify(model, *_digits(), optim.AdamWConfig())


def torch_demo() -> Run:
    """The same in PyTorch."""
    import torch  # noqa: PLC0415 # pyright: ignore[reportMissingImports] - for comparisons

    model = train.torch_demo()
    return train.torch_classify(model, *_digits(), torch.optim.AdamW(model.parameters(), lr=1e-3))


def _peak(name: str) -> int:
    """What `peak` gives in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.checkpoints", name]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return int(json.loads(out))


def peak(name: str) -> int:
    """Bytes at most above those between two steps, of which the first also makes the parameters."""
    if name == DEMO_TORCH:
        return torch_peak(torch_demo())
    run = demo() if name == DEMO else encoder(name)
    run()
    before = px.Cpu().memory()
    for _ in range(STEPS):
        run()
    return px.Cpu().memory().peak - before.current


def torch_peak(run: Run) -> int:
    """The same of PyTorch, told by its profiler."""
    import torch  # noqa: PLC0415 # pyright: ignore[reportMissingImports] - for comparisons

    run()
    with torch.profiler.profile(profile_memory=True) as profile:
        for _ in range(STEPS):
            run()
    changes = [
        (event.start_ns(), event.nbytes())
        for event in profile.profiler.kineto_results.events()
        if event.name() == "[memory]"
    ]
    held = most = 0
    for _, nbytes in sorted(changes, key=lambda change: change[0]):
        held += nbytes
        most = max(most, held)
    return most


if __name__ == "__main__":
    print(json.dumps(peak(sys.argv[1])))
