"""Independent work from one Python thread and from two: sixteen products of 512x512."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

import phlox as px
from benchmarks.case import Case, Run

TURNS = 16


def cases(*, with_torch: bool) -> list[Case]:
    """Return the benchmarks of the group."""
    a = np.random.default_rng(0).standard_normal((512, 512), np.float32)
    mine = _runs(px.asarray(a, device="cpu"))
    twins: list[Any] = [None] * 2
    if with_torch:
        import torch  # noqa: PLC0415 # pyright: ignore[reportMissingImports] - for comparisons

        twins = _runs(torch.from_numpy(a))
    names = ("all from one thread", "half from each of two threads")
    flops = TURNS * 2.0 * 512**3
    return [Case(*row, flops) for row in zip(names, mine, twins, strict=True)]


def _runs(x: Any) -> list[Run]:
    pool = ThreadPoolExecutor(2)

    def work(turns: int) -> None:
        for _ in range(turns):
            _ = x @ x

    return [lambda: work(TURNS), lambda: list(pool.map(work, [TURNS // 2] * 2))]
