"""Shape rules of interpolation."""

from __future__ import annotations

from math import isfinite
from typing import Any

from .._errors.classes import ArgumentError, ShapeError
from .._op.declaration import Attributes, Op, Shape, Specs
from ._window import IMAGE_RANK

MODES = ("bicubic", "bilinear", "nearest")
# What ``interpolate`` calls them.
_OF_ANY_RANK = {"cubic": "bicubic", "linear": "bilinear"}


def _check(op: Op, shape: Shape, size: Shape, mode: str) -> None:
    """An image with something to read from where something is written."""
    if mode not in MODES:
        hint = f'mode="{_OF_ANY_RANK[mode]}"' if mode in _OF_ANY_RANK else None
        expected = ", ".join(MODES)
        raise ArgumentError(op.name, "unknown mode", got=mode, expected=expected, hint=hint)
    if len(shape) != IMAGE_RANK or len(size) != 2:
        raise ShapeError(
            op.name,
            "not a batch of images",
            got=shape,
            expected="(batch, channels, height, width)",
            hint="x[None] for a single image",
        )
    if 0 in shape[2:]:
        raise ShapeError(op.name, "no pixels to read", got=shape, expected="height, width >= 1")


def interpolate2d(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """(N, C, *size)."""
    size, mode, _ = attributes
    shape = specs[0].shape
    _check(op, shape, size, mode)
    return [(*shape[:2], *size)]


def interpolate2d_backward(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """The shape of the input; g has its batch and channels."""
    shape, mode, _ = attributes
    g = specs[0].shape
    _check(op, shape, g[2:], mode)
    if g[:2] != shape[:2]:
        raise ShapeError(
            op.name,
            "the cotangent does not have the shape of the result",
            got=g,
            expected=f"({shape[0]}, {shape[1]}, height, width)",
        )
    return [shape]


FILTERS = ("cubic", "lanczos3", "linear", "nearest", "nearest_exact")
# What PyTorch calls them, by the number of axes.
_OTHER = {
    "bicubic": "cubic", "bilinear": "linear", "nearest-exact": "nearest_exact",
    "trilinear": "linear",
}  # fmt: skip


def interpolate(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """(N, C, *size)."""
    size, mode, align_corners, antialias = attributes
    shape = specs[0].shape
    if mode not in FILTERS:
        hint = f'mode="{_OTHER[mode]}"' if mode in _OTHER else None
        expected = ", ".join(FILTERS)
        raise ArgumentError(op.name, "unknown mode", got=mode, expected=expected, hint=hint)
    if mode.startswith("nearest") and (antialias or align_corners):
        raise ArgumentError(
            op.name, f"{mode} has no weights", got="align_corners or antialias", expected="neither"
        )
    if antialias and align_corners:
        raise ArgumentError(
            op.name, "antialias keeps the edges in place", got="align_corners", expected="False"
        )
    if len(shape) < 3 or len(size) != len(shape) - 2 or min(size) < 1 or 0 in shape[2:]:
        raise ShapeError(
            op.name,
            "size does not fit x",
            got=f"x {shape}, size {size}",
            expected="(batch, channels, *axes), and a size of 1 or more for each of the axes",
            hint=f"size={size * (len(shape) - 2)}" if len(size) == 1 and len(shape) > 3 else None,
        )
    return [(*shape[:2], *size)]


RESIZE_MODES = ("cubic", "lanczos3", "linear", "nearest")
COORDINATES = (
    "align_corners", "asymmetric", "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel",
    "tf_crop_and_resize", "tf_half_pixel_for_nn",
)  # fmt: skip
ROUNDINGS = ("ceil", "floor", "round_prefer_ceil", "round_prefer_floor")
_CROP = "tf_crop_and_resize"


def _one_of(op: Op, name: str, got: str, words: tuple[str, ...]) -> None:
    if got not in words:
        raise ArgumentError(op.name, f"unknown {name}", got=got, expected=", ".join(words))


def _check_use(op: Op, values: dict[str, Any]) -> None:
    """What is given has to change something."""
    mode, crop = values["mode"], values["coordinates"] == _CROP
    idle = {
        "antialias": mode == "nearest" and values["antialias"],
        "cubic_coefficient": mode != "cubic" and values["cubic_coefficient"] != -0.75,
        "exclude_outside": mode == "nearest" and values["exclude_outside"],
        "fill_value": not crop and values["fill_value"] != 0,
        "region": not crop and bool(values["region"]),
        "rounding": mode != "nearest" and values["rounding"] != "round_prefer_floor",
    }
    for name in (name for name, unused in idle.items() if unused):
        how = f'coordinates="{_CROP}"' if name in ("fill_value", "region") else "another mode"
        got = f"mode {mode!r}, coordinates {values['coordinates']!r}, {name} {values[name]!r}"
        raise ArgumentError(op.name, f"{name} would do nothing", got=got, expected=how)


def _check_numbers(op: Op, shape: Shape, values: dict[str, Any]) -> None:
    size, scale, region = values["size"], values["scale"], values["region"]
    if scale and len(scale) != len(size):
        raise ArgumentError(op.name, "not one scale for each axis", got=scale, expected=len(size))
    for n, count, factor in zip(shape[len(shape) - len(size) :], size, scale, strict=False):
        if not count - 0.75 <= n * factor <= count + 1:
            raise ArgumentError(
                op.name,
                "scale does not lead to size",
                got=f"{n} elements times {factor}, size {count}",
                expected="their product, rounded",
            )
    if region and (len(region) != 2 * len(size) or not all(map(isfinite, region))):
        expected = f"{len(size)} starts, then {len(size)} ends"
        raise ArgumentError(op.name, "region does not fit", got=region, expected=expected)
    if not isfinite(values["cubic_coefficient"]):
        got = values["cubic_coefficient"]
        raise ArgumentError(op.name, "no such cubic", got=got, expected="a finite number")


def resize(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """(…, *size)."""
    values = dict(zip(op.attribute_names, attributes, strict=True))
    shape, size = specs[0].shape, values["size"]
    _one_of(op, "mode", values["mode"], RESIZE_MODES)
    _one_of(op, "coordinates", values["coordinates"], COORDINATES)
    _one_of(op, "rounding", values["rounding"], ROUNDINGS)
    kept = len(shape) - len(size)
    if kept < 0 or any(n < 0 for n in size) or 0 in shape[kept:]:
        raise ShapeError(
            op.name,
            "size does not fit x",
            got=f"x {shape}, size {size}",
            expected="a size for each of the last axes, which have elements",
        )
    _check_use(op, values)
    _check_numbers(op, shape, values)
    return [(*shape[:kept], *size)]
