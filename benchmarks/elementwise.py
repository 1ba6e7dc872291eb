"""Elementwise ops, reductions and rows on millions of float32 elements."""

from __future__ import annotations

from typing import Any

import numpy as np

import phlox as px
from benchmarks.case import Case, Run

MANY = 1 << 22
ROWS = (4096, 1024)


def cases(*, with_torch: bool) -> list[Case]:
    """Return the benchmarks of the group."""
    rng = np.random.default_rng(0)
    line = rng.standard_normal(MANY, np.float32)
    rows = rng.standard_normal(ROWS, np.float32)
    x, r = px.asarray(line, device="cpu"), px.asarray(rows, device="cpu")
    mine: dict[str, tuple[Run, int]] = {
        "add 4M": (lambda: x + x, 3),
        "multiply by a number 4M": (lambda: x * 2.0, 2),
        "exp 4M": (lambda: x.exp(), 2),
        "tanh 4M": (lambda: x.tanh(), 2),
        "gelu 4M": (lambda: x.gelu(), 2),
        "erf 4M": (lambda: x.erf(), 2),
        "sum 4M": (lambda: x.sum(), 1),
        "sum over rows 4096x1024": (lambda: r.sum(axis=0), 1),
        "max over columns 4096x1024": (lambda: r.max(axis=1), 1),
        "softmax 4096x1024": (lambda: px.softmax(r), 2),
        "layer norm 4096x1024": (lambda: px.layer_norm(r), 2),
        "transpose copy 4096x1024": (lambda: r.T + 0.0, 2),
        "sort rows 4096x1024": (lambda: px.sort(r), 2),
    }
    twins: dict[str, Any] = _torch(line, rows) if with_torch else {}
    return [
        Case(name, run, twins.get(name), bytes=4.0 * MANY * passes)
        for name, (run, passes) in mine.items()
    ]


def _torch(line: np.ndarray, rows: np.ndarray) -> dict[str, Run]:
    import torch  # noqa: PLC0415 # pyright: ignore[reportMissingImports] - for comparisons

    x, r = torch.from_numpy(line), torch.from_numpy(rows)
    return {
        "add 4M": lambda: x + x,
        "multiply by a number 4M": lambda: x * 2.0,
        "exp 4M": lambda: x.exp(),
        "tanh 4M": lambda: x.tanh(),
        "gelu 4M": lambda: torch.nn.functional.gelu(x),
        "erf 4M": lambda: x.erf(),
        "sum 4M": lambda: x.sum(),
        "sum over rows 4096x1024": lambda: r.sum(0),
        "max over columns 4096x1024": lambda: r.amax(1),
        "softmax 4096x1024": lambda: r.softmax(1),
        "layer norm 4096x1024": lambda: torch.nn.functional.layer_norm(r, (ROWS[1],)),
        "transpose copy 4096x1024": lambda: r.T.contiguous(),
        "sort rows 4096x1024": lambda: r.sort(1),
    }
