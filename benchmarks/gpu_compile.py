"""Compiled functions on each GPU adapter beside their ops; and PyTorch's on CUDA."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import phlox as px
from benchmarks import compile as compiled
from benchmarks import compile_torch
from benchmarks.case import Case, Run, warmed

TURNS = 16
"""Calls between two waits, as training has many: one call alone would measure the wait."""

_NAMES = (
    "(x*2+1).relu().exp(), 4,194,304",
    "eight light ops of three, 4,194,304",
    "softmax as users write it, 4096 x 1024",
    "layer norm as users write it, 4096 x 1024",
    "sum_j exp(-(x_i - y_j)^2), 8192 x 8192",
)
_NOISE = "(x + noise).relu(), 4,194,304"
_SIX = "scale, shift, gelu, scale, mask: six ops, 67,108,864"
_LARGE = (_NAMES[-1], _SIX)
Given = dict[str, tuple[Callable[..., Any], Sequence[np.ndarray]]]


def cases(*, with_torch: bool) -> list[Case]:
    """Return the benchmarks of the group, for every adapter found."""
    out: list[Case] = []
    for device in px.Wgpu.found():
        theirs = _cuda() if with_torch and not device.is_software else {}
        mine = _chosen(compiled.words()) | _added(
            lambda x: (x + px.random.normal(x.shape, device=x.device)).relu(),
            lambda x: px.where(x < 0, -1.0, (x * 0.125 + 0.5).gelu() * 2.0),
        )
        for name, (function, arrays) in mine.items():
            if device.is_software and name in _LARGE:  # its ops take larger arrays than it binds
                continue
            given = [px.asarray(array, device=device) for array in arrays]
            fast = _repeated(px.compile(function), given, device.sync)
            eager, others = theirs.get(name, (None, {}))
            others = {"op by op": _repeated(function, given, device.sync)} | others
            out.append(Case(f"{device!r} {name}, x{TURNS}", fast, eager, others=others))
    return out


def _repeated(function: Callable[..., Any], given: Sequence[Any], wait: Callable[[], Any]) -> Run:
    def run() -> None:
        for _ in range(TURNS):
            function(*given)
        wait()

    return warmed(run)


def _added(noise: Callable[..., Any], six: Callable[..., Any]) -> Given:
    """What the CPU's group lacks: random numbers, and a chain that no cache holds."""
    return {
        _NOISE: (noise, [np.ones(1 << 22, np.float32)]),
        _SIX: (six, [np.linspace(-4, 4, 1 << 26, dtype=np.float32)]),
    }


def _chosen(words: Any) -> Given:
    given = compiled.functions_of(words)
    return {name: given[name] for name in _NAMES}


def _cuda() -> dict[str, tuple[Run, dict[str, Run]]]:
    """The same on the first CUDA device, eagerly and through ``torch.compile``; else nothing."""
    import torch  # noqa: PLC0415 # pyright: ignore[reportMissingImports] - for comparisons

    if not torch.cuda.is_available():
        return {}
    found: dict[str, tuple[Run, dict[str, Run]]] = {}
    mine: Given = _chosen(compile_torch.words()) | _added(
        lambda x: torch.relu(x + torch.randn_like(x)),
        lambda x: torch.where(x < 0, -1.0, torch.nn.functional.gelu(x * 0.125 + 0.5) * 2.0),
    )
    for name, (function, arrays) in mine.items():
        given = [torch.from_numpy(array).cuda() for array in arrays]
        torch.compiler.reset()
        fast = torch.compile(function, dynamic=False)
        wait = torch.cuda.synchronize
        found[name] = (
            _repeated(function, given, wait),
            {"torch.compile": _repeated(fast, given, wait)},
        )
    return found
