"""Generated shaders on each GPU adapter, many ops to a read; PyTorch stays on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import phlox as px
from benchmarks.case import Case, Run

_TURNS = 16
"""Ops between two reads: a read costs tens of microseconds, and training seldom reads."""


def cases(*, with_torch: bool) -> list[Case]:
    """Return the benchmarks of the group, for every adapter found."""
    del with_torch
    out: list[Case] = []
    for device in px.Wgpu.found():
        out.extend(_on(device))
    return out


def _repeated(op: Callable[[], px.Tensor[Any]]) -> Run:
    """Run the op several times, then read one element of the last result."""

    def run() -> object:
        for _ in range(_TURNS):
            last = op()
        return last.flatten()[:1].numpy()

    return run


def _on(device: px.Wgpu) -> list[Case]:
    many = 1 << (20 if device.is_software else 26)
    rows = (1024, 1024) if device.is_software else (65536, 1024)
    sides = (64, 256) if device.is_software else (256, 1024, 4096)
    rng = np.random.default_rng(0)
    tiny = px.ones(10, device=device)
    x = px.asarray(rng.standard_normal(many, np.float32), device=device)
    r = px.asarray(rng.standard_normal(rows, np.float32), device=device)
    size, area = 4.0 * many * _TURNS, 4.0 * rows[0] * rows[1] * _TURNS
    name = f"{device!r}"
    out = [
        Case(f"{name} add of 10, x{_TURNS}", _repeated(lambda: tiny + tiny)),
        Case(f"{name} add {many >> 20}M", _repeated(lambda: x + x), bytes=3 * size),
        Case(f"{name} gelu {many >> 20}M", _repeated(lambda: x.gelu()), bytes=2 * size),
        Case(f"{name} sum {many >> 20}M", _repeated(lambda: x.sum()), bytes=size),
        Case(f"{name} softmax {rows}", _repeated(lambda: px.softmax(r)), bytes=2 * area),
        Case(f"{name} layer norm {rows}", _repeated(lambda: px.layer_norm(r)), bytes=2 * area),
        Case(f"{name} sum over rows {rows}", _repeated(lambda: r.sum(axis=0)), bytes=area),
    ]
    for n in sides:
        a = px.asarray(rng.standard_normal((n, n), np.float32), device=device)
        out.append(Case(f"{name} matmul {n}", _repeated(_product(a)), flops=2.0 * n**3 * _TURNS))
    batch = 1 if device.is_software else 32
    image = px.asarray(rng.standard_normal((batch, 64, 56, 56), np.float32), device=device)
    weight = px.asarray(rng.standard_normal((64, 64, 3, 3), np.float32), device=device)
    flops = 2.0 * batch * 64 * 64 * 9 * 56 * 56 * _TURNS
    conv = _repeated(lambda: px.conv2d(image, weight, padding=1))
    out.append(Case(f"{name} conv 64->64 3x3, b{batch} 56x56", conv, flops=flops))
    return out


def _product(a: px.Tensor) -> Callable[[], px.Tensor]:
    return lambda: a @ a
