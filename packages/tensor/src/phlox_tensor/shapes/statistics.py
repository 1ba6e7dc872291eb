"""Shape rules of statistics and distances."""

from __future__ import annotations

from math import isfinite
from typing import Any

import numpy as np

from .._errors.classes import ArgumentError, ShapeError
from .._op.declaration import Attributes, Op, Shape, Specs
from ._broadcast import broadcast_shapes
from ._equal import alike
from .reduction import ordering_reduction, reduction

_MOST_COUNTS = 2**32  # 32 GiB of them; beyond, numbers are names and not places
INTERPOLATIONS = ("higher", "linear", "lower", "midpoint", "nearest")


def bincount(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """A size that only the values tell."""
    if len(specs[0].shape) != 1 or attributes[0] < 0:
        got = f"x {specs[0].shape}, minlength {attributes[0]}"
        raise ShapeError(op.name, "not 1-d", got=got, expected="(n,), minlength >= 0")
    check_counts(attributes[0], specs[0].shape[0], f"minlength={attributes[0]}")
    return [(-1,)]


def check_counts(size: int, count: int, got: str) -> None:
    """Refuse many more counts than there are numbers.

    Raises:
        ArgumentError: for as many as may leave no memory to anybody.
    """
    if size > max(_MOST_COUNTS, count):
        raise ArgumentError(
            "bincount",
            "a count for each number up to the largest",
            got=got,
            expected=f"below {_MOST_COUNTS}",
            hint="px.unique_counts(x)",
        )


def cdist(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """(…, n, m)."""
    a, b = specs[0].shape, specs[1].shape
    if min(len(a), len(b)) < 2 or a[-1] != b[-1]:
        expected = "(…, n, d) and (…, m, d)"
        raise ShapeError(op.name, "no rows to compare", got=f"{a} and {b}", expected=expected)
    if not attributes[0] >= 0:
        raise ArgumentError(op.name, "not a norm", got=attributes[0], expected="p >= 0")
    return [(*broadcast_shapes((a[:-2], b[:-2]), op.name), a[-2], b[-2])]


def cov(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """(n, n) of n rows; one number for a vector."""
    del attributes
    shape = specs[0].shape
    if len(shape) not in (1, 2):
        raise ShapeError(op.name, "no rows", got=shape, expected="(variables, observations)")
    return [(shape[0], shape[0])] if len(shape) == 2 else [()]


def cosine_similarity(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """Without the axis."""
    (shape,) = alike(op, specs, attributes)
    return [(*shape[: attributes[0]], *shape[attributes[0] + 1 :])]


def histogram(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """Counts, and one edge more."""
    del specs
    bins, low, high = attributes
    if bins < 1 or (low is not None and high is not None and not low < high):
        got = f"bins {bins} from {low} to {high}"
        raise ArgumentError(op.name, "no intervals", got=got, expected="bins >= 1, min < max")
    return [(bins,), (bins + 1,)]


def twice(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """X's shape, for values and indices."""
    del op, attributes
    return [specs[0].shape] * 2


def ordering(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """As of ``max``."""
    return ordering_reduction(op, specs, attributes)


def mode(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """As of ``max``, for values and indices."""
    return ordering_reduction(op, specs, attributes) * 2


def quantile(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """As of ``max``."""
    q, axis, _, interpolation = attributes
    if not 0 <= q <= 1:
        raise ArgumentError(op.name, "not a part of the whole", got=q, expected="0 <= q <= 1")
    if interpolation not in INTERPOLATIONS:
        expected = ", ".join(INTERPOLATIONS)
        raise ArgumentError(op.name, "unknown interpolation", got=interpolation, expected=expected)
    shape = specs[0].shape
    if any(shape[i] == 0 for i in axis):
        raise ShapeError(op.name, "nothing to choose from", got=f"shape {shape}, axis {axis}")
    return reduction(op, specs, attributes)


def var_mean(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """As of ``var``, twice."""
    return reduction(op, specs, attributes) * 2


def check_range(low: float, high: float) -> None:
    """Refuse a range without a size.

    Raises:
        ArgumentError: when the first lies behind the last, or one is nan or infinite.
    """
    if not (isfinite(low) and isfinite(high)):
        raise ArgumentError(
            "histogram",
            "the range is not finite",
            got=f"{low} to {high}",
            expected="finite elements, or min and max",
            hint="px.histogram(x, min=0.0, max=1.0)",
        )
    if low > high:
        raise ArgumentError("histogram", "min > max", got=f"{low} > {high}", expected="min <= max")


def edges(low: float, high: float, bins: int) -> Any:
    """Ends of equal intervals, as NumPy's: a single value is in the middle of a unit."""
    check_range(low, high)
    if low == high:
        low, high = low - 0.5, high + 0.5
    return np.linspace(low, high, bins + 1)
