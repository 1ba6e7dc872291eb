"""Which slices are parts that follow each other along one axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._values.tensor import Tensor


def joined(
    parts: Sequence[Tensor], shape: tuple[int, ...], starts: list[Any], steps: list[Any]
) -> tuple[list[Tensor], int] | None:
    """The parts in order with zeros between them and their axis, where they lie along one."""
    partial = {i for part in parts for i, n in enumerate(shape) if part.shape[i] != n}
    if len(partial) != 1 or any(s != 1 for stride in steps for s in stride):
        return None
    (axis,) = partial
    out, end = [], 0
    for i in sorted(range(len(parts)), key=lambda i: starts[i][axis]):
        first = starts[i][axis]
        if first < end:
            return None
        if first > end:
            out.append(parts[i].zeros((*shape[:axis], first - end, *shape[axis + 1 :])))
        out.append(parts[i])
        end = first + parts[i].shape[axis]
    if end < shape[axis]:
        out.append(parts[0].zeros((*shape[:axis], shape[axis] - end, *shape[axis + 1 :])))
    return out, axis
