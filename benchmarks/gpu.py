"""Training steps on each GPU adapter, as written and compiled; beside PyTorch where it has CUDA."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import phlox as px
from benchmarks import compile as compiled
from benchmarks import networks, train
from benchmarks.case import Case, Run
from examples.mnist.model import DigitsConfig
from phlox import optim

TURNS = 16
"""Calls between two reads: a read costs tens of microseconds, and training seldom reads."""

Op = Callable[[], Any]


def cases(*, with_torch: bool) -> list[Case]:
    """Return the benchmarks of the group, for every adapter found."""
    out: list[Case] = []
    for device in px.Wgpu.found():
        given = _inputs(software=device.is_software)
        twins = _cuda(given) if with_torch and not device.is_software else {}
        for name, op in _steps(px.Autodiff(device), given).items():
            twin = twins.get(name.removesuffix(", compiled"))
            ours = read_back(op, lambda last: last.numpy())
            theirs = None if twin is None else read_back(twin, lambda last: last.detach().cpu())
            out.append(Case(f"{device!r} {name}, x{TURNS}", ours, theirs))
    return out


def read_back(op: Op, read: Callable[[Any], object]) -> Run:
    """Return what calls an op several times, then reads from the last result."""

    def run() -> object:
        for _ in range(TURNS - 1):
            op()
        return read(op())

    return run


def _inputs(*, software: bool) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Rows or pictures and their classes, by the name of the step."""
    rng = np.random.default_rng(1)

    def draw(*shape: int) -> tuple[np.ndarray, np.ndarray]:
        return rng.standard_normal(shape, np.float32), rng.integers(0, 10, shape[0])

    return {
        "MLP 64-32-10, b32, AdamW": draw(32, 64),
        "MLP 784-256-10, b64, AdamW": draw(64, 784),
        **{
            f"digits CNN, b{count}, AdamW": draw(count, 1, 28, 28)
            for count in ((8,) if software else (64, 512, 4096))
        },
    }


def _steps(device: px.Backend, given: dict[str, tuple[np.ndarray, np.ndarray]]) -> dict[str, Op]:
    found: dict[str, Op] = {}
    for name, (x, labels) in given.items():
        for kind, classify in (("", train.classify), (", compiled", compiled.classify)):
            model = _model(name, device)
            found[name + kind] = classify(model, x, labels, optim.AdamWConfig(), device)
    return found


def _model(name: str, device: Any) -> Any:
    if name.startswith("digits"):
        return DigitsConfig().init(device)
    return networks.mlp(*_sizes(name), device)


def _sizes(name: str) -> tuple[int, int, int]:
    return train.TINY if "64-32-10" in name else train.MLP


def _cuda(given: dict[str, tuple[np.ndarray, np.ndarray]]) -> dict[str, Op]:
    """The same steps in PyTorch on the first CUDA device; empty without one."""
    import torch  # noqa: PLC0415 # pyright: ignore[reportMissingImports] - for comparisons

    if not torch.cuda.is_available():
        return {}
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False

    def step(name: str, x: np.ndarray, labels: np.ndarray) -> Op:
        make = train.torch_demo if name.startswith("digits") else partial(_mlp, *_sizes(name))
        model = make().cuda()
        rule = torch.optim.AdamW(model.parameters(), lr=1e-3)
        return train.torch_classify(model, x, labels, rule)

    return {name: step(name, *arrays) for name, arrays in given.items()}


def _mlp(d_input: int, d_hidden: int, d_output: int) -> Any:
    from torch.nn import Linear, ReLU, Sequential  # noqa: PLC0415 # pyright: ignore[reportMissingImports] - for comparisons

    return Sequential(Linear(d_input, d_hidden), ReLU(), Linear(d_hidden, d_output))
