"""A run that others kill, python killed.py FOLDER WAY, which says where it begins."""

from __future__ import annotations

import sys
from pathlib import Path

import phlox as px
from phlox import Autodiff, data, optim, train
from tests.train.nets import bits, forward, net, rows

EPOCHS = 4


def whole(folder: Path, way: str = "cpu") -> list[bytes]:
    """Train to the end with all that a step can have; return the bits of weights and average."""
    batches = data.DataLoader(data.arrays(**rows(52)), 8, shuffle=True, workers=2)
    learner = train.Learner(
        net(Autodiff(px.Wgpu() if way == "wgpu" else px.Cpu())),
        optim.AdamWConfig(grad_clipping=optim.ClipByGlobalNorm(0.5)).init(),
        optim.CosineSchedulerConfig(1e-2, steps=40).init(),
        microbatches=2,
        ema=0.9,
        compile=way == "compiled",
    )
    check = data.DataLoader(data.arrays(**rows(20)), 8)
    with train.Run(
        folder,
        learner,
        batches,
        config={"width": 16},
        keep=[train.KeepLast(2), train.KeepBest("valid/loss")],
        stop=[train.NotFinite(), train.NoImprovement("valid/loss", epochs=3)],
        save=train.Every(steps=2),
        show=False,
    ) as run:
        print("step", run.steps, flush=True)
        for _ in run.epochs(EPOCHS):
            for batch in run.batches():
                out = learner.step(forward, batch)
                run.log(loss=out["loss"], rate=learner.rate, drawn=px.random.uniform(()))
            run.log(train.evaluate(learner.model, forward, check), split="valid")
    average = learner.ema.model if learner.ema else learner.model
    return [*bits(learner.model), *bits(average)]


if __name__ == "__main__":
    whole(Path(sys.argv[1]), sys.argv[2])
    print("done", flush=True)
