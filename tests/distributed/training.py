"""A training that `phlox launch` runs, and of which one rank may come to harm at a step.

phlox launch -n 3 training.py FOLDER WAY HARM RANK STEP
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import phlox as px
from phlox import Autodiff, Cpu, Wgpu, data, distributed, optim, train
from tests.distributed.threads import MAKING
from tests.train.nets import bits, forward, net, rows

OFTEN = train.Every(steps=3)
WAYS: dict[str, dict[str, Any]] = {
    "eager": {},
    "compiled": {"compile": True},
    "sharded": {"shard_optimizer": True},
    "wgpu": {"inner": Wgpu},
}


def shifted(item: dict[str, Any], rng: Any) -> dict[str, Any]:
    """An augmentation, whose random numbers are those of the item."""
    return item | {"x": item["x"] + rng.normal(size=8).astype(np.float32)}


def whole(
    group: Any,
    folder: Path | None,
    *,
    inner: Any = Cpu,
    epochs: int = 8,
    callbacks: Any = (),
    save: train.Every = OFTEN,
    **settings: Any,
) -> list[bytes]:
    """A training with all that one can have; bits of weights, state and average."""
    with MAKING:
        model = net(Autodiff(inner()))
    learner = train.Learner(
        model,
        optim.AdamWConfig(grad_clipping=optim.ClipByGlobalNorm(0.5)).init(),
        optim.CosineSchedulerConfig(1e-2, steps=40).init(),
        microbatches=8,
        ema=0.9,
        seed=5,
        group=group,
        **settings,
    )
    loader = data.DataLoader(data.of(data.arrays(**rows(90))).map(shifted), 24, shuffle=True)
    check = data.DataLoader(data.arrays(**rows(50)), 8)
    with train.Run(
        folder, learner, loader, callbacks=callbacks, save=save, show=False, system=None
    ) as run:
        for _ in run.epochs(epochs):  # of four steps
            for batch in run.batches():
                assert len(batch["x"]) <= -(-24 // group.size) + 2  # no rank loads all of it
                run.log(loss=learner.step(forward, batch)["loss"])
            found = train.evaluate(learner.model, forward, check, [train.Accuracy()], group=group)
            run.log(found, split="valid")
    assert learner.rows is None
    assert learner.ema
    return [*bits(learner.model), *bits(learner.ema.model)]


def log_of(folder: Path) -> list[dict[str, Any]]:
    lines = (folder / "log.jsonl").read_text().splitlines()
    return [{k: v for k, v in json.loads(line).items() if k != "time"} for line in lines]


FILLER = "filler"  # the file that fills a disk


def out_of_memory() -> None:
    """Allow this process 64 MB more than it has, and take what there is."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + (1 << 26)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    blocks = []
    while True:
        blocks.append(px.ones((1 << 20,), device=Cpu()) * 2.0)


def fill(path: Path) -> None:
    """Fill the disk."""
    with contextlib.suppress(OSError), path.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(1 << 16))


class Harm:
    """What happens to one rank behind a step, once for a folder."""

    def __init__(self, folder: Path, rank: int, kind: str, at: str, step: str) -> None:
        self.kind, self.step = kind, int(step)
        self.mark = folder.with_name(f"{folder.name}-{kind}-{step}-happened")
        self.mine = rank == int(at)

    def __call__(self, event: train.Event, run: train.Run) -> None:
        if self.kind == "slow":
            time.sleep(0.5 * isinstance(event, train.Stepped))
        if not (isinstance(event, train.Stepped) and event.step == self.step and self.mine):
            return
        if self.mark.exists():
            return
        self.mark.touch()
        if self.kind == "raise":
            raise ValueError(f"harm at step {self.step}")
        if self.kind == "exit":
            sys.exit(3)
        if self.kind == "memory":
            out_of_memory()
        if self.kind == "disk":
            fill(self.mark.with_name(FILLER))
            return  # what it does comes with the next checkpoint
        os.kill(os.getpid(), getattr(signal, self.kind))


if __name__ == "__main__":
    place, *words = sys.argv[1:]
    ranks = distributed.init()
    harms = Harm(Path(place), ranks.rank, *words[1:]) if len(words) > 1 else None
    callbacks = [] if harms is None else [harms]
    found = whole(ranks, Path(place), callbacks=callbacks, **WAYS[words[0]])
    Path(f"{place}-{ranks.rank}.bits").write_bytes(b"".join(found))
    print("done", ranks.rank, "of", ranks.size, flush=True)
