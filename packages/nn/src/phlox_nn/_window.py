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
