"""Shape rules of scans."""

from __future__ import annotations

from .._device.backend import Backend
from .._errors.classes import ArgumentError, ShapeError
from .._op.declaration import Attributes, Op, Shape, Specs


def only_axis(name: str, shape: Shape, axis: int | None) -> int:
    """The axis, which only a vector may leave out.

    Raises:
        ShapeError: when there is not just one.
    """
    if not shape or (axis is None and len(shape) > 1):
        raise ShapeError(name, "no axis", got=f"shape {shape}", expected="an axis", hint="axis=0")
    return axis or 0


def running(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """The same shape, or one longer along the axis."""
    del op
    axis, _, include_initial = attributes
    shape = specs[0].shape
    return [(*shape[:axis], shape[axis] + bool(include_initial), *shape[axis + 1 :])]


def prepare_diff(specs: Specs, attributes: Attributes, backend: Backend) -> Attributes:
    """The count is not negative."""
    del specs, backend
    if attributes[1] < 0:
        raise ArgumentError("diff", "negative count", got=attributes[1], expected="n >= 0")
    return attributes


def diff(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """As many fewer along the axis as there are passes, after joining."""
    axis, n = attributes
    shapes = [s.shape for s in specs if s is not None]
    first = specs[0].shape
    for shape in shapes:
        if len(shape) != len(first) or any(
            a != b for i, (a, b) in enumerate(zip(shape, first, strict=True)) if i != axis
        ):
            raise ShapeError(
                op.name,
                "shapes differ beside the axis",
                got=" and ".join(map(str, shapes)),
                expected=f"equal sizes but along axis {axis}",
            )
    size = max(sum(shape[axis] for shape in shapes) - n, 0)
    return [(*first[:axis], size, *first[axis + 1 :])]
