"""Train by many processes: `phlox launch -n 4 --min 2 -m examples.processes --epochs 3`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import phlox as px
from examples.mnist.batches import rows
from examples.mnist.data import load
from examples.mnist.model import Digits, DigitsConfig
from examples.mnist.train import step
from phlox import Autodiff, Cpu, data, distributed, nn, optim, train


class Settings(nn.Config):
    """Tell digits apart, to the same bits by any number of processes.

    Attributes:
        batch: images of a step, over all processes.
        parts: into which a batch is cut, and whose gradients are added up.
        epochs: how often each image is seen.
        lr: the highest learning rate.
        run: the folder of the run; a second start goes on with it, with any number of processes.
    """

    batch: int = 512
    parts: int = 8
    epochs: int = 3
    lr: float = 2e-3
    run: str = "runs/processes"


def fit(settings: Settings, seen: Any, kept: Any, group: distributed.Group) -> train.Ema[Digits]:
    """Train and test with all processes, and return the average of the weights."""
    px.seed(0)  # the same on all: order, dropout and augmentation follow from item, step and part
    batches = data.DataLoader(seen, settings.batch, shuffle=True)  # the last one may be short
    check = data.DataLoader(kept, 500)
    learner = train.Learner(
        DigitsConfig().init(Autodiff(Cpu())),  # on GPUs: Autodiff(Wgpu(group.local_rank))
        optim.AdamWConfig(grad_clipping=optim.ClipByGlobalNorm(1.0)).init(),
        optim.CosineSchedulerConfig(settings.lr, settings.epochs * len(batches)).init(),
        microbatches=settings.parts,  # more than processes: gradients are accumulated
        ema=0.99,
        compile=True,
        group=group,
    )
    assert learner.ema is not None
    with train.Run(
        settings.run,  # log and checkpoints are written by rank 0
        learner,
        batches,
        config=settings,
        keep=[train.KeepLast(2), train.KeepBest("valid/accuracy")],
    ) as run:
        for epoch in run.epochs(settings.epochs):
            for batch in run.batches():  # the rows of this process
                out = learner.step(step, batch)
                run.log(loss=out["loss"], rate=learner.rate)  # of the whole batch
            found = train.evaluate(learner.ema.model, step, check, [train.Accuracy()], group=group)
            run.log(found, split="valid")  # of all images, each counted once
            if group.rank == 0:
                print(f"epoch {epoch + 1}: {found}")
    return learner.ema


def main(settings: Settings) -> None:
    """Train on MNIST, and save the model."""
    group = distributed.init()
    if group.local_rank == 0:
        load()  # one process of each machine downloads
    group.barrier()
    digits = load()
    average = fit(settings, rows(digits.train), rows(digits.test), group)
    if group.rank == 0:
        print(average.model.valid().save_file(Path(settings.run) / "digits"))


if __name__ == "__main__":
    train.cli(main)
