"""Products of matrices: square, thin, batched, narrow."""

from __future__ import annotations

from math import prod

import numpy as np

import phlox as px
from benchmarks.case import Case, Run

_SQUARE = {"share": 0.9, "times": 1.05, "times_full_width": 1.7}
# left, right, targets
SHAPES: tuple[tuple[tuple[int, ...], tuple[int, ...], dict[str, float]], ...] = (
    ((16, 16), (16, 16), {"times": 4.0}),
    ((64, 64), (64, 64), {"times": 1.3}),
    ((256, 256), (256, 256), _SQUARE),
    ((512, 512), (512, 512), _SQUARE),
    ((1024, 1024), (1024, 1024), _SQUARE),
    ((2048, 2048), (2048, 2048), _SQUARE),
    ((1, 1024), (1024, 1024), {"times": 1.2}),
    ((8, 1024), (1024, 1024), {"times": 2.0}),
    ((64, 784), (784, 256), {"times": 1.1}),
    ((64, 1024), (1024, 1024), {}),
    ((1024, 1024), (1024, 8), {}),
    ((96, 128, 32), (96, 32, 128), {"share": 0.6, "times": 1.5}),
)
NARROW: tuple[tuple[tuple[int, ...], tuple[int, ...], dict[str, float]], ...] = (
    ((1024, 1024), (1024, 1024), {"share": 0.8, "times": 1.0}),
    ((8, 1024), (1024, 1024), {}),
    ((64, 1024), (1024, 1024), {}),
    ((96, 128, 32), (96, 32, 128), {}),
)


def cases(*, with_torch: bool) -> list[Case]:
    """Return the benchmarks of the group."""
    rng = np.random.default_rng(0)
    out = []
    for left, right, wanted in SHAPES:
        a = rng.standard_normal(left, np.float32)
        b = rng.standard_normal(right, np.float32)
        flops = 2.0 * prod(left) * right[-1]
        name = _shown(left, right)
        twin = _torch(a, b) if with_torch else None
        out.append(Case(name, _phlox(a, b), twin, flops, **wanted))  # type: ignore[arg-type]
    for left, right, wanted in NARROW:
        a, b = rng.standard_normal(left, np.float32), rng.standard_normal(right, np.float32)
        out.append(
            Case(
                f"{_shown(left, right)}, bfloat16",
                _phlox(a, b, "bfloat16"),
                _torch(a, b, "bfloat16") if with_torch else None,
                2.0 * prod(left) * right[-1],
                peak="bfloat16",
                **wanted,  # type: ignore[arg-type]  # all are numbers
            )
        )
    return out


def _shown(left: tuple[int, ...], right: tuple[int, ...]) -> str:
    return f"{'x'.join(map(str, left))} @ {'x'.join(map(str, right))}"


def _phlox(a: np.ndarray, b: np.ndarray, dtype: str = "float32") -> Run:
    x, y = (px.asarray(m, device="cpu").astype(dtype) for m in (a, b))
    return lambda: x @ y


def _torch(a: np.ndarray, b: np.ndarray, dtype: str = "float32") -> Run:
    import torch  # noqa: PLC0415 # pyright: ignore[reportMissingImports] - for comparisons

    x, y = (torch.from_numpy(m).to(getattr(torch, dtype)) for m in (a, b))
    return lambda: x @ y
