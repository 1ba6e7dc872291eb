"""Windows over images (N, C, H, W): sizes in pairs, and padding in words or numbers."""

from __future__ import annotations

from typing import Literal

from phlox_tensor import ArgumentError

Pair = int | tuple[int, int]
Sides = tuple[tuple[int, int], tuple[int, int]]
Padding = Literal["same", "valid"] | int | tuple[int, int] | Sides


def as_pair(value: Pair) -> tuple[int, int]:
    """Return (height, width)."""
    return (value, value) if isinstance(value, int) else value


def sides(
    padding: Padding, size: tuple[int, int], kernel: Pair, stride: Pair, dilation: Pair
) -> Sides:
    """Return ((top, bottom), (left, right)) for images of this size.

    ``"same"`` gives ceil(size / stride) positions; the odd one goes to the end.

    Raises:
        ArgumentError: for an unknown word.
    """
    if isinstance(padding, str):
        if padding == "valid":
            return (0, 0), (0, 0)
        if padding != "same":
            raise ArgumentError(
                "conv2d", "unknown padding", got=repr(padding), expected="'same', 'valid' or sizes"
            )
        height, width = (
            _same(n, k, s, d)
            for n, k, s, d in zip(
                size, as_pair(kernel), as_pair(stride), as_pair(dilation), strict=True
            )
        )
        return height, width
    if isinstance(padding, int):
        return (padding, padding), (padding, padding)
    top, left = padding
    if isinstance(top, int):
        assert isinstance(left, int)
        return (top, top), (left, left)
    assert not isinstance(left, int)
    return top, left


def _same(n: int, kernel: int, stride: int, dilation: int) -> tuple[int, int]:
    positions = -(-n // stride)
    total = max(0, (positions - 1) * stride + dilation * (kernel - 1) + 1 - n)
    return total // 2, total - total // 2


Single = int
Triple = int | tuple[int, int, int]
Padding1d = Literal["same", "valid"] | int | tuple[int, int]
Padding3d = (
    Literal["same", "valid"]
    | int
    | tuple[int, int, int]
    | tuple[tuple[int, int], tuple[int, int], tuple[int, int]]
)


def as_sizes(value: int | tuple[int, ...], axes: int) -> tuple[int, ...]:
    """Return one size for each axis."""
    return (value,) * axes if isinstance(value, int) else value


def margins(
    padding: Padding1d | Padding3d,
    size: tuple[int, ...],
    kernel: int | tuple[int, ...],
    stride: int | tuple[int, ...],
    dilation: int | tuple[int, ...],
) -> tuple[tuple[int, int], ...]:
    """Return (before, after) for each axis of lines or volumes of this size, as ``sides`` does."""
    axes = len(size)
    if padding == "valid":
        return ((0, 0),) * axes
    if isinstance(padding, str):
        each = (as_sizes(v, axes) for v in (kernel, stride, dilation))
        return tuple(_same(*values) for values in zip(size, *each, strict=True))
    if isinstance(padding, int):
        return ((padding, padding),) * axes
    if axes == 1:
        before, after = padding[:2]
        assert isinstance(before, int)
        assert isinstance(after, int)
        return ((before, after),)
    return tuple((p, p) if isinstance(p, int) else p for p in padding)
