"""Images, and windows that move over them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from .._errors.classes import ShapeError
from .._op.declaration import Op, Shape

IMAGE_RANK = 4


# By the number of axes that a window moves along: what it moves over.
_OVER = {
    1: ("lines", "(batch, channels, length)"),
    2: ("images", "(batch, channels, height, width)"),
    3: ("volumes", "(batch, channels, depth, height, width)"),
}


def windowed(op: Op, spec: Any, count: int, name: str = "x") -> None:
    """Raise ShapeError unless a tensor is a batch with ``count`` axes for windows to move along."""
    if len(spec.shape) != count + 2:
        what, expected = _OVER[count]
        hint = "x[None] to add a batch of one" if len(spec.shape) == count + 1 else None
        raise ShapeError(
            op.name,
            f"{name} is not a batch of {what}",
            got=spec.shape,
            expected=expected,
            hint=hint,
        )


def sizes(
    op: str,
    size: Shape,
    kernel: Shape,
    stride: Shape,
    padding: tuple[tuple[int, int], ...],
    dilation: Shape,
    ceil_mode: bool = False,
) -> Shape:
    """Number of window positions along each axis.

    Raises:
        ShapeError: when the window is larger than the padded image.
    """
    out = []
    for n, k, s, (before, after), d in zip(size, kernel, stride, padding, dilation, strict=True):
        room = n + before + after - d * (k - 1) - 1
        if room < 0:
            raise ShapeError(
                op,
                "window larger than the padded image",
                got=f"window {d * (k - 1) + 1}, image {n + before + after}",
            )
        count = room // s + 1
        # A last, partial window counts in ceil mode when it starts inside image or left padding.
        if ceil_mode and room % s and count * s < n + before:
            count += 1
        out.append(count)
    return tuple(out)


window_sizes = cast("Callable[..., tuple[int, int]]", sizes)  # along height and width


def overhang(
    size: Shape,
    kernel: Shape,
    stride: Shape,
    padding: tuple[tuple[int, int], ...],
    dilation: Shape,
    out: Shape,
) -> tuple[int, int]:
    """How far the last windows reach beyond the padded image (in ceil mode)."""
    height, width = (
        max(0, (o - 1) * s + d * (k - 1) + 1 - n - sum(sides))
        for o, s, d, k, n, sides in zip(out, stride, dilation, kernel, size, padding, strict=True)
    )
    return height, width
