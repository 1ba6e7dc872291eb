"""Shape rules of Fourier transforms."""

from __future__ import annotations

from .._errors.classes import ShapeError
from .._op.declaration import Attributes, Op, Shape, Specs


def dft(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """The same, or n//2 + 1 along the axis, twice."""
    axis, _, half = attributes
    shape = specs[0].shape
    if specs[1] is not None and specs[1].shape != shape:
        raise ShapeError(op.name, "parts differ", got=specs[1].shape, expected=shape)
    if half:
        if specs[1] is not None:
            raise ShapeError(op.name, "half of the result tells it for real numbers alone")
        shape = (*shape[:axis], shape[axis] // 2 + 1, *shape[axis + 1 :])
    return [shape, shape]


def irdft(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """N along the axis."""
    axis, n = attributes
    re, im = specs
    assert re is not None
    assert im is not None
    if im.shape != re.shape:
        raise ShapeError(op.name, "parts differ", got=im.shape, expected=re.shape)
    if n < 1 or re.shape[axis] != n // 2 + 1:
        expected = f"{max(n, 1) // 2 + 1} along axis {axis}, and n of 1 or more"
        raise ShapeError(
            op.name, "not half of a transform", got=f"{re.shape}, n {n}", expected=expected
        )
    return [(*re.shape[:axis], n, *re.shape[axis + 1 :])]
