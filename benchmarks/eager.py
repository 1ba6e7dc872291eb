"""The cost of one small op, called from Python."""

from __future__ import annotations

from typing import Any

import phlox as px
from benchmarks.case import Case, Run

_VIEWS = 0.67  # views may take half again as long as there, not more


def cases(*, with_torch: bool) -> list[Case]:
    """Return the benchmarks of the group."""
    cpu = px.Cpu()
    train = px.Autodiff(cpu)
    a, b = px.ones(10, device=cpu), px.ones(10, device=cpu)
    w = px.ones(10, device=train).require_grad()
    c = px.ones(10, device=train)
    layer = px.nn.Linear(16, 1, device=train)
    x = px.ones((1, 16), device=train)
    rows = px.ones((64, 32), device=cpu)
    if not with_torch:
        twins: list[Any] = [None] * 8
    else:
        twins = _torch()
    return [
        Case("add of 10", lambda: a + b, twins[0], times=2.5),
        Case("add of 10, with gradient", lambda: w + c, twins[1], times=2.0),
        Case("multiply of 10 by a number", lambda: a * 2.0, twins[2]),
        Case("relu of 10", lambda: a.relu(), twins[3]),
        Case("sum of 10", lambda: a.sum(), twins[4]),
        Case("linear 1x16, sum, backward", lambda: layer(x).sum().backward(), twins[5]),
        Case("chunk 64x32 into 8", lambda: px.chunk(rows, 8), twins[6], times=_VIEWS),
        Case("unstack 64x32", lambda: px.unstack(rows), twins[7], times=_VIEWS),
    ]


def _torch() -> list[Run]:
    import torch  # noqa: PLC0415 # pyright: ignore[reportMissingImports] - for comparisons

    a, b = torch.ones(10), torch.ones(10)
    w = torch.ones(10, requires_grad=True)
    layer = torch.nn.Linear(16, 1)
    x, rows = torch.ones(1, 16), torch.ones(64, 32)
    return [
        lambda: a + b,
        lambda: w + b,
        lambda: a * 2.0,
        lambda: a.relu(),
        lambda: a.sum(),
        lambda: layer(x).sum().backward(),
        lambda: rows.chunk(8),
        lambda: rows.unbind(),
    ]
