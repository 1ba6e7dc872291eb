"""Moves of pixels: what becomes of planes, and of points on them."""

from __future__ import annotations

from collections.abc import Sequence
from math import cos, radians, sin, tan
from typing import Any, Final, Literal

import numpy as np
from PIL import Image

from phlox_tensor import ArgumentError

from ._item import Array, Fill, Move, Size, by_pillow, filled

Mode = Literal["constant", "edge", "reflect", "symmetric"]
Sides = int | Sequence[int]

_FILTERS: Final = {
    "bicubic": Image.Resampling.BICUBIC,
    "bilinear": Image.Resampling.BILINEAR,
    "box": Image.Resampling.BOX,
    "hamming": Image.Resampling.HAMMING,
    "lanczos": Image.Resampling.LANCZOS,
    "nearest": Image.Resampling.NEAREST,
}
_WARPS: Final = ("bicubic", "bilinear", "nearest")
MIRRORED: Final = Move(
    lambda planes, mask: planes[:, :, ::-1],
    lambda points, size: np.stack([size[1] - points[..., 0], points[..., 1]], -1),
)
UPSIDE_DOWN: Final = Move(
    lambda planes, mask: planes[:, ::-1],
    lambda points, size: np.stack([points[..., 0], size[0] - points[..., 1]], -1),
)


def resampling(op: str, name: str, *, warp: bool = False) -> Image.Resampling:
    """Return Pillow's word for a filter."""
    known = _WARPS if warp else (*_FILTERS,)
    if name not in known:
        got, expected = repr(name), ", ".join(known)
        raise ArgumentError(op, "no such interpolation", got=got, expected=expected)
    return _FILTERS[name]


def sides_of(op: str, padding: Sides) -> tuple[int, int, int, int]:
    """Return left, top, right, bottom of what says one, two or four of them."""
    sides = (padding,) if isinstance(padding, int) else tuple(padding)
    if len(sides) not in (1, 2, 4) or any(type(each) is not int or each < 0 for each in sides):
        expected = "a number; left and top; or left, top, right and bottom"
        raise ArgumentError(op, "no padding", got=padding, expected=expected)
    left, top, right, bottom = (sides * 4)[:4]
    return left, top, right, bottom


def cut(top: int, left: int, height: int, width: int) -> Move:
    """A part of a picture."""
    return Move(
        lambda planes, mask: planes[:, top : top + height, left : left + width],
        lambda points, size: points - np.array([left, top]),
    )


def resized(size: Size, old: Size, name: str, op: str) -> Move:
    """Another size; masks take the nearest pixel."""
    method = resampling(op, name)
    scale = np.array([size[1] / old[1], size[0] / old[0]])

    def pixels(planes: Array, mask: bool) -> Array:
        used = Image.Resampling.NEAREST if mask else method
        return by_pillow(planes, lambda image: image.resize((size[1], size[0]), used))

    return Move(pixels, lambda points, size: points * scale)


def bordered(op: str, sides: Sequence[int], fill: Fill, mask_fill: int, mode: Mode) -> Move:
    """A border around a picture."""
    left, top, right, bottom = sides
    widths = ((0, 0), (top, bottom), (left, right))

    def pixels(planes: Array, mask: bool) -> Array:
        if mode != "constant":
            return np.pad(planes, widths, mode)
        value: Any = mask_fill if mask else fill
        if not isinstance(value, Sequence):
            return np.pad(planes, widths, constant_values=value)
        if len(value) != len(planes):
            expected = f"a number, or {len(planes)} of them"
            raise ArgumentError(op, "fill is of other channels", got=value, expected=expected)
        border = zip(planes, value, strict=True)
        return np.stack([np.pad(plane, widths[1:], constant_values=each) for plane, each in border])

    return Move(pixels, lambda points, size: points + np.array([left, top]))


def both(first: Move, second: Move) -> Move:
    """One move after another one; the second tells its own size."""
    return Move(
        lambda planes, mask: second.pixels(first.pixels(planes, mask), mask),
        lambda points, size: second.points(first.points(points, size), size),
    )


def turned(
    op: str,
    angle: float,
    old: Size,
    name: str,
    fill: Fill,
    mask_fill: int,
    center: tuple[float, float] | None = None,
    *,
    expand: bool = False,
) -> Move:
    """A turn against the clock, by degrees."""
    method = resampling(op, name, warp=True)
    middle = np.array(center or (old[1] / 2, old[0] / 2))
    turn = radians(angle)
    matrix = np.array([[cos(turn), sin(turn)], [-sin(turn), cos(turn)]])

    def pixels(planes: Array, mask: bool) -> Array:
        used, value = (Image.Resampling.NEAREST, mask_fill) if mask else (method, fill)
        return by_pillow(
            planes,
            lambda image: image.rotate(
                angle, used, expand, center, fillcolor=filled(value, image, op)
            ),
        )

    def points(places: Array, size: Size) -> Array:
        grown = np.array([size[1] - old[1], size[0] - old[0]]) / 2
        return (places - middle) @ matrix.T + middle + grown

    return Move(pixels, points)


def warped(op: str, numbers: Sequence[float], name: str, fill: Fill, mask_fill: int) -> Move:
    """A move by the numbers that lead from new places to old ones: six affine, or eight."""
    method = resampling(op, name, warp=True)
    kind = Image.Transform.AFFINE if len(numbers) == 6 else Image.Transform.PERSPECTIVE
    forth = np.linalg.inv(
        np.array([*numbers, 0, 0, 1][:9] if len(numbers) == 6 else [*numbers, 1]).reshape(3, 3)
    )

    def pixels(planes: Array, mask: bool) -> Array:
        used, value = (Image.Resampling.NEAREST, mask_fill) if mask else (method, fill)
        return by_pillow(
            planes,
            lambda image: image.transform(
                image.size, kind, numbers, used, fillcolor=filled(value, image, op)
            ),
        )

    def points(places: Array, size: Size) -> Array:
        del size
        found = places @ forth[:, :2].T + forth[:, 2]
        return found[..., :2] / found[..., 2:]

    return Move(pixels, points)


def affine(
    angle: float,
    shift: tuple[float, float],
    scale: float,
    shear: tuple[float, float],
    center: tuple[float, float],
) -> list[float]:
    """Return the six numbers that lead back from new places: turn, shears and scale by degrees.

    In the order of torchvision, so that the last bits are its own: nearest pixels depend on them.
    """
    turn, x, y = radians(angle), radians(shear[0]), radians(shear[1])
    a = cos(turn - y) / cos(y)
    b = -(a * tan(x) + sin(turn))
    c = sin(turn - y) / cos(y)
    d = cos(turn) - c * tan(x)
    found = [d / scale, -b / scale, 0.0, -c / scale, a / scale, 0.0]
    to = center[0] + shift[0], center[1] + shift[1]
    found[2] += center[0] - found[0] * to[0] - found[1] * to[1]
    found[5] += center[1] - found[3] * to[0] - found[4] * to[1]
    return found


def perspective(old: Array, new: Array) -> list[float]:
    """Return the eight numbers that lead from four new corners back to the old ones."""
    rows = []
    for (x, y), (u, v) in zip(new.tolist(), old.tolist(), strict=True):
        rows += [[x, y, 1, 0, 0, 0, -u * x, -u * y], [0, 0, 0, x, y, 1, -v * x, -v * y]]
    found = np.linalg.lstsq(np.array(rows, np.float64), old.reshape(8).astype(np.float64))[0]
    return [float(number) for number in found.astype(np.float32)]
