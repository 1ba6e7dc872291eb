"""Shape rules of images in another order."""

from __future__ import annotations

from math import prod
from typing import Any, Final

import numpy as np

from .._device.backend import Backend
from .._errors.classes import ArgumentError, ShapeError
from .._op.attributes import normalize_axis
from .._op.declaration import Attributes, Op, Shape, Specs
from ._window import window_sizes, windowed
from .movement import concat

BORDERS = ("circular", "edge", "reflect", "symmetric")
# By the words of NumPy and PyTorch: what to type.
_OTHER_BORDERS: Final = {
    "constant": "x.pad(padding)",
    "empty": "x.pad(padding)",
    "replicate": 'mode="edge"',
    "wrap": 'mode="circular"',
    "zeros": "x.pad(padding)",
}


def append(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """Sizes add up along the axis and are equal elsewhere."""
    return concat(op, (specs,), attributes)


def append_at(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """The first operand's shape; the second is one place of it, the third a number."""
    (axis,), (x, values, place) = attributes, (spec.shape for spec in specs)
    one = (*x[:axis], 1, *x[axis + 1 :])
    if values != one or place:
        expected = f"{one} and ()"
        raise ShapeError(op.name, "not one place", got=f"{values} and {place}", expected=expected)
    return [x]


def cartesian_prod(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """A row for each choice."""
    del attributes
    shapes = [spec.shape for spec in specs[0]]
    if any(len(shape) != 1 for shape in shapes):
        raise ShapeError(op.name, "not vectors", got=shapes, expected="(n,), (m,), …")
    return [(prod(shape[0] for shape in shapes), len(shapes))]


def channel_shuffle(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """X's shape."""
    shape, (groups,) = specs[0].shape, attributes
    if len(shape) < 2 or groups < 1 or shape[1] % groups:
        expected = "channels (axis 1) divisible by groups"
        raise ShapeError(
            op.name, "no such groups", got=f"x {shape}, groups {groups}", expected=expected
        )
    return [shape]


def fold(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """(N, C, *size)."""
    size, kernel, stride, padding, dilation = attributes
    shape, lines = specs[0].shape, kernel[0] * kernel[1]
    height, width = window_sizes(op.name, size, kernel, stride, padding, dilation)
    if len(shape) != 3 or shape[1] % lines or shape[2] != height * width:
        expected = f"(batch, channels·{lines}, {height * width})"
        raise ShapeError(op.name, "x holds no such windows", got=shape, expected=expected)
    return [(shape[0], shape[1] // lines, *size)]


def max_unpool(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """(N, C, *size)."""
    x, indices = specs[0].shape, specs[1].shape
    (size,) = attributes
    if x != indices or len(x) != len(size) + 2:
        got = f"x {x}, indices {indices}, size {size}"
        raise ShapeError(
            op.name,
            "indices or size do not fit",
            got=got,
            expected="x and indices (batch, channels, …), a size for each axis behind them",
        )
    return [(*x[:2], *size)]


def pad_border(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """Each axis grows by its margins, which come from the tensor."""
    padding, mode = attributes
    if mode not in BORDERS:
        hint = _OTHER_BORDERS.get(mode)
        raise ArgumentError(
            op.name, "unknown mode", got=mode, expected=", ".join(BORDERS), hint=hint
        )
    out = []
    for n, sides in zip(specs[0].shape, padding, strict=True):
        most = {"reflect": n - 1, "edge": None if n else 0}.get(mode, n)
        if most is not None and max(sides) > max(most, 0):
            raise ShapeError(
                op.name,
                "padding larger than the axis",
                got=sides,
                expected=f"at most {max(most, 0)}",
            )
        out.append(n + sum(sides))
    return [tuple(out)]


def _image_last(op: Op, shape: Shape) -> None:
    if len(shape) < 3:
        expected = "(…, channels, height, width)"
        raise ShapeError(op.name, "x is no image", got=shape, expected=expected)


def pixel_shuffle(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """(…, C / f², H·f, W·f)."""
    _image_last(op, specs[0].shape)
    (factor,) = attributes
    *lead, c, h, w = specs[0].shape
    if factor < 1 or c % factor**2:
        expected = "channels divisible by factor²"
        raise ShapeError(
            op.name, "no such factor", got=f"{c} channels, factor {factor}", expected=expected
        )
    return [(*lead, c // factor**2, h * factor, w * factor)]


def pixel_unshuffle(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """(…, C·f², H / f, W / f)."""
    _image_last(op, specs[0].shape)
    (factor,) = attributes
    *lead, c, h, w = specs[0].shape
    if factor < 1 or h % factor or w % factor:
        expected = "height and width divisible by factor"
        raise ShapeError(
            op.name, "no such factor", got=f"{(h, w)}, factor {factor}", expected=expected
        )
    return [(*lead, c * factor**2, h // factor, w // factor)]


def unfold(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """(N, C·kh·kw, L)."""
    kernel, stride, padding, dilation = attributes
    windowed(op, specs[0], 2)
    n, c, *size = specs[0].shape
    height, width = window_sizes(op.name, tuple(size), kernel, stride, padding, dilation)
    return [(n, c * kernel[0] * kernel[1], height * width)]


def prepare_rot90(specs: Specs, attributes: Attributes, backend: Backend) -> Attributes:
    """The two axes, counted from the front."""
    del backend
    k, axes = attributes
    places = tuple(normalize_axis(i, "rot90", len(specs[0].shape), "axes") for i in axes)
    if len(places) != 2 or places[0] == places[1]:
        raise ShapeError("rot90", "not two axes", got=axes, expected="two that differ")
    return k, places


def rot90(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """The two axes change places where it turns once, or three times."""
    del op
    k, (first, second) = attributes
    out = list(specs[0].shape)
    if k % 2:
        out[first], out[second] = out[second], out[first]
    return [tuple(out)]


def prepare_unflatten(specs: Specs, attributes: Attributes, backend: Backend) -> Attributes:
    """Fill the size that is -1."""
    del backend
    axis, sizes = attributes
    n, known = specs[0].shape[axis], prod(m for m in sizes if m != -1)
    if sizes.count(-1) == 1 and known:
        sizes = tuple(n // known if m == -1 else m for m in sizes)
    if prod(sizes) != n or any(m < 0 for m in sizes):
        expected = f"sizes whose product is {n}"
        raise ShapeError("unflatten", "sizes do not fit", got=attributes[1], expected=expected)
    return axis, sizes


def unflatten(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """The sizes in the place of the axis."""
    del op
    axis, sizes = attributes
    shape = specs[0].shape
    return [(*shape[:axis], *sizes, *shape[axis + 1 :])]


def border(n: int, before: int, after: int, mode: str) -> Any:
    """From where each element of an axis with margins comes."""
    places = np.arange(-before, n + after)
    for part in (places[: max(before, 0)], places[max(before + n, 0) :]):
        part[:] = _inside(part, n, mode)
    return places


def _inside(places: Any, n: int, mode: str) -> Any:
    """The places of an axis that stand for those outside of it."""
    if mode == "circular":
        return places % n
    if mode == "edge":
        return np.clip(places, 0, n - 1)
    twice = 0 if mode == "reflect" else 1
    low = np.where(places < 0, -places - twice, places)
    return np.where(low >= n, 2 * (n - 1) + twice - low, low)


def shuffled(shape: Any, factor: int) -> tuple[int, ...]:
    """The shape after ``pixel_shuffle``."""
    *lead, c, h, w = shape
    return *lead, c // factor**2, h * factor, w * factor


def unshuffled(shape: Any, factor: int) -> tuple[int, ...]:
    """The shape after ``pixel_unshuffle``."""
    *lead, c, h, w = shape
    return *lead, c * factor**2, h // factor, w // factor
