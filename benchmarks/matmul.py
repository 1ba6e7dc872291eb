"""Products of float32 matrices: square, thin, batched."""

from __future__ import annotations

from math import prod

import numpy as np

import phlox as px
from benchmarks.case import Case, Run

SHAPES = (
    ((16, 16), (16, 16)),
    ((64, 64), (64, 64)),
    ((256, 256), (256, 256)),
    ((512, 512), (512, 512)),
    ((1024, 1024), (1024, 1024)),
    ((2048, 2048), (2048, 2048)),
    ((1, 1024), (1024, 1024)),
    ((8, 1024), (1024, 1024)),
    ((64, 784), (784, 256)),
    ((96, 128, 32), (96, 32, 128)),
)


def cases(*, with_torch: bool) -> list[Case]:
    """Return the benchmarks of the group."""
    rng = np.random.default_rng(0)
    out = []
    for left, right in SHAPES:
        a = rng.standard_normal(left, np.float32)
        b = rng.standard_normal(right, np.float32)
        x, y = px.asarray(a, device="cpu"), px.asarray(b, device="cpu")
        flops = 2.0 * prod(left) * right[-1]
        name = f"{'x'.join(map(str, left))} @ {'x'.join(map(str, right))}"
        out.append(Case(name, _phlox(x, y), _torch(a, b) if with_torch else None, flops))
    return out


def _phlox(x: px.Tensor, y: px.Tensor) -> Run:
    return lambda: x @ y


def _torch(a: np.ndarray, b: np.ndarray) -> Run:
    import torch  # noqa: PLC0415 # pyright: ignore[reportMissingImports] - for comparisons

    x, y = torch.from_numpy(a), torch.from_numpy(b)
    return lambda: x @ y
