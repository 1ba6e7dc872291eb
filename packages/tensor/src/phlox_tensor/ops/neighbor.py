"""Signs of floating-point numbers, and their neighbors."""

from __future__ import annotations

from math import inf

import numpy as np

from .._values.dtype import finfo
from .._values.kinds import Bool
from .._values.tensor import Tensor
from ._expansion import of_tensors
from ._families import elementwise

_FLOAT = "x1: Float, x2: Float -> Float"

copysign = elementwise(
    "copysign",
    _FLOAT,
    expand=of_tensors(lambda x1, x2: _is_below(x2).where(-x1.abs(), x1.abs())),
    numpy=lambda x1, x2: np.copysign(x1, np.where(np.isnan(x2), np.ones_like(x2), x2)),
    doc="``|x1|`` with the sign of ``x2``, elementwise; a nan counts as positive.",
)


@elementwise.formula(
    _FLOAT,
    numpy=lambda x1, x2: np.where(x1 == x2, x2, np.nextafter(x1, x2)),
    doc="The number of the type that follows ``x1`` on the way to ``x2``, elementwise; ``x2`` "
    "where the two are equal.",
)
@of_tensors
def nextafter(x1: Tensor, x2: Tensor) -> Tensor:
    """Rump, Zimmermann, Boldo and Melquiond, 2009: neighbors by rounded arithmetic alone."""
    limits = finfo(x1.dtype)
    unit, least = limits.eps / 2, limits.smallest_subnormal
    step = unit * (1 + 2 * unit)
    size = x1.abs()
    raised = size * (1 / unit)
    near = size < 0.5 / unit * least / unit
    out = near.where((raised + raised * step) * unit, size + size * step)
    back = near.where((raised - raised * step) * unit, size - size * step)
    tiny = size < least / unit
    out, back = tiny.where(size + least, out), tiny.where(size - least, back)
    back = (size == inf).where(limits.max, back)
    up = x2 > x1
    grows = (x1 == 0) | (up == (x1 > 0))
    moved = grows.where(out, back)
    below = (x1 < 0) | ((x1 == 0) & ~up)
    moved = below.where(-moved, moved)
    return (x1 == x2).where(x2, (x1.isnan() | x2.isnan()).where(x1 + x2, moved))


def _is_below(x: Tensor) -> Tensor[Bool]:
    # A comparison does not tell the sign of a zero, its reciprocal does.
    return (x < 0) | ((x == 0) & (x.reciprocal() < 0))


signbit = elementwise(
    "signbit",
    "x: Float -> Bool",
    expand=_is_below,
    numpy=lambda x: np.signbit(x) & ~np.isnan(x),
    signed_zeros=False,
    doc="Whether the sign is negative, elementwise; that of -0.0 is. The sign of a nan is not kept "
    "on every device, so False.",
)
