"""Special functions, functions of float64, powers by a number, of 256 Ki elements."""

from __future__ import annotations

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
    twins: dict[str, Run] = _torch(given) if with_torch else {}
    return [Case(name, run, twins.get(name), times=1.0) for name, run in _phlox(given).items()]


def _phlox(given: dict[str, Any]) -> dict[str, Run]:
    x, above, part, wide, wide_above = (px.asarray(a, device="cpu") for a in given.values())
    return {
        "digamma": lambda: px.digamma(x),
        "erfc": lambda: px.erfc(x),
        "erfinv": lambda: px.erfinv(part),
        "isclose": lambda: px.isclose(x, above),
        "lerp": lambda: px.lerp(x, above, 0.3),
        "lgamma": lambda: px.lgamma(x),
        "nan_to_num": lambda: px.nan_to_num(x),
        "x ** -1": lambda: above**-1,
        "x ** 0.5": lambda: above**0.5,
        "x ** 2.5": lambda: above**2.5,
        "x ** 3": lambda: x**3,
        "x ** y": lambda: px.pow(above, x),
        "cos, float64": lambda: px.cos(wide),
        "erf, float64": lambda: px.erf(wide),
        "exp, float64": lambda: px.exp(wide),
        "log, float64": lambda: px.log(wide_above),
        "sin, float64": lambda: px.sin(wide),
        "tanh, float64": lambda: px.tanh(wide),
        "x ** 2.5, float64": lambda: wide_above**2.5,
    }


def _torch(given: dict[str, Any]) -> dict[str, Run]:
    import torch  # noqa: PLC0415 # pyright: ignore[reportMissingImports] - for comparisons

    x, above, part, wide, wide_above = (torch.from_numpy(a) for a in given.values())
    return {
        "digamma": lambda: torch.digamma(x),
        "erfc": lambda: torch.erfc(x),
        "erfinv": lambda: torch.erfinv(part),
        "isclose": lambda: torch.isclose(x, above),
        "lerp": lambda: torch.lerp(x, above, 0.3),
        "lgamma": lambda: torch.lgamma(x),
        "nan_to_num": lambda: torch.nan_to_num(x),
        "x ** -1": lambda: above**-1,
        "x ** 0.5": lambda: above**0.5,
        "x ** 2.5": lambda: above**2.5,
        "x ** 3": lambda: x**3,
        "x ** y": lambda: torch.pow(above, x),
        "cos, float64": lambda: torch.cos(wide),
        "erf, float64": lambda: torch.erf(wide),
        "exp, float64": lambda: torch.exp(wide),
        "log, float64": lambda: torch.log(wide_above),
        "sin, float64": lambda: torch.sin(wide),
        "tanh, float64": lambda: torch.tanh(wide),
        "x ** 2.5, float64": lambda: wide_above**2.5,
    }
