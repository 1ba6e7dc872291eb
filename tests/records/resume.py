"""Trains a small model and saves each step; may be told to kill itself. Run by test_resume.py.

Arguments: folder, device, steps, and the number of the moment at which the process dies (0: never).
A moment is a batch, or a point in a save: before and after bytes reach the disk and names change.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import phlox as px
from phlox import Autodiff, Cpu, Wgpu, nn, optim
from phlox.record import Checkpointer, NamedMsgpackRecorder

ROWS = 32
SLOW = 280.0  # seconds, after which it says where it stands: less than its caller waits


class Net(nn.Module):
    first: nn.Linear
    norm: nn.BatchNorm
    drop: nn.Dropout
    last: nn.Linear

    def forward(self, x: Any) -> Any:
        return self.last(self.drop(self.norm(self.first(x)).relu()))


def dying(at: int) -> Callable[[], None]:
    """Return what counts moments, and kills the process without a word at one of them."""
    left = [at]

    def moment() -> None:
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    return moment


def around(function: Callable[..., Any], moment: Callable[[], None]) -> Callable[..., Any]:
    """Return the function with a moment before it and one behind."""

    def call(*arguments: Any, **options: Any) -> Any:
        moment()
        found = function(*arguments, **options)
        moment()
        return found

    return call


def watched(moment: Callable[[], None]) -> NamedMsgpackRecorder:
    """Return a recorder that counts a moment for each piece of a file."""
    recorder = NamedMsgpackRecorder()
    write = recorder.write

    def pieces(content: Any, sink: Callable[[Any], object]) -> None:
        write(content, around(sink, moment))

    recorder.write = pieces  # type: ignore[method-assign]
    return recorder


def main(folder: str, device: str, steps: int, die: int) -> None:
    """Train from where the folder is to ``steps``, then print the bits of everything."""
    moment = dying(die)
    os.fsync, os.replace = around(os.fsync, moment), around(os.replace, moment)
    Path.unlink = around(Path.unlink, moment)  # type: ignore[method-assign]
    target = Autodiff(Cpu() if device == "cpu" else Wgpu())
    px.random.seed(0)
    model = Net(*_layers(target))
    optimizer = optim.AdamWConfig().init()
    schedule = optim.CosineSchedulerConfig(1e-2, steps=steps).init()
    checkpoints = Checkpointer(folder, best="loss", recorder=watched(moment))
    found = checkpoints.restore(model=model, optimizer=optimizer, schedule=schedule, position=0)
    start, position = 0, 0
    if found is not None:
        model, start, position = found["model"], found["step"], found["position"]
    data = px.arange(ROWS * 4, device=target).astype("float32").reshape(ROWS, 4) / 64.0
    for step in range(start + 1, steps + 1):
        batch = data[position : position + 8]
        position = (position + 8) % ROWS
        loss = ((model(batch) - batch.sum(axis=1, keepdims=True)) ** 2).mean()
        model = optimizer.step(schedule.step(), model, loss.backward())
        moment()
        checkpoints.save(
            step,
            metrics={"loss": float(loss)},
            model=model,
            optimizer=optimizer,
            schedule=schedule,
            position=position,
        )
    tree = {"model": model.into_record(), "optimizer": optimizer.into_record()}
    words = [schedule.into_record(), px.random.generator().state(), position, checkpoints.steps]
    print(NamedMsgpackRecorder().to_bytes(tree).hex(), words)


def _layers(device: Any) -> Any:
    return (
        nn.Linear(4, 8, device=device),
        nn.BatchNorm(8, device=device),
        nn.Dropout(0.2),
        nn.Linear(8, 1, device=device),
    )


if __name__ == "__main__":
    faulthandler.dump_traceback_later(SLOW, exit=True)
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
