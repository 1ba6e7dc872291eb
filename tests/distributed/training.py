"""A training that `phlox launch` runs, and of which one rank may come to harm at a step.

phlox launch -n 3 training.py FOLDER WAY HARM RANK STEP
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

import numpy as np

from phlox import Autodiff, Cpu, Wgpu, data, distributed, optim, train
from phlox_tensor.groups import Group
from tests.train.nets import bits, forward, net, rows

STEPS = 32  # eight epochs of four steps


def shifted(item: dict[str, Any], rng: Any) -> dict[str, Any]:
    """An augmentation, whose random numbers are those of the item."""
    return item | {"x": item["x"] + rng.normal(size=8).astype(np.float32)}


def whole(group: Group, folder: Path, way: str = "eager", harm: Any = None) -> list[bytes]:
    """Train with batch norm, dropout, augmentation, parts, clipping, an average, and a schedule."""
    learner = train.Learner(
        net(Autodiff(Wgpu() if way == "wgpu" else Cpu())),
        optim.AdamWConfig(grad_clipping=optim.ClipByGlobalNorm(0.5)).init(),
        optim.CosineSchedulerConfig(1e-2, steps=STEPS).init(),
        microbatches=8,
        ema=0.9,
        seed=5,
        compile=way == "compiled",
        group=group,
    )
    loader = data.DataLoader(data.of(data.arrays(**rows(90))).map(shifted), 24, shuffle=True)
    check = data.DataLoader(data.arrays(**rows(50)), 8)
    with train.Run(
        folder,
        learner,
        loader,
        callbacks=[] if harm is None else [harm],
        save=train.Every(steps=3),
        show=False,
        system=None,
    ) as run:
        for _ in run.epochs(8):
            for batch in run.batches():
                run.log(loss=learner.step(forward, batch)["loss"])
            found = train.evaluate(learner.model, forward, check, [train.Accuracy()], group=group)
            run.log(found, split="valid")
    assert learner.ema
    return [*bits(learner.model), *bits(learner.ema.model)]


class Harm:
    """What happens to one rank behind a step, once for a folder."""

    def __init__(self, folder: Path, rank: int, kind: str, at: str, step: str) -> None:
        self.kind, self.step = kind, int(step)
        self.mark = folder.with_name(f"{folder.name}-{kind}-{step}-happened")
        self.mine = rank == int(at)

    def __call__(self, event: train.Event, run: train.Run) -> None:
        if not (isinstance(event, train.Stepped) and event.step == self.step and self.mine):
            return
        if self.mark.exists():
            return
        self.mark.touch()
        if self.kind == "raise":
            raise ValueError(f"harm at step {self.step}")
        if self.kind == "exit":
            sys.exit(3)
        os.kill(os.getpid(), getattr(signal, self.kind))


if __name__ == "__main__":
    place, *words = sys.argv[1:]
    ranks = distributed.init()
    harms = Harm(Path(place), ranks.rank, *words[1:]) if len(words) > 1 else None
    found = whole(ranks, Path(place), words[0], harms)
    Path(f"{place}-{ranks.rank}.bits").write_bytes(b"".join(found))
    print("done", ranks.rank, "of", ranks.size, flush=True)
