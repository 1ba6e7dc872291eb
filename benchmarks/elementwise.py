"""Elementwise ops on float32 elements, with fresh outputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import phlox as px
from benchmarks.case import Case

MANY = 1 << 22
ROWS = (4096, 1024)

# name, elements, passes over memory, wanted times PyTorch, phlox, PyTorch
OPS: tuple[tuple[str, int, int, float, Callable[[Any], Any], str], ...] = (
    ("add 1M", 1 << 20, 3, 1.0, lambda x: x + x, "add"),
    ("add 16M", 1 << 24, 3, 2.0, lambda x: x + x, "add"),
    ("multiply 1M", 1 << 20, 3, 1.0, lambda x: x * x, "multiply"),
    ("multiply 16M", 1 << 24, 3, 2.0, lambda x: x * x, "multiply"),
    ("multiply by a number 4M", MANY, 2, 0.0, lambda x: x * 2.0, "scale"),
    ("exp 4M", MANY, 2, 1.2, lambda x: x.exp(), "exp"),
    ("tanh 4M", MANY, 2, 1.2, lambda x: x.tanh(), "tanh"),
    ("gelu 4M", MANY, 2, 1.2, lambda x: x.gelu(), "gelu"),
    ("erf 4M", MANY, 2, 1.2, lambda x: x.erf(), "erf"),
    ("cast to bfloat16 4M", MANY, 2, 0.0, lambda x: x.astype(px.bfloat16), "cast"),
)


def cases(*, with_torch: bool) -> list[Case]:
    """Return the benchmarks of the group."""
    rng = np.random.default_rng(0)
    line = rng.standard_normal(1 << 24, np.float32)
    theirs = _torch() if with_torch else {}
    out = []
    for name, count, passes, times, run, key in OPS:
        x = px.asarray(line[:count], device="cpu")
        twin = None
        if with_torch:
            y = _tensor(line[:count])
            twin = _bound(theirs[key], y)
        size = 4.0 * count * passes
        out.append(Case(name, _bound(run, x), twin, bytes=size, times=times))
    return out + _mixed(rng.standard_normal(ROWS, np.float32), with_torch)


def _bound(run: Callable[[Any], Any], x: Any) -> Callable[[], Any]:
    return lambda: run(x)


def _mixed(rows: np.ndarray, with_torch: bool) -> list[Case]:
    """Operands that do not lie alike."""
    x, square = px.asarray(rows, device="cpu"), px.asarray(rows.reshape(2048, 2048), device="cpu")
    twins: list[Any] = [None] * 3
    if with_torch:
        y, other = _tensor(rows), _tensor(rows.reshape(2048, 2048))
        twins = [lambda: y + y[0], lambda: y + y[:, :1], lambda: other + other.T]
    size = 8.0 * rows.size
    return [
        Case("add a row to 4096x1024", lambda: x + x[0], twins[0], bytes=size),
        Case("add a column to 4096x1024", lambda: x + x[:, :1], twins[1], bytes=size),
        Case("add the transposed 2048x2048", lambda: square + square.T, twins[2], bytes=1.5 * size),
    ]


def _tensor(array: np.ndarray) -> Any:
    import torch  # noqa: PLC0415 # pyright: ignore[reportMissingImports] - for comparisons

    return torch.from_numpy(array)


def _torch() -> dict[str, Callable[[Any], Any]]:
    import torch  # noqa: PLC0415 # pyright: ignore[reportMissingImports] - for comparisons

    return {
        "add": lambda x: x + x,
        "cast": lambda x: x.to(torch.bfloat16),
        "erf": lambda x: x.erf(),
        "exp": lambda x: x.exp(),
        "gelu": torch.nn.functional.gelu,
        "multiply": lambda x: x * x,
        "scale": lambda x: x * 2.0,
        "tanh": lambda x: x.tanh(),
    }
