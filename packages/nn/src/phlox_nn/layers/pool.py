"""Pools of lines, images and volumes: by windows, to a given size, and max pools taken back."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import KW_ONLY
from typing import Any, ClassVar, Final, Generic, TypeVar

from phlox_tensor import Float, Int, ShapeError, Tensor, max_unpool

from ..module.layer import Stateless
from .window import (
    Padding,
    Padding1d,
    Padding3d,
    Pair,
    PairOrNone,
    Single,
    Triple,
    TripleOrNone,
    as_sizes,
    avg_window,
    max_window,
    ops_of,
    room,
    whole,
)

Size = TypeVar("Size")
Pads = TypeVar("Pads")


_MAX: Final = ops_of("max_pool{}d")
_MAX_INDICES: Final = ops_of("max_pool{}d_with_indices")
_AVG: Final = ops_of("avg_pool{}d")
_LP: Final = ops_of("lp_pool{}d")
_TO_MAX: Final = ops_of("adaptive_max_pool{}d")
_TO_MAX_INDICES: Final = ops_of("adaptive_max_pool{}d_with_indices")
_TO_AVG: Final = ops_of("adaptive_avg_pool{}d")


class _Pool(Stateless, shared=True):
    _axes: ClassVar[int]


class _Smaller(_Pool, shared=True):
    def forward(self, x: Tensor[Float]) -> Tensor[Float]:
        """Map (N, C, …) to as many axes.

        Raises:
            ShapeError: for other axes, and windows that do not fit.
        """
        return self._pooled(x)

    @abstractmethod
    def _pooled(self, x: Tensor[Float]) -> Tensor[Float]: ...


class _MaxPool(_Pool, Generic[Size, Pads], shared=True):
    """A max pool.

    Args:
        kernel_size: size of the window, for all axes or each.
        stride: steps of the window; None for those of the kernel.
        padding: ``"valid"``, ``"same"``, or sizes; what is padded is never the largest.
        dilation: distance between the window's elements.
        ceil_mode: whether a window may begin that does not end inside.
    """

    kernel_size: Size
    stride: Size | None = None
    padding: Pads = "valid"  # type: ignore[assignment]  # a word of each
    dilation: Size = 1  # type: ignore[assignment]  # of each
    _: KW_ONLY
    ceil_mode: bool = False

    def forward(self, x: Tensor[Float]) -> Tensor[Float]:
        """Map (N, C, …) to as many axes.

        Raises:
            ArgumentError: for a padding of more than half of what a window spans.
        """
        return _MAX[self._axes](*room(self.settings, x, self._axes))

    def with_indices(self, x: Tensor[Float]) -> tuple[Tensor[Float], Tensor[Int]]:
        """Return what ``forward`` gives, and its places in each line, plane or volume.

        Raises:
            ArgumentError: for a padding of more than half a window.
        """
        window = max_window(self.settings, x, self._axes)
        return _MAX_INDICES[self._axes](x, *window)


class MaxPool1d(_MaxPool[Single, Padding1d]):
    """Largest element of each window of (N, C, L)."""

    _axes = 1


class MaxPool2d(_MaxPool[Pair, Padding]):
    """Largest element of each window of (N, C, H, W)."""

    _axes = 2


class MaxPool3d(_MaxPool[Triple, Padding3d]):
    """Largest element of each window of (N, C, D, H, W)."""

    _axes = 3


class _AvgPool(_Smaller, Generic[Size, Pads], shared=True):
    """An average pool.

    Args:
        kernel_size: size of the window, for all axes or each.
        stride: steps of the window; None for those of the kernel.
        padding: ``"valid"``, ``"same"``, or sizes; what is padded is 0.
        ceil_mode: whether a window may begin that does not end inside.
        count_include_pad: whether what is padded counts in the mean.
    """

    kernel_size: Size
    stride: Size | None = None
    padding: Pads = "valid"  # type: ignore[assignment]  # a word of each
    ceil_mode: bool = False
    count_include_pad: bool = True

    def _pooled(self, x: Tensor[Float]) -> Tensor[Float]:
        return _AVG[self._axes](x, *avg_window(self.settings, x, self._axes))


class AvgPool1d(_AvgPool[Single, Padding1d]):
    """Mean of each window of (N, C, L)."""

    _axes = 1


class AvgPool2d(_AvgPool[Pair, Padding]):
    """Mean of each window of (N, C, H, W)."""

    _axes = 2


class AvgPool3d(_AvgPool[Triple, Padding3d]):
    """Mean of each window of (N, C, D, H, W)."""

    _axes = 3


class _LpPool(_Smaller, Generic[Size], shared=True):
    """A pool of powers.

    Args:
        p: the power, at least 1.
        kernel_size: size of the window, for all axes or each.
        stride: steps of the window; None for those of the kernel.
        ceil_mode: whether a window may begin that does not end inside.
    """

    p: float
    kernel_size: Size
    stride: Size | None = None
    ceil_mode: bool = False

    def _check(self) -> None:
        self.require("p", self.p >= 1, "at least 1")  # below, there is no norm

    def _pooled(self, x: Tensor[Float]) -> Tensor[Float]:
        s, op = self.settings, _LP[self._axes]
        return op(x, s.kernel_size, p=s.p, stride=s.stride, ceil_mode=s.ceil_mode)


class LpPool1d(_LpPool[Single]):
    """``(Σ |x|ᵖ)^(1/p)`` of each window of (N, C, L)."""

    _axes = 1


class LpPool2d(_LpPool[Pair]):
    """``(Σ |x|ᵖ)^(1/p)`` of each window of (N, C, H, W)."""

    _axes = 2


class LpPool3d(_LpPool[Triple]):
    """``(Σ |x|ᵖ)^(1/p)`` of each window of (N, C, D, H, W)."""

    _axes = 3


class _ToSize(_Smaller, Generic[Size], shared=True):
    """A pool to a size.

    Args:
        output_size: of each axis of the output; None, of several, for one as it is.
    """

    output_size: Size

    def _size(self, x: Tensor[Float]) -> Any:
        return whole(self.settings.output_size, x, self._axes)


class _AdaptiveAvg(_ToSize[Size], Generic[Size], shared=True):
    def _pooled(self, x: Tensor[Float]) -> Tensor[Float]:
        return _TO_AVG[self._axes](x, self._size(x))


class AdaptiveAvgPool1d(_AdaptiveAvg[Single]):
    """Mean of each of as many regions of (N, C, L) as the output has elements."""

    _axes = 1


class AdaptiveAvgPool2d(_AdaptiveAvg[PairOrNone]):
    """Mean of each of as many regions of (N, C, H, W) as the output has elements."""

    _axes = 2


class AdaptiveAvgPool3d(_AdaptiveAvg[TripleOrNone]):
    """Mean of each of as many regions of (N, C, D, H, W) as the output has elements."""

    _axes = 3


class _AdaptiveMax(_ToSize[Size], Generic[Size], shared=True):
    def _pooled(self, x: Tensor[Float]) -> Tensor[Float]:
        return _TO_MAX[self._axes](x, self._size(x))

    def with_indices(self, x: Tensor[Float]) -> tuple[Tensor[Float], Tensor[Int]]:
        """Return what ``forward`` gives, and its places in each line, plane or volume."""
        return _TO_MAX_INDICES[self._axes](x, self._size(x))


class AdaptiveMaxPool1d(_AdaptiveMax[Single]):
    """Largest element of each of as many regions of (N, C, L) as the output has elements."""

    _axes = 1


class AdaptiveMaxPool2d(_AdaptiveMax[PairOrNone]):
    """Largest element of each of as many regions of (N, C, H, W) as the output has elements."""

    _axes = 2


class AdaptiveMaxPool3d(_AdaptiveMax[TripleOrNone]):
    """Largest element of each of as many regions of (N, C, D, H, W) as the output has elements."""

    _axes = 3


class _MaxUnpool(_Pool, Generic[Size], shared=True):
    """A max pool taken back.

    Args:
        kernel_size: size of the window of the pool, for all axes or each.
        stride: steps of the window; None for those of the kernel.
        padding: what was added at each side.
    """

    kernel_size: Size
    stride: Size | None = None
    padding: Size = 0  # type: ignore[assignment]  # of each

    def forward(
        self, x: Tensor[Float], indices: Tensor[Int], size: tuple[int, ...] | None = None
    ) -> Tensor[Float]:
        """Map (N, C, …) and places of that shape to the shape before the pool.

        Args:
            x: elements.
            indices: their places: ``y, indices = pool.with_indices(x)``.
            size: the last axes of the result; None for the smallest that fits.

        Raises:
            ShapeError: when x and indices are not of one shape.
            IndexOutOfRangeError: when a place is beyond the size.
        """
        s, axes = self.settings, self._axes
        if x.ndim != axes + 2:
            expected = f"(N, C) and {axes} axes"
            raise ShapeError(f"MaxUnpool{axes}d", "no such axes", got=x.shape, expected=expected)
        if size is None:
            steps = s.kernel_size if s.stride is None else s.stride
            each = (as_sizes(value, axes) for value in (s.kernel_size, steps, s.padding))
            rows = zip(x.shape[2:], *each, strict=True)
            size = tuple((n - 1) * step - 2 * pad + k for n, k, step, pad in rows)
        return max_unpool(x, indices, size)


class MaxUnpool1d(_MaxUnpool[Single]):
    """Zeros (N, C, L) with each element at the place where ``MaxPool1d`` found it."""

    _axes = 1


class MaxUnpool2d(_MaxUnpool[Pair]):
    """Zeros (N, C, H, W) with each element at the place where ``MaxPool2d`` found it."""

    _axes = 2


class MaxUnpool3d(_MaxUnpool[Triple]):
    """Zeros (N, C, D, H, W) with each element at the place where ``MaxPool3d`` found it."""

    _axes = 3
