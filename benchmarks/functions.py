"""Special functions, functions of float64, powers by a number, of 256 Ki elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import phlox as px
from benchmarks.case import Case, Run

SIZE = 1 << 18


def cases(*, with_torch: bool) -> list[Case]:
    """Return the benchmarks of the group."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal(SIZE, np.float32)
    given: dict[str, Any] = {
        "x": x,
        "above": np.abs(x) + np.float32(0.1),
        "part": (x / 6).astype(np.float32),
        "wide": x.astype(np.float64),
        "wide above": np.abs(x).astype(np.float64) + 0.1,
    }
    runs = _runs(px, [px.asarray(array, device="cpu") for array in given.values()])
    twins: dict[str, Run] = _torch(given) if with_torch else {}
    return [Case(name, run, twins.get(name), times=1.0) for name, run in runs.items()]


def _runs(library: Any, given: Sequence[Any]) -> dict[str, Run]:
    """The functions, which have the same names in both libraries."""
    x, above, part, wide, wide_above = given
    return {
        "digamma": lambda: library.digamma(x),
        "erfc": lambda: library.erfc(x),
        "erfinv": lambda: library.erfinv(part),
        "isclose": lambda: library.isclose(x, above),
        "lerp": lambda: library.lerp(x, above, 0.3),
        "lgamma": lambda: library.lgamma(x),
        "nan_to_num": lambda: library.nan_to_num(x),
        "x ** -1": lambda: above**-1,
        "x ** 0.5": lambda: above**0.5,
        "x ** 2.5": lambda: above**2.5,
        "x ** 3": lambda: x**3,
        "x ** y": lambda: library.pow(above, x),
        "cos, float64": lambda: library.cos(wide),
        "erf, float64": lambda: library.erf(wide),
        "exp, float64": lambda: library.exp(wide),
        "log, float64": lambda: library.log(wide_above),
        "sin, float64": lambda: library.sin(wide),
        "tanh, float64": lambda: library.tanh(wide),
        "x ** 2.5, float64": lambda: wide_above**2.5,
    }


def _torch(given: dict[str, Any]) -> dict[str, Run]:
    import torch  # noqa: PLC0415 # pyright: ignore[reportMissingImports] - for comparisons

    return _runs(torch, [torch.from_numpy(array) for array in given.values()])
