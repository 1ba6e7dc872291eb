"""Repetition by a tensor of counts, whose values decide the shape."""

from __future__ import annotations

from .._errors.classes import ShapeError
from .._op.attributes import normalize_axis
from .._values.kinds import Int
from .._values.tensor import Tensor
from ._counts import whole_counts


def repeated(x: Tensor, repeats: Tensor[Int] | int, axis: int | None) -> Tensor:
    """Element i as often as ``repeats[i]`` says; the sum of them is read."""
    flat = x.flatten() if axis is None else x
    along = 0 if axis is None else normalize_axis(axis, "repeat", x.ndim)
    assert isinstance(repeats, Tensor)
    whole = whole_counts("repeat", "repeats", repeats)
    if whole.shape not in ((), (1,), (flat.shape[along],)):
        raise ShapeError(
            "repeat",
            "a count for each element",
            got=f"{whole.shape} counts",
            expected=f"{(flat.shape[along],)}, the size of axis {along}",
        )
    counts = whole.broadcast_to(flat.shape[along]).astype(x.device.default_int)
    if counts.size and (least := counts.min().item()) < 0:
        expected = "repeats >= 0"
        raise ShapeError("repeat", "negative count", got=least, expected=expected)
    ends = counts.cumsum()
    total = ends[-1].item() if counts.size else 0
    numbers = Tensor(x.device.ops.arange(0, 1, total, counts.dtype), x.device)
    return flat.take(ends.searchsorted(numbers, side="right"), axis=along)
