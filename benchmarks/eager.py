"""The cost of one small op, called from Python."""

from __future__ import annotations

from typing import Any

import phlox as px
from benchmarks.case import Case, Run

_VIEWS = 0.67  # views may take half again as long as there, not more
_KNOWN = 0.5  # mixed types and indices: at most twice as long


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
    small = px.arange(12.0, device=cpu).reshape(3, 4)
    wide, mask = small.astype("float64"), small > 4
    places = px.asarray([0, 2, 1], device=cpu)
    if not with_torch:
        twins: list[Any] = [None] * 15
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
        Case("add of float32 and float64, 3x4", lambda: small + wide, twins[8], times=_KNOWN),
        Case("x[i] of 3x4", lambda: small[places], twins[9], times=_KNOWN),
        Case("x[i, i] of 3x4", lambda: small[places, places], twins[10], times=_KNOWN),
        Case("x[mask] of 3x4", lambda: small[mask], twins[11], times=_KNOWN),
        Case("x[[0, 2]] of 3x4", lambda: small[[0, 2]], twins[12], times=_KNOWN),
        Case("x.T of 3x4", lambda: small.T, twins[13], times=1.0),
        Case("reshape of 3x4", lambda: small.reshape(4, 3), twins[14], times=1.0),
    ]


def _torch() -> list[Run]:
    import torch  # noqa: PLC0415 # pyright: ignore[reportMissingImports] - for comparisons

    a, b = torch.ones(10), torch.ones(10)
    w = torch.ones(10, requires_grad=True)
    layer = torch.nn.Linear(16, 1)
    x, rows = torch.ones(1, 16), torch.ones(64, 32)
    small = torch.arange(12, dtype=torch.float32).reshape(3, 4)
    wide, mask, places = small.double(), small > 4, torch.tensor([0, 2, 1])
    return [
        lambda: a + b,
        lambda: w + b,
        lambda: a * 2.0,
        lambda: a.relu(),
        lambda: a.sum(),
        lambda: layer(x).sum().backward(),
        lambda: rows.chunk(8),
        lambda: rows.unbind(),
        lambda: small + wide,
        lambda: small[places],
        lambda: small[places, places],
        lambda: small[mask],
        lambda: small[[0, 2]],
        lambda: small.T,
        lambda: small.reshape(4, 3),
    ]
