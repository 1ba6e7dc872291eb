"""Generated shaders on each GPU adapter, many ops to a read; beside PyTorch where it has CUDA.

Wall time as a program sees it. ``python -m benchmarks.gpu_kernels`` times single kernels by the
clock of the GPU.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import phlox as px
from benchmarks.case import Case
from benchmarks.gpu import TURNS, Op, read_back


def cases(*, with_torch: bool) -> list[Case]:
    """Return the benchmarks of the group, for every adapter found."""
    out: list[Case] = []
    for device in px.Wgpu.found():
        twins = _cuda(device.is_software) if with_torch and not device.is_software else {}
        out.extend(_on(device, twins))
    return out


def _sizes(software: bool) -> tuple[int, tuple[int, int], tuple[int, ...], int]:
    """Elements, rows, sides of matrices, batch of images."""
    if software:
        return 1 << 20, (1024, 1024), (64, 256), 1
    return 1 << 26, (65536, 1024), (256, 1024, 4096), 32


def _on(device: px.Wgpu, twins: dict[str, Op]) -> list[Case]:
    many, rows, sides, batch = _sizes(device.is_software)
    rng = np.random.default_rng(0)
    tiny = px.ones(10, device=device)
    x, y = (px.asarray(rng.standard_normal(many, np.float32), device=device) for _ in range(2))
    r = px.asarray(rng.standard_normal(rows, np.float32), device=device)
    image = px.asarray(rng.standard_normal((batch, 64, 56, 56), np.float32), device=device)
    weight = px.asarray(rng.standard_normal((64, 64, 3, 3), np.float32), device=device)
    size, area = 4.0 * many, 4.0 * rows[0] * rows[1]
    mine: dict[str, tuple[Op, float, float]] = {
        "add of 10": (lambda: tiny + tiny, 0, 0),
        "add": (lambda: x + y, 0, 3 * size),
        "gelu": (lambda: x.gelu(), 0, 2 * size),
        "sum": (lambda: x.sum(), 0, size),
        "softmax": (lambda: px.softmax(r), 0, 2 * area),
        "layer norm": (lambda: px.layer_norm(r), 0, 2 * area),
        "sum over rows": (lambda: r.sum(axis=0), 0, area),
        "transpose copy": (lambda: r.T.contiguous(), 0, 2 * area),
        "conv 64->64 3x3, 56x56": (
            lambda: px.conv2d(image, weight, padding=1),
            2.0 * batch * 64 * 64 * 9 * 56 * 56,
            0,
        ),
    }
    for n in sides:
        a = px.asarray(rng.standard_normal((n, n), np.float32), device=device)
        mine[f"matmul {n}"] = (_product(a), 2.0 * n**3, 0)
    return [
        Case(
            f"{device!r} {name}, x{TURNS}",
            read_back(op, lambda last: last.flatten()[:1].numpy()),
            read_back(twins[name], lambda last: last.detach().flatten()[:1].cpu())
            if twins
            else None,
            flops * TURNS,
            size * TURNS,
        )
        for name, (op, flops, size) in mine.items()
    ]


def _product(a: Any) -> Op:
    return lambda: a @ a


def _cuda(software: bool) -> dict[str, Op]:
    """The same ops in PyTorch on the first CUDA device; empty without one."""
    import torch  # noqa: PLC0415 # pyright: ignore[reportMissingImports] - for comparisons

    if not torch.cuda.is_available():
        return {}
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    functional = torch.nn.functional
    many, rows, sides, batch = _sizes(software)
    tiny = torch.ones(10, device="cuda")
    x, y = (torch.randn(many, device="cuda") for _ in range(2))
    r = torch.randn(rows, device="cuda")
    image = torch.randn(batch, 64, 56, 56, device="cuda")
    weight = torch.randn(64, 64, 3, 3, device="cuda")
    twins: dict[str, Op] = {
        "add of 10": lambda: tiny + tiny,
        "add": lambda: x + y,
        "gelu": lambda: functional.gelu(x),
        "sum": lambda: x.sum(),
        "softmax": lambda: r.softmax(1),
        "layer norm": lambda: functional.layer_norm(r, (rows[1],)),
        "sum over rows": lambda: r.sum(0),
        "transpose copy": lambda: r.T.contiguous(),
        "conv 64->64 3x3, 56x56": lambda: functional.conv2d(image, weight, padding=1),
    }
    for n in sides:
        twins[f"matmul {n}"] = _product(torch.randn(n, n, device="cuda"))
    return twins
