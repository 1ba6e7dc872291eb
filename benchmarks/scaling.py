"""Training on 1, 2, 4 and 8 GPUs of this machine, one process for each: steps, exchange, bits.

The whole batch is the same for any number of GPUs, so twice as many should take half of the time.
Steps are timed with as many parts as GPUs. The bits are those of eight parts, whoever computes
them. Without a GPU, one and two processes share software Vulkan, with small batches.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any, NamedTuple

import numpy as np

import phlox as px
from benchmarks import networks
from benchmarks.processes import bits_of, job_says, learner_of
from examples.mnist.model import DigitsConfig
from examples.mnist.train import step as classify
from phlox import Autodiff, Mixed, Wgpu, distributed, nn, train
from phlox_tensor.groups import Group
from phlox_train.step.buckets import Sent, plan_of
from phlox_train.step.data_parallel import weights_of

_COUNTS = (1, 2, 4, 8)
_WANTED = {2: 0.85, 4: 0.7}  # of what that many GPUs could do at best
_PARTS, _EXACT = 8, 4  # parts and steps, whose bits are compared
_ROUNDS = 5

Arrays = dict[str, np.ndarray]
Step = Callable[[Any, Any], Any]


class Case(NamedTuple):
    """A training: a name, what makes the model, a step, the whole batch, steps of a round."""

    name: str
    model: Callable[[px.Backend], nn.Module]
    step: Step
    batch: Arrays
    steps: int


def report(*, with_torch: bool) -> list[dict[str, Any]]:
    """Measure and print the table."""
    del with_torch
    found = Wgpu.found()
    hardware = len([device for device in found if not device.is_software])
    counts = [count for count in _COUNTS if count <= max(hardware, 2 if not hardware else 1)]
    jobs = {count: _job(count, software=not hardware) for count in counts}
    rows = []
    print("| training | GPUs | ms | efficiency | exchange, ms | MB out, in | bits |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for place, (name, one, *_) in enumerate(jobs[1]):
        for count in _COUNTS:
            if count not in jobs:
                print(f"| {name} | {count} | not run | | | | |")
                continue
            _, seconds, exchange, sent, taken, bits = jobs[count][place]
            efficiency = one / seconds / count
            wanted = _WANTED.get(count)
            mark = "" if wanted is None or efficiency >= wanted else f" ! (≥ {wanted})"
            print(
                f"| {name} | {count} | {seconds * 1e3:.2f} | {efficiency:.2f}{mark} "
                f"| {exchange * 1e3:.2f} | {sent / 1e6:.1f}, {taken / 1e6:.1f} | {bits} |",
                flush=True,
            )
            value = {"ms": seconds * 1e3, "efficiency": efficiency, "bits": bits}
            rows.append({"group": "scaling", "name": f"{name}, {count} GPUs", **value})
    assert len({(row["name"].rpartition(",")[0], row["bits"]) for row in rows}) == len(jobs[1])
    return rows


def _job(count: int, *, software: bool) -> Any:
    """What rank 0 of a job prints."""
    threads = max(1, (os.cpu_count() or 1) // count)
    return job_says(count, threads, "benchmarks.scaling", "software" if software else "gpu")


def _cases(*, software: bool) -> list[Case]:
    rng = np.random.default_rng(0)

    def digits(count: int, steps: int) -> Case:
        images = rng.normal(size=(count, 1, 28, 28)).astype(np.float32)
        batch: Arrays = {"image": images, "label": np.arange(count) % 10}
        return Case(f"digits CNN b{count}", DigitsConfig().init, classify, batch, steps)

    def encoder(count: int, length: int, sizes: tuple[int, int, int, int], steps: int) -> Case:
        batch = {"x": rng.normal(size=(count, length, sizes[1])).astype(np.float32)}
        name = f"encoder d{sizes[1]} L{sizes[0]}, {count} of {length}"
        return Case(name, lambda device: networks.encoder(*sizes, device), _restore, batch, steps)

    if software:
        return [digits(16, 1), encoder(8, 8, (1, 32, 2, 64), 1)]
    large = (4, 512, 8, 2048)
    return [digits(4096, 20), encoder(64, 256, large, 8), encoder(256, 256, large, 3)]


def _restore(model: Any, batch: Any) -> Any:
    return (model(batch["x"]) - batch["x"]).square().mean()


def job(*, software: bool) -> list[Any]:
    """Measure all trainings in one process or as one rank of several."""
    group = distributed.init()
    device: Any = Wgpu(0 if software else group.local_rank)
    found, rounds = [], 1 if software else _ROUNDS
    for case in _cases(software=software):
        for kind, narrow in (("float32", None), ("Mixed float16", "float16")):
            on = Autodiff(device if narrow is None else Mixed(device, narrow))
            learner = _learner(case, on, group, group.size)
            seconds = _timed(case, learner, device, group, rounds)
            exchange = _exchanged(learner, device, group, rounds) if group.size > 1 else 0.0
            nbytes = 4 * sum(param.value.size for param in learner.model.param_list())
            taken = nbytes * (group.size - 1)
            exact = _learner(case, on, group, _PARTS)
            for _ in range(_EXACT):
                exact.step(case.step, case.batch)
            sent = nbytes if group.size > 1 else 0
            found.append(
                (f"{case.name}, {kind}", seconds, exchange, sent, taken, bits_of(exact.model))
            )
    return found


def _learner(case: Case, device: px.Backend, group: Group, parts: int) -> train.Learner[Any]:
    px.seed(0)
    return learner_of(case.model(device), group, parts, 1e-4)


def _timed(
    case: Case, learner: train.Learner[Any], device: px.Backend, group: Group, rounds: int
) -> float:
    """Seconds of a step, the median of rounds in which nothing is read between steps."""
    times = []
    for _ in range(rounds + 1):
        device.sync()
        group.barrier()
        begin = time.perf_counter()
        for _ in range(case.steps):
            learner.step(case.step, case.batch)
        device.sync()
        group.barrier()
        times.append((time.perf_counter() - begin) / case.steps)
    return median(times[1:])


def _exchanged(learner: Any, device: px.Backend, group: Group, rounds: int) -> float:
    """Seconds of an exchange with nothing beside it, the median of several."""
    parallel = learner.parallel
    weights = weights_of(learner.model)
    plan, nothing = plan_of(weights, at_once=True), Sent(bytes([1] * len(weights)), [], [])
    held = [[px.zeros(p.shape, device=device) for p in weights]]
    times = []
    for _ in range(10 * rounds):
        device.sync()
        group.barrier()
        begin = time.perf_counter()
        buckets = parallel.buckets(plan, group.size, "bench scaling")
        buckets.announce(nothing)
        buckets.send_all(nothing.present, plan.rows(held))
        parallel.gathered(nothing, buckets)
        sums = buckets.summed(nothing.present)
        device.sync()
        del sums
        times.append(time.perf_counter() - begin)
    return median(times[rounds:])


if __name__ == "__main__":
    result = job(software=sys.argv[1] == "software")
    if distributed.init().rank == 0:
        print(json.dumps(result))
