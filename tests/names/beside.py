"""Runs a line of code on our tensors beside one on arrays of NumPy or tensors of PyTorch."""

from __future__ import annotations

import itertools
import math
import re
import warnings
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pytest

import phlox as px
from phlox import nn, optim

scipy: Any = pytest.importorskip("scipy", reason="SciPy comes with ./x setup")
stats: Any = pytest.importorskip("scipy.stats")
torch: Any = pytest.importorskip("torch", reason="PyTorch comes with ./x test --long")
F: Final = torch.nn.functional

Array = np.ndarray[Any, Any]
MODULES: Final[dict[str, Any]] = {
    "F": F, "itertools": itertools, "math": math, "nn": nn, "np": np, "numpy": np, "optim": optim,
    "px": px, "scipy": scipy, "torch": torch,
}  # fmt: skip
# Where a function of another library is looked for.
ROOMS: Final = {
    "numpy": ("np", "np.linalg", "np.fft"),
    "torch": ("torch", "F", "torch.special", "torch.linalg", "torch.fft"),
}


def function(name: str, library: str) -> str | None:
    """The function of another library by its name, with the module that has it."""
    for room in ROOMS[library]:
        found: Any = eval(room, MODULES)
        for part in name.split("."):
            found = getattr(found, part, None)
        if callable(found) and not isinstance(found, type):
            return f"{room}.{name}"
    return None


def theirs(code: str, given: Mapping[str, Any], library: str) -> Any:
    """What a line of NumPy, SciPy or PyTorch gives; an exception where it is refused there."""
    of_torch = library == "torch"
    names = {n: to_torch(v) if of_torch else v for n, v in given.items()}
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return eval(code, MODULES | names)
    except (ArithmeticError, IndexError, RuntimeError, TypeError, ValueError) as error:
        return error


def ours(code: str, given: Mapping[str, Any]) -> Any:
    """What a line gives on our tensors: that of a hint, without its remark and what it binds."""
    line = re.sub(r"^\w+ = ", "", code.partition("  # ")[0].partition(", or ")[0])
    try:
        return eval(line, MODULES | {n: to_ours(v) for n, v in given.items()})
    except px.PhloxError as error:
        return error


def to_torch(value: Any) -> Any:
    return torch.from_numpy(value.copy()) if isinstance(value, np.ndarray) else value


def to_ours(value: Any) -> Any:
    if isinstance(value, np.ndarray) and value.dtype.kind == "c":
        return px.fft.Spectrum(to_ours(value.real.copy()), to_ours(value.imag.copy()))
    return px.asarray(value, device=px.Cpu()) if isinstance(value, np.ndarray) else value


def difference(mine: Any, other: Any, rtol: float = 2e-5) -> str:
    """Say in what two results differ; an empty text where they are the same."""
    for result, where in ((mine, "here"), (other, "there")):
        if isinstance(result, Exception):
            return f"refused {where}: {result!r}"
    left, right = _parts(mine), _parts(other)
    if len(left) != len(right):
        return f"{len(left)} results here, {len(right)} there"
    for a, b in zip(left, right, strict=True):
        if (a.shape, _kind(a)) != (b.shape, _kind(b)):
            return f"{a.dtype}{a.shape} here, {b.dtype}{b.shape} there"
        number = a.dtype.kind not in "SU"
        close = np.isclose(a, b, rtol, 1e-6, equal_nan=True) if number else a == b
        if not np.all(close):
            return f"{a.tolist()} here, {b.tolist()} there"
    return ""


def _parts(value: Any) -> list[Array]:
    if isinstance(value, px.fft.Spectrum):
        return [np.asarray(value.real) + 1j * np.asarray(value.imag)]
    if isinstance(value, tuple | list):
        return [array for each in value for array in _parts(each)]
    if isinstance(value, torch.Tensor):
        value = value.detach().resolve_conj().resolve_neg()
    return [np.asarray(value)]


def _kind(array: Array) -> str:
    return str(array.dtype.kind).replace("u", "i")
