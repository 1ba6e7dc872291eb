"""What a precision would lose, tensor by tensor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from phlox_tensor import DType

from ._errors import located
from ._limits import Limits
from ._precision import PrecisionSettings, cast_blocks
from ._tree import RecordInput, check_tree


@dataclass(frozen=True, slots=True)
class Loss:
    """What one tensor loses when it is written.

    Attributes:
        path: of the tensor.
        before: its element type.
        after: the one in the file.
        largest_error: the largest difference, of those that stay finite.
        infinite: how many finite numbers become infinite.
        zero: how many numbers other than zero become zero.
    """

    path: str
    before: DType
    after: DType
    largest_error: float
    infinite: int
    zero: int

    def __str__(self) -> str:
        parts = [f"{self.path}: {self.before.name} to {self.after.name}"]
        parts.append(f"largest error {self.largest_error:.3g}")
        parts += [f"{self.infinite:,} become infinite"] if self.infinite else []
        parts += [f"{self.zero:,} become zero"] if self.zero else []
        return ", ".join(parts)


def precision_loss(
    tree: RecordInput, precision: PrecisionSettings, *, limits: Limits | None = None
) -> list[Loss]:
    """Return what each tensor would lose that does not keep its element type, in file order.

    Nothing is written, and a number that becomes infinite is counted instead of refused.

    Args:
        tree: a record.
        precision: settings, as of a recorder.
        limits: caps on the record.

    Raises:
        RecordError: a value that a record cannot hold.

    >>> import phlox_tensor as pt
    >>> from phlox_record import HalfPrecision, precision_loss
    >>> print(*precision_loss({"w": pt.asarray([0.1, 1e-9, 7e4])}, HalfPrecision))
    w: float32 to float16, largest error 2.44e-05, 1 become infinite, 1 become zero
    """
    with located("precision_loss", "the record"):
        _, leaves = check_tree(tree, Limits() if limits is None else limits)
        precision.check_paths([leaf.where for leaf in leaves])
        found = []
        for leaf in leaves:
            target = precision.target(leaf.tensor.dtype, leaf.where)
            if target is not leaf.tensor.dtype:
                found.append(_lost(leaf.where, leaf.tensor.numpy(), leaf.tensor.dtype, target))
        return found


def _lost(where: str, array: np.ndarray[Any, Any], before: DType, after: DType) -> Loss:
    largest, infinite, zero = 0.0, 0, 0
    flat = np.ascontiguousarray(array).reshape(-1)
    start = 0
    for block in cast_blocks(flat, after, where, overflow=True):
        source = flat[start : start + block.size].astype(np.float64)
        stored = block.astype(np.float64)
        start += block.size
        finite = np.isfinite(source)
        infinite += int((finite & ~np.isfinite(stored)).sum())
        zero += int(((source != 0) & (stored == 0)).sum())
        kept = finite & np.isfinite(stored)
        if kept.any():
            largest = max(largest, float(np.abs(source[kept] - stored[kept]).max()))
    return Loss(where, before, after, largest, infinite, zero)
