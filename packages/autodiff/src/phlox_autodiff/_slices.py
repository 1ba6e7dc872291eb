"""Cotangents of slices of one tensor: they are collected, and added into one buffer."""

from __future__ import annotations

from math import prod
from typing import Any, final

from phlox_tensor import Tensor
from phlox_tensor.ops import movement as ops

Steps = tuple[int, ...]


@final
class Slices:
    """Zeros of a shape with parts added to them, each at a slice; a tensor only when it is read.

    A rule gives one instead of a tensor as large as its operand, so that many slices of one
    tensor cost as much as they have elements. It belongs to the pass that made it.
    """

    __slots__ = ("_elements", "_parts", "_shape", "_starts", "_steps")

    def __init__(self, shape: Steps, part: Tensor[Any], start: Steps, step: Steps) -> None:
        """One part: element ``k`` along an axis of it lies at ``start + k * step``."""
        self._shape = shape
        self._parts = [part]
        self._starts = [start]
        self._steps = [step]
        self._elements = part.size

    def add(self, other: Tensor[Any] | Slices) -> None:
        """Take over the parts of another one, or a whole tensor."""
        if isinstance(other, Slices):
            self._parts += other._parts
            self._starts += other._starts
            self._steps += other._steps
            self._elements += other._elements
            # Slices that overlap would hold ever more; one sum for so many elements is no loss.
            if self._elements > 2 * prod(self._shape):
                self._become(self.tensor())
            return
        rank = len(self._shape)
        self._parts.append(other)
        self._starts.append((0,) * rank)
        self._steps.append((1,) * rank)
        self._elements += other.size

    def _become(self, whole: Tensor[Any]) -> None:
        rank = len(self._shape)
        self._parts, self._elements = [whole], 0
        self._starts, self._steps = [(0,) * rank], [(1,) * rank]

    def tensor(self) -> Tensor[Any]:
        """The sum."""
        if len(self._parts) > 1:
            start = tuple([i for item in self._starts for i in item])
            step = tuple([i for item in self._steps for i in item])
            return ops.add_slices(self._parts, self._shape, start, step)
        (part,), (start,), (step,) = self._parts, self._starts, self._steps
        if part.shape == self._shape and all(s == 1 for s in step):
            return part
        if all(s == 1 for s in step):
            margins = zip(self._shape, start, part.shape, strict=True)
            return part.pad([(first, n - first - count) for n, first, count in margins], 0.0)
        return ops.slice_scatter(part.zeros(self._shape), part, start, part.shape, step)


def together(a: Any, b: Any) -> Any:
    """The sum of two cotangents of one node, either of which may be slices of the pass's own."""
    if type(a) is Slices:
        a.add(b)
        return a
    if type(b) is Slices:
        b.add(a)
        return b
    return a + b


def whole(cotangent: Any) -> Any:
    """A cotangent as a tensor."""
    return cotangent.tensor() if type(cotangent) is Slices else cotangent
