"""Threads: results do not depend on their number, Python's run beside kernels, forks survive."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import phlox as px
from phlox import Autodiff, Cpu
from tests.backends import same_bits

ROOT = Path(__file__).resolve().parents[2]


@cache
def digests(threads: int) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.backends.same_bits"],
        cwd=ROOT,
        env=os.environ | {"PHLOX_NUM_THREADS": str(threads)},
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.splitlines()


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "threads", [pytest.param(2, marks=pytest.mark.long), 3, pytest.param(4, marks=pytest.mark.long)]
)
def test_any_number_of_threads_gives_the_same_bits(threads: int) -> None:
    alone, other = digests(1), digests(threads)
    assert len(alone) > 500
    wrong = [a for a, b in zip(alone, other, strict=True) if a != b]
    assert not wrong, f"{threads} threads differ from one in {len(wrong)}: {wrong[:5]}"


def test_the_digest_tells_results_apart() -> None:
    one = px.asarray([1.0, 2.0], device=Cpu())
    assert same_bits.digest(one) != same_bits.digest(one + 1e-7 * 2)
    assert same_bits.digest(one) == same_bits.digest(one + 0)


def test_python_runs_while_a_long_kernel_does() -> None:
    """With switching between threads all but off, only a released lock lets another one run."""
    rng = np.random.default_rng(0)
    x = px.asarray(rng.normal(size=(1200, 1200)).astype(np.float32), device=Cpu())
    want = (x @ x).numpy()
    started, finished = threading.Event(), threading.Event()
    results: list[np.ndarray] = []

    def work() -> None:
        started.set()
        products = [x @ x for _ in range(3)]
        results.append(products[-1].numpy())
        finished.set()

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    try:
        thread = threading.Thread(target=work)
        thread.start()
        started.wait()
        turns = 0
        while not finished.is_set():
            turns += 1
            time.sleep(0)  # gives the lock back
        thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert turns > 3
    np.testing.assert_array_equal(results[0], want)


def test_threads_of_python_compute_what_one_does() -> None:
    """Independent work in two threads: each gets what it would alone."""

    def work(seed: int) -> bytes:
        rng = np.random.default_rng(seed)
        x = px.asarray(rng.normal(size=(300, 301)).astype(np.float32), device=Cpu())
        for _ in range(15):
            x = px.softmax(x @ x.T, axis=-1) @ x + px.tanh(x)
        return x.numpy().tobytes()

    want = [work(0), work(1)]
    got: dict[int, bytes] = {}
    threads = [
        threading.Thread(target=lambda seed=seed: got.update({seed: work(seed)})) for seed in (0, 1)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [got[0], got[1]] == want


def child_status(work: Callable[[], bool], seconds: float = 60) -> int:
    """Exit status of a fork that runs the work: 0 where it returns True, -1 where it hangs."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = 0 if work() else 2
        finally:
            os._exit(status)
    limit = time.monotonic() + seconds
    while time.monotonic() < limit:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return -1


def train() -> float:
    """A few steps of descent on the threads of the pool; the last loss."""
    rng = np.random.default_rng(5)
    device = Autodiff(Cpu())
    x = px.asarray(rng.normal(size=(256, 300)).astype(np.float32), device=device)
    weight = px.asarray(rng.normal(size=(300, 200)).astype(np.float32) * 0.05, device=device)
    loss = 0.0
    for _ in range(5):
        weight = weight.detach().require_grad()
        out = (px.tanh(x @ weight) - 0.5).square().mean()
        gradient = weight.grad(out.backward())
        assert gradient is not None
        weight = weight - px.asarray(gradient.numpy(), device=device) * 10
        loss = out.item()
    return loss


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.filterwarnings("ignore:This process.*is multi-threaded:DeprecationWarning")
def test_a_fork_computes_and_trains_after_kernels_ran() -> None:
    want = train()  # on the pool
    assert child_status(lambda: train() == want) == 0
    assert child_status(lambda: child_status(lambda: train() == want) == 0) == 0  # a fork's fork
    assert train() == want


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.filterwarnings("ignore:This process.*is multi-threaded:DeprecationWarning")
def test_a_fork_in_the_middle_of_a_kernel_computes() -> None:
    """Another thread keeps the pool and the allocator busy at the moment of the fork."""
    x = px.asarray(np.linspace(-3, 3, 400_000).astype(np.float32), device=Cpu())
    want = px.tanh(x).numpy().tobytes()
    stop = threading.Event()

    def busy() -> None:
        while not stop.is_set():
            _ = (px.exp(x) + 1) @ px.ones((400_000, 1), device=Cpu())

    thread = threading.Thread(target=busy)
    thread.start()
    try:
        found = [child_status(lambda: px.tanh(x).numpy().tobytes() == want) for _ in range(10)]
    finally:
        stop.set()
        thread.join()
    assert found == [0] * 10
