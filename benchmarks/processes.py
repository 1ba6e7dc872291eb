"""Several processes: sums over ranks beside those of MPI, and a training on the same cores.

The exchange is that of two ranks, beside ``MPI.Allreduce``, whose order is not ours. The training
is the network of the demo by two processes of one thread, beside one process of two threads; both
take the same steps to the bit. A job of MPI starts for each, in turns. The last job is killed, and
started again by ``phlox launch``.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

import numpy as np

import phlox as px
from examples.mnist.model import DigitsConfig
from examples.mnist.train import step
from phlox import Autodiff, Cpu, data, distributed, nn, optim, train
from phlox_distributed._launch import starter
from phlox_tensor.groups import Group, nodes_of, share_of, tree_sum
from phlox_train.step.buckets import Buckets

_MEGABYTES = (1, 25, 100)
_TURNS, _JOBS, _STEPS = 9, 3, 30
_BATCH, _PARTS = 512, 8
_LIMIT = 1.4  # of Allreduce


def report(*, with_torch: bool) -> list[dict[str, Any]]:
    """Measure and print the table."""
    del with_torch
    rows = [*_exchange(), *_digits(), *_restart(), *_thousand()]
    for name, value, wanted in rows:
        mark = "" if wanted is None or value <= wanted else " !"
        limit = "" if wanted is None else f" (≤ {wanted:g})"
        print(f"{name:<64} {value:>9.3f}{mark}{limit}", flush=True)
    return [{"group": "processes", "name": n, "value": v, "wanted": w} for n, v, w in rows]


Row = tuple[str, float, float | None]


def _exchange() -> list[Row]:
    *found, hidden = _job(2, 1, "exchange")
    whole = found[_MEGABYTES.index(25)][0]
    in_pass, nothing = (each / whole for each in _job(2, 1, "backward"))
    rows: list[Row] = [
        ("what is left of 25 MB behind 100 ms of sleep, of its time", hidden, 0.1),
        ("what is left of 25 MB behind 100 ms of a backward pass, of its time", in_pass, 0.1),
        ("the same step without the 25 MB, of their time", nothing, None),
    ]
    return rows + [
        (f"tree_sum of {size} MB on 2 ranks over MPI.Allreduce", ours / theirs, _LIMIT)
        for size, (ours, theirs) in zip(_MEGABYTES, found, strict=True)
    ]


def _digits() -> list[Row]:
    runs = [(_job(1, 2, "digits"), _job(2, 1, "digits")) for _ in range(_JOBS)]
    one, two = (min(seconds for seconds, _ in each) for each in zip(*runs, strict=True))
    assert len({bits for each in runs for _, bits in each}) == 1
    return [
        (f"ms of a step, digits, {_BATCH} images, 1 process of 2 threads", one * 1e3, None),
        (f"ms of a step, digits, {_BATCH} images, 2 processes of 1 thread", two * 1e3, None),
        ("2 processes over 1 process, time of a step", two / one, 1.0),
    ]


def _restart() -> list[Row]:
    found = []
    for _ in range(_JOBS):
        with TemporaryDirectory() as folder:
            launch = [sys.executable, "-m", "phlox", "launch", "-n", "2", "--restarts", "1"]
            found.append(_said([*launch, "-m", "benchmarks.processes", "restart", folder], 1))
    name = "s from the death of one of 2 ranks to the end of the next step, digits"
    return [(name, min(found), 3.0)]


def _thousand() -> list[Row]:
    """What a thousand ranks would have and send; nothing is run."""
    rows: list[Row] = []
    for parts, ranks in ((1000, 1000), (1024, 1000), (2048, 999), (4096, 1000), (2000, 1000)):
        held = [len(nodes_of(parts, rank, ranks)) for rank in range(ranks)]
        computed = [len(share_of(parts, rank, ranks)) for rank in range(ranks)]
        sent = max(held) * (ranks - 1) / ranks + (ranks - 1) / ranks
        name = f"{parts} parts on {ranks} ranks"
        rows.append((f"{name}: sent by a rank, in sizes of the gradient", sent, None))
        rows.append(
            (f"{name}: most parts of a rank over the mean", max(computed) * ranks / parts, None)
        )
    return rows


def _job(ranks: int, threads: int, what: str) -> Any:
    return job_says(ranks, threads, "benchmarks.processes", what)


def job_says(ranks: int, threads: int, *words: str) -> Any:
    """Return what rank 0 of a job prints, that of a module with some words."""
    command = [sys.executable, "-m", *words]
    if ranks > 1:
        command = [*starter(None, None), "-n", str(ranks), *command]
    return _said(command, threads)


def bits_of(model: nn.Module) -> str:
    """Return a hash of all parameters."""
    found = sha256()
    for param in model.param_list():
        found.update(param.value.detach().numpy().tobytes())
    return found.hexdigest()[:12]


def learner_of(
    model: nn.Module, group: Group, parts: int, rate: float = 1e-3
) -> train.Learner[Any]:
    """Return a compiled learner of a model in so many parts."""
    adam = optim.AdamWConfig().init()
    return train.Learner(model, adam, rate, microbatches=parts, compile=True, group=group, seed=0)


def _said(command: list[str], threads: int) -> Any:
    environment = {**os.environ, "PHLOX_NUM_THREADS": str(threads), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def exchange() -> list[Any]:
    """Milliseconds of a sum by the tree and of MPI's, the median of several in turns.

    Behind them stands how much of a sum is left when its thread had 100 ms for it.
    """
    from mpi4py import MPI  # noqa: PLC0415 - in a job alone

    group = distributed.init()
    found: list[Any] = []
    for size in _MEGABYTES:
        held = np.ones((1, size * 250_000), np.float32)
        whole = np.empty_like(held)
        runs: list[Any] = [
            lambda: tree_sum(group, group.size, held),  # noqa: B023 - called at once
            lambda: MPI.COMM_WORLD.Allreduce(held, whole),  # noqa: B023 - called at once
        ]
        times: list[list[float]] = [[], []]
        for _ in range(_TURNS):
            for place, run in enumerate(runs):
                group.barrier()
                begin = time.perf_counter()
                run()
                group.barrier()
                times[place].append(time.perf_counter() - begin)
        found.append((median(times[0]) * 1e3, median(times[1]) * 1e3))
    held, left = np.ones((1, 25 * 250_000), np.float32), []
    with ThreadPoolExecutor(1) as thread:
        for _ in range(_TURNS):
            group.barrier()
            begun = thread.submit(tree_sum, group, group.size, held)
            time.sleep(0.1)
            begin = time.perf_counter()
            begun.result()
            left.append(time.perf_counter() - begin)
    return [*found, median(left) * 1e3 / found[_MEGABYTES.index(25)][0]]


class _Layers(nn.Module):
    """A small layer below three large ones, each a bucket of gradients of its own."""

    small: nn.Linear
    large: list[nn.Linear]

    def forward(self, x: Any) -> Any:
        x = px.register_hook(self.small(x), lambda _: time.sleep(0.1))
        for layer in self.large:
            x = layer(x)
        return x.square().mean()


def backward() -> tuple[float, float]:
    """Milliseconds of waiting behind a backward pass in which 25 MB left, and of one without."""
    group = distributed.init()
    return _waited(group, 3), _waited(group, 0)


def _waited(group: Any, count: int) -> float:
    device, side = Autodiff(Cpu()), 1448
    large = [nn.Linear(side, side, bias=False, device=device) for _ in range(count)]
    model = _Layers(nn.Linear(8, side, bias=False, device=device), large)
    learner = train.Learner(model, optim.SgdConfig().init(), 1e-3, group=group, seed=0)
    left: list[float] = []
    parallel: Any = learner.parallel
    plain = parallel.gathered, Buckets.summed

    def gathered(*args: Any) -> Any:
        left.append(-time.perf_counter())
        return plain[0](*args)

    def summed(*args: Any) -> Any:
        sums = plain[1](*args)
        left[-1] += time.perf_counter()
        return sums

    parallel.gathered, patch = gathered, mock.patch.object(Buckets, "summed", summed)
    batch = {"x": np.ones((4, 8), np.float32)}
    with patch:
        for _ in range(_TURNS):
            group.barrier()
            learner.step(lambda model, batch: model(batch["x"]), batch)
    return median(left) * 1e3


def _learner(group: Group) -> train.Learner[Any]:
    px.seed(0)
    return learner_of(DigitsConfig().init(Autodiff(Cpu())), group, _PARTS)


def _images(count: int) -> dict[str, Any]:
    images = np.random.default_rng(0).normal(size=(count, 1, 28, 28)).astype(np.float32)
    return {"image": images, "label": np.arange(count) % 10}


def digits() -> tuple[float, str]:
    """Seconds of a step, and a hash of what the steps made."""
    group = distributed.init()
    learner, batch = _learner(group), _images(_BATCH)
    times = []
    for _ in range(_STEPS):
        group.barrier()
        begin = time.perf_counter()
        out = learner.step(step, batch)
        out["loss"].item()
        times.append(time.perf_counter() - begin)
    return median(times[_STEPS // 3 :]), bits_of(learner.model)


def restart() -> float:
    """Kill rank 1 behind its fifth step; started again, seconds from there to the next one."""
    group, folder = distributed.init(), Path(sys.argv[2])
    killed, began = folder / "killed", time.time()
    loader = data.DataLoader(data.arrays(**_images(10 * _BATCH)), _BATCH)
    learner = _learner(group)
    with train.Run(folder / "run", learner, loader, save=train.Every(steps=3), show=False) as run:
        for _ in run.epochs(1):
            for batch in run.batches():
                run.log(loss=learner.step(step, batch)["loss"].item())
                if killed.exists():
                    print(f"{time.time() - began:.2f} s of it behind imports", file=sys.stderr)
                    return time.time() - float(killed.read_text())
                if run.steps == _STEPS // 6 and group.rank:
                    killed.write_text(str(time.time()))
                    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("it was not killed")


if __name__ == "__main__":
    jobs: Any = {"exchange": exchange, "backward": backward, "digits": digits, "restart": restart}
    result = jobs[sys.argv[1]]()
    if distributed.init().rank == 0:
        print(json.dumps(result))
