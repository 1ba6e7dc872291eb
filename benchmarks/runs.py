"""What training by phlox_train costs beside a plain loop: a step, a row, a checkpoint, an epoch.

Differences of short times are taken of the least of many samples, which take turns; of saves, the
medians count.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import phlox as px
from examples.mnist.batches import rows
from examples.mnist.data import Split
from examples.mnist.model import DigitsConfig
from examples.mnist.train import step as digits_step
from phlox import Autodiff, Cpu, data, nn, optim, train
from phlox.record import NamedMsgpackRecorder

_TURNS, _SMALL = 200, 20
_WIDTH = 3162  # squared, about ten million weights: 120 MB with both moments of Adam
_LONG, _SAVES = 24, 12  # steps that take longer than a save; how many saves there are
_BATCH, _STEPS = 64, 40


def report(*, with_torch: bool) -> list[dict[str, Any]]:
    """Measure and print the table."""
    del with_torch
    found: list[dict[str, Any]] = []
    for name, value, wanted, unit in (*_steps(), _row(), *_checkpoint(), _demo()):
        mark = "" if value <= wanted else " !"
        print(f"{name:<60} {value:>10.2f} {unit}{mark} (≤ {wanted:g})", flush=True)
        found.append({"group": "runs", "name": name, "value": value, "wanted": wanted})
    return found


Line = tuple[str, float, float, str]


def _least(runs: list[Callable[[], object]], turns: int, times: int) -> list[float]:
    """The least processor seconds of each run."""
    best = [float("inf")] * len(runs)
    for _ in range(turns):
        for place, run in enumerate(runs):
            start = time.process_time()
            for _ in range(times):
                run()
            best[place] = min(best[place], (time.process_time() - start) / times)
    return best


def _steps() -> list[Line]:
    device = Autodiff(Cpu())
    loss_fn = nn.CrossEntropyLossConfig().init()
    x = px.random.normal((4, 4), device=device)
    batch = {"x": x, "y": px.asarray([0, 1, 2, 0], device=device)}

    def forward(model: Any, batch: Any) -> dict[str, Any]:
        return {"loss": loss_fn(model(batch["x"]), batch["y"])}

    def plain(*, compiled: bool) -> Callable[[], object]:
        optimizer = optim.SgdConfig().init()
        schedule = optim.ConstantSchedulerConfig(1e-3).init()
        models = [nn.Linear(4, 3, device=device)]

        def step(model: Any, batch: Any) -> Any:
            loss = forward(model, batch)["loss"]
            return optimizer.step(schedule.step(), model, loss.backward()), loss.detach()

        used = px.compile(step) if compiled else step

        def run() -> None:
            models[0], _ = used(models[0], batch)

        return run

    def learner(*, compiled: bool) -> Callable[[], object]:
        model = nn.Linear(4, 3, device=device)
        one = train.Learner(model, optim.SgdConfig().init(), 1e-3, compile=compiled)
        return lambda: one.step(forward, batch)

    lines = []
    for compiled in (False, True):
        pair = [plain(compiled=compiled), learner(compiled=compiled)]
        _least(pair, 3, _SMALL)
        one, other = _least(pair, _TURNS, _SMALL)
        name = f"learner.step over the plain {'compiled ' if compiled else ''}loop"
        lines.append((name, (other - one) * 1e6, 10.0, "µs"))
    return lines


def _row() -> Line:
    one = train.Learner(nn.Linear(2, 1, device=Autodiff(Cpu())), optim.SgdConfig().init(), 1e-3)
    loss, both, alone = px.asarray(0.5), 0.0, 0.0
    with (
        tempfile.TemporaryDirectory(prefix="phlox-bench-") as folder,
        train.Run(folder, one, range(10**9), save=train.Every(minutes=60), show=False) as run,
    ):
        batches = run.batches()

        def logged() -> None:
            next(batches)
            run.log(loss=loss, accuracy=0.5, rate=1e-3)

        def stepped() -> None:
            next(batches)

        both, alone = _least([logged, stepped], _TURNS, _SMALL)
    assert alone < both
    return "run.batches and run.log of three numbers", both * 1e6, 30.0, "µs"


def _checkpoint() -> list[Line]:
    device = Autodiff(Cpu())
    model = nn.Linear(_WIDTH, _WIDTH, device=device)
    one = train.Learner(model, optim.AdamConfig().init(), 1e-3)
    x = px.ones((8, _WIDTH), device=device)

    def forward(model: Any, x: Any) -> Any:
        return model(x).square().mean()

    def trained(saves: train.Checkpoints | None, number: int) -> tuple[float, int, float]:
        """Seconds of steps, how many until a file is there, and seconds of the snapshot."""
        start, pause, steps = time.perf_counter(), 0.0, 0
        while steps < _LONG or (saves is not None and saves.busy):
            one.step(forward, x)
            if steps == 0 and saves is not None:
                begun = time.perf_counter()
                saves.save(number, {"learner": one.into_record()})
                pause = time.perf_counter() - begun
            steps += 1
        one.model.weight.value.detach().numpy()
        return time.perf_counter() - start, steps, pause

    with tempfile.TemporaryDirectory(prefix="phlox-bench-") as folder:
        saves = train.Checkpoints(folder)
        trained(saves, 0)
        saves.wait()
        alone, beside, pauses, whole = [], [], [], []
        for number in range(1, _SAVES + 1):
            alone.append(trained(None, 0)[0] / _LONG)
            *found, pause = trained(saves, number)
            saves.wait()
            beside.append(found)
            pauses.append(pause)
            start = time.perf_counter()
            NamedMsgpackRecorder().record(one.into_record(), Path(folder) / "whole")
            whole.append(time.perf_counter() - start)
        saves.close()
    lost = median(seconds - steps * median(alone) for seconds, steps in beside)
    share = lost / median(whole)
    return [
        ("snapshot of a checkpoint of 120 MB", median(pauses) * 1e3, 1.0, "ms"),
        ("training that it loses, as a share of a synchronous save", share, 0.6, ""),
    ]


def _demo() -> Line:
    rng = np.random.default_rng(0)
    count = _BATCH * _STEPS
    images = rng.integers(0, 256, (count, 28, 28)).astype(np.uint8)
    digits = rows(Split(images, rng.integers(0, 10, count).astype(np.uint8)))
    device = Autodiff(Cpu())

    def plain() -> None:
        px.seed(0)
        model, optimizer = DigitsConfig().init(device), optim.AdamWConfig().init()
        for batch in data.DataLoader(digits, _BATCH, shuffle=True, device=device):
            loss = digits_step(model, batch)["loss"]
            model = optimizer.step(1e-3, model, loss.backward())
            float(loss)

    def fitted() -> None:
        px.seed(0)
        train.fit(
            DigitsConfig().init(device),
            digits_step,
            data.DataLoader(digits, _BATCH, shuffle=True),
            optimizer=optim.AdamWConfig().init(),
            lr=1e-3,
            show=False,
        )

    _least([plain, fitted], 1, 1)
    pairs = [
        _least([plain, fitted], 1, 1) for _ in range(15)
    ]  # neighbors, on a machine that drifts
    more = median(other / one - 1 for one, other in pairs)
    return "an epoch of the digits by fit over its plain loop", more * 100, 1.0, "%"
