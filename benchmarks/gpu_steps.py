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

ENCODER_TURNS = 4

Op = Callable[[], Any]
# What an issue asks of a step, times PyTorch's.
_WANTED = {"64-32-10": 2.0, "784-256": 1.5, "b4096": 1.4, "d1024": 0.0}


def _times(name: str) -> float:
    return next((times for part, times in _WANTED.items() if part in name), 1.0)


def cases(*, with_torch: bool) -> list[Case]:
    """Return the benchmarks of the group, for every adapter found."""
    out: list[Case] = []
    for device in px.Wgpu.found():
        given = _inputs(software=device.is_software)
        twins = _cuda(given) if with_torch and not device.is_software else {}
        if twins:
            twins |= encoders_in_torch()
        mine = _steps(px.Autodiff(device), given) | encoders(device)
        for name, op in mine.items():
            twin = twins.get(name.removesuffix(", compiled"))
            turns = ENCODER_TURNS if "encoder" in name else TURNS
            ours = read_back(op, lambda last: last.numpy(), turns)
            theirs = read_back(twin, lambda last: last.detach().cpu(), turns) if twin else None
            out.append(Case(f"{device!r} {name}, x{turns}", ours, theirs, times=_times(name)))
    return out


def read_back(op: Op, read: Callable[[Any], object], turns: int = TURNS) -> Run:
    """Return what calls an op several times, then reads from the last result."""

    def run() -> object:
        for _ in range(turns - 1):
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


# Layers, width, heads, hidden width; batch and length of what they are trained to give back.
_ENCODERS = {
    "encoder d256 L4 b8 s128, Adam": ((4, 256, 8, 2048), (8, 128), ""),
    "encoder d1024 L4 b8 s512, Adam": ((4, 1024, 16, 4096), (8, 512), ""),
    "encoder d1024 L4 b8 s512, Adam, Mixed float16": ((4, 1024, 16, 4096), (8, 512), "float16"),
}
_SMALL_ENCODERS = {"encoder d32 L1 b2 s8, Adam": ((1, 32, 2, 64), (2, 8), "")}


def encoders(device: px.Wgpu) -> dict[str, Op]:
    """Return steps of encoders."""
    found: dict[str, Op] = {}
    for name, (sizes, shape, narrow) in (
        _SMALL_ENCODERS if device.is_software else _ENCODERS
    ).items():
        trained = px.Autodiff(px.Mixed(device, narrow) if narrow else device)
        x = px.asarray(_drawn(*shape, sizes[1]), device=trained)
        found[name] = _encoder_step(networks.encoder(*sizes, trained), x)
    return found


def _drawn(*shape: int) -> np.ndarray:
    return np.random.default_rng(2).standard_normal(shape, np.float32)


def _encoder_step(model: Any, x: Any) -> Op:
    held, rule = [model], optim.AdamConfig().init()

    def step() -> Any:
        loss = (held[0](x) - x).square().mean()
        held[0] = rule.step(1e-4, held[0], loss.backward())
        return loss

    return step


def encoders_in_torch() -> dict[str, Op]:
    """Return the same steps in PyTorch, the narrow ones under autocast."""
    import torch  # noqa: PLC0415 # pyright: ignore[reportMissingImports] - for comparisons

    def made(sizes: tuple[int, int, int, int], shape: tuple[int, int], narrow: str) -> Op:
        count, width, heads, hidden = sizes
        layer = torch.nn.TransformerEncoderLayer(
            width, heads, hidden, dropout=0.0, batch_first=True
        )
        model = torch.nn.TransformerEncoder(layer, count).cuda()
        x = torch.as_tensor(_drawn(*shape, width), device="cuda")
        rule = torch.optim.Adam(model.parameters(), lr=1e-4)

        def step() -> Any:
            rule.zero_grad()
            with torch.autocast("cuda", dtype=torch.float16, enabled=bool(narrow)):
                loss = (model(x) - x).square().mean()
            loss.backward()
            rule.step()
            return loss

        return step

    return {name: made(*given) for name, given in _ENCODERS.items()}


def _model(name: str, device: Any) -> Any:
    if name.startswith("digits"):
        return DigitsConfig().init(device)
    return networks.mlp(*_sizes(name), device)


def _sizes(name: str) -> tuple[int, int, int]:
    return train.TINY if "64-32-10" in name else train.MLP


def torch_with_cuda() -> Any:
    """Return PyTorch, which then multiplies float32 as such; None where it has no CUDA."""
    import torch  # noqa: PLC0415 # pyright: ignore[reportMissingImports] - for comparisons

    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    return torch if torch.cuda.is_available() else None


def _cuda(given: dict[str, tuple[np.ndarray, np.ndarray]]) -> dict[str, Op]:
    """The same steps in PyTorch on the first CUDA device; empty without one."""
    torch = torch_with_cuda()
    if torch is None:
        return {}

    def step(name: str, x: np.ndarray, labels: np.ndarray) -> Op:
        make = train.torch_demo if name.startswith("digits") else partial(_mlp, *_sizes(name))
        model = make().cuda()
        rule = torch.optim.AdamW(model.parameters(), lr=1e-3)
        return train.torch_classify(model, x, labels, rule)

    return {name: step(name, *arrays) for name, arrays in given.items()}


def _mlp(d_input: int, d_hidden: int, d_output: int) -> Any:
    from torch.nn import Linear, ReLU, Sequential  # noqa: PLC0415 # pyright: ignore[reportMissingImports] - for comparisons

    return Sequential(Linear(d_input, d_hidden), ReLU(), Linear(d_hidden, d_output))
