"""A loop as users write it, and what ends it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from phlox import data, optim, train
from tests.train.nets import Net, forward, net, rows


def learner(**settings: Any) -> train.Learner[Net]:
    rate = optim.CosineSchedulerConfig(1e-2, steps=40).init()
    return train.Learner(net(), optim.AdamWConfig().init(), rate, **settings)


def loader() -> data.DataLoader:
    return data.DataLoader(data.arrays(**rows(30)), 8, shuffle=True)  # 4 batches, the last of 6


def loop(
    folder: Path | None,
    epochs: int = 3,
    feed: Any = None,
    body: Any = None,
    one: Any = None,
    fn: Any = forward,
    **settings: Any,
) -> tuple[train.Run, train.Learner[Net]]:
    """A loop as users write it."""
    one = one or learner()
    with train.Run(folder, one, loader() if feed is None else feed, show=False, **settings) as run:
        for epoch in run.epochs(epochs):
            for batch in run.batches():
                run.log(loss=one.step(fn, batch)["loss"])
                if body is not None:
                    body(run, one)
            run.log({"loss": float(epoch)}, split="valid")
    return run, one


def stop_at(step: int) -> Any:
    """A callback that ends a run behind a step."""

    def callback(event: train.Event, run: train.Run) -> None:
        if isinstance(event, train.Stepped) and event.step == step:
            run.stop("tested")

    return callback
