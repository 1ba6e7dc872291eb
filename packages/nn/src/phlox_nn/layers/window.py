"""Windows over lines, images and volumes: a size for each axis, padding in words or numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import phlox_tensor
from phlox_tensor import ArgumentError, Float, Tensor, pad

Single = int
Pair = int | tuple[int, int]
Triple = int | tuple[int, int, int]
PairOrNone = int | tuple[int | None, int | None]
TripleOrNone = int | tuple[int | None, int | None, int | None]
Padding1d = Literal["same", "valid"] | int | tuple[int, int]
Padding = Literal["same", "valid"] | int | tuple[int, int] | tuple[tuple[int, int], tuple[int, int]]
Padding3d = (
    Literal["same", "valid"]
    | int
    | tuple[int, int, int]
    | tuple[tuple[int, int], tuple[int, int], tuple[int, int]]
)


def ops_of(name: str) -> dict[int, Callable[..., Any]]:
    """Return the op of each number of axes, whose name has it at ``{}``."""
    return {axes: getattr(phlox_tensor, name.format(axes)) for axes in (1, 2, 3)}


def as_sizes(value: int | tuple[int, ...], axes: int) -> tuple[int, ...]:
    """Return one size for each axis."""
    return (value,) * axes if isinstance(value, int) else value


def whole(size: int | tuple[int | None, ...], x: Tensor[Float], axes: int) -> Any:
    """Return the sizes of an output, of which None is that of the input.

    A tensor of too few axes is left to the op to refuse.
    """
    if isinstance(size, int) or x.ndim < axes:
        return size
    pairs = zip(size, x.shape[-axes:], strict=True)
    return tuple(old if new is None else new for new, old in pairs)


def margins(
    padding: Padding1d | Padding | Padding3d,
    shape: tuple[int, ...],
    axes: int,
    kernel: int | tuple[int, ...],
    stride: int | tuple[int, ...],
    dilation: int | tuple[int, ...],
) -> Any:
    """Return (before, after) for each of the last ``axes`` axes of a tensor of this shape.

    ``"same"`` gives ceil(size / stride) positions; the odd one goes to the end. A shape of too few
    axes is left to the op to refuse.
    """
    if isinstance(padding, str):
        if padding == "valid":
            return ((0, 0),) * axes
        if padding != "same":
            raise ArgumentError(
                "padding", "unknown word", got=repr(padding), expected="'same', 'valid' or sizes"
            )
        size = shape[-axes:] if len(shape) >= axes else (1,) * axes
        each = (as_sizes(v, axes) for v in (kernel, stride, dilation))
        return tuple(_same(*values) for values in zip(size, *each, strict=True))
    if isinstance(padding, int):
        return ((padding, padding),) * axes
    if axes == 1:
        return (padding,)
    return tuple((p, p) if isinstance(p, int) else p for p in padding)


def max_window(settings: Any, x: Tensor[Float], axes: int) -> tuple[Any, ...]:
    """Return what an op of a max pool takes behind the tensor, by the settings of the layer."""
    s, stride = settings, _stride(settings)
    sides = margins(s.padding, x.shape, axes, s.kernel_size, stride, s.dilation)
    return s.kernel_size, stride, sides, s.dilation, s.ceil_mode


def room(settings: Any, x: Tensor[Float], axes: int) -> tuple[Any, ...]:
    """Return the same behind the tensor; margins wider than half a kernel are filled here.

    A kernel with distances (``dilation``) has such margins. Those above half of all that it spans,
    under which a window could lie whole, are left to the op to refuse.
    """
    kernel, stride, sides, dilation, ceil_mode = max_window(settings, x, axes)
    widths = zip(sides, as_sizes(kernel, axes), as_sizes(dilation, axes), strict=True)
    spans = [(max(margin), k // 2, (d * (k - 1) + 1) // 2) for margin, k, d in widths]
    fits = all(margin <= half for margin, half, _ in spans)
    if fits or any(margin > most for margin, _, most in spans):
        return x, kernel, stride, sides, dilation, ceil_mode
    return pad(x, sides, -float("inf")), kernel, stride, ((0, 0),) * axes, dilation, ceil_mode


def avg_window(settings: Any, x: Tensor[Float], axes: int) -> tuple[Any, ...]:
    """Return what an op of an average pool takes behind the tensor."""
    s, stride = settings, _stride(settings)
    sides = margins(s.padding, x.shape, axes, s.kernel_size, stride, 1)
    return s.kernel_size, stride, sides, s.ceil_mode, s.count_include_pad


def _stride(settings: Any) -> Any:
    return settings.kernel_size if settings.stride is None else settings.stride


def _same(n: int, kernel: int, stride: int, dilation: int) -> tuple[int, int]:
    positions = -(-n // stride)
    total = max(0, (positions - 1) * stride + dilation * (kernel - 1) + 1 - n)
    return total // 2, total - total // 2
