"""Images in another size."""

from __future__ import annotations

from functools import reduce
from operator import add
from typing import Any

from .._data.conversion import asarray
from .._errors.classes import ArgumentError, ShapeError
from .._op.records import case, refusal
from .._values.kinds import Int
from .._values.tensor import Tensor
from ..reference import interpolation as ref
from ..shapes import _taps as places
from ..shapes import interpolation as shapes
from ._families import window

Tap = tuple[Tensor[Int], Tensor]

_CANCEL = "elements of weight 0 are multiplied or left out, and sums come in any order"
_HOW = "mode: str = 'nearest', align_corners: bool = True"


def _taps(x: Tensor, axis: int, n: int, count: int, *how: Any) -> list[Tap]:
    """For each tap the positions along an axis of n, and weights that broadcast along it."""
    positions, weights = places.taps(n, count, *how)
    shape = (count, *(1 for _ in range(3 - axis)))
    return [
        (
            asarray(position, dtype=x.device.default_int, device=x.device),
            asarray(weight.reshape(shape), dtype=x.dtype, device=x.device),
        )
        for position, weight in zip(positions.T, weights.T, strict=True)
    ]


@window.formula(
    f"x: Float; size: Pair, {_HOW} -> Float",
    numpy=ref.interpolate2d,
    shape=shapes.interpolate2d,
    linear=True,
    unpromised={"x": _CANCEL},
    ulp=8,
    atol=16,
    cases=(
        case((2, 3, 4, 5), size=(8, 10)),
        case((1, 2, 7, 6), size=(3, 9)),
        case((2, 3, 4, 5), size=(8, 10), mode="bilinear"),
        case((2, 3, 4, 5), size=(8, 10), mode="bilinear", align_corners=False),
        case((1, 2, 9, 7), size=(4, 1), mode="bilinear"),
        case((1, 2, 9, 7), size=(4, 20), mode="bilinear", align_corners=False),
        case((2, 2, 4, 5), size=(8, 10), mode="bicubic"),
        case((2, 2, 4, 5), size=(8, 10), mode="bicubic", align_corners=False),
        case((1, 2, 9, 2), size=(4, 5), mode="bicubic", align_corners=False),
        case((1, 1, 1, 1), size=(2, 3), mode="bicubic"),
        case((0, 2, 3, 3), size=(2, 2), mode="bilinear"),
    ),
    refuses=(
        refusal(ShapeError, (1, 1, 2), size=2),
        refusal(ArgumentError, (1, 1, 2, 2), size=2, mode="round"),
    ),
    method=False,
    example="pt.interpolate2d(pt.asarray([[[[1.0, 3.0]]]]), (2, 4))",
    doc="Images (N, C, H, W) in another size: the nearest pixel, ``floor(i·H / H')``, or a "
    "weighted sum of 2 x 2 (bilinear) or 4 x 4 (bicubic, Keys with a = -0.75) around each place. "
    "With align_corners the corner pixels keep their places, else the corners of the images do; "
    "nearest does not look at it. Pixels beyond the edge are those of the edge. Sampling is as in "
    "PyTorch's ``interpolate``, whose align_corners is False by default; here it is True, and in "
    "``interpolate`` False.",
)
def interpolate2d(x: Tensor, size: tuple[int, int], mode: str, align_corners: bool) -> Tensor:
    out = x.to_full_precision()
    for axis in (3, 2):
        taps = _taps(out, axis, x.shape[axis], size[axis - 2], mode, align_corners)
        terms = [out.take(position, axis=axis) * weight for position, weight in taps]
        out = sum(terms[1:], terms[0])
    return out.astype(x.dtype)


@window.formula(
    f"g: Float; input_shape: Shape, {_HOW} -> Float",
    numpy=ref.interpolate2d_backward,
    shape=shapes.interpolate2d_backward,
    linear=True,
    unpromised={"g": _CANCEL},
    ulp=16,
    atol=32,
    cases=(
        case((2, 3, 8, 10), input_shape=(2, 3, 4, 5)),
        case((1, 2, 3, 9), input_shape=(1, 2, 7, 6)),
        case((2, 3, 8, 10), input_shape=(2, 3, 4, 5), mode="bilinear"),
        case((2, 3, 8, 10), input_shape=(2, 3, 4, 5), mode="bilinear", align_corners=False),
        case((1, 2, 4, 1), input_shape=(1, 2, 9, 7), mode="bilinear"),
        case((2, 2, 8, 10), input_shape=(2, 2, 4, 5), mode="bicubic"),
        case((1, 2, 4, 5), input_shape=(1, 2, 9, 2), mode="bicubic", align_corners=False),
        case((0, 2, 3, 3), input_shape=(0, 2, 2, 2), mode="bilinear"),
    ),
    internal=True,
    doc="Cotangent of ``interpolate2d``: each g goes to the pixels that it was read from.",
)
def interpolate2d_backward(
    g: Tensor, input_shape: tuple[int, ...], mode: str, align_corners: bool
) -> Tensor:
    out = g.to_full_precision()
    for axis in (2, 3):
        taps = _taps(out, axis, input_shape[axis], g.shape[axis], mode, align_corners)
        shape = tuple(input_shape[i] if i == axis else n for i, n in enumerate(out.shape))
        sums = out.zeros(shape)
        for position, weight in taps:
            sums = sums.index_add(position, out * weight, axis=axis)
        out = sums
    return out.astype(g.dtype)


# What ``interpolate2d`` calls the modes that it has.
_IMAGE_MODES = {"cubic": "bicubic", "linear": "bilinear", "nearest": "nearest"}


def _as_images(x: Tensor, attributes: tuple[Any, ...]) -> tuple[str, bool] | None:
    """How ``interpolate2d`` says it, if it has this way between the elements."""
    size, mode, coordinates, scale, rounding, a, antialias, exclude, _, _ = attributes
    if not 1 <= len(size) <= 2 or 0 in size or x.size == 0 or scale or antialias or exclude:
        return None
    if mode == "nearest":
        return ("nearest", False) if (coordinates, rounding) == ("asymmetric", "floor") else None
    if mode not in _IMAGE_MODES or (mode == "cubic" and a != places.CUBIC):
        return None
    half = coordinates == "half_pixel" or (coordinates == "pytorch_half_pixel" and 1 not in size)
    if coordinates == "align_corners" or half:
        return _IMAGE_MODES[mode], not half
    return None


@window.formula(
    "x: Float; size: Shape, mode: str = 'linear', coordinates: str = 'half_pixel', "
    "scale: Floats = (), rounding: str = 'round_prefer_floor', "
    "cubic_coefficient: float = -0.75, antialias: bool = False, exclude_outside: bool = False, "
    "region: Floats = (), fill_value: float = 0.0 -> Float",
    numpy=ref.resize,
    shape=shapes.resize,
    unpromised={"x": _CANCEL},
    ulp=16,
    atol=16,
    cases=(
        case((5,), size=(7,)),
        case((2, 5), size=(3,), mode="nearest", rounding="ceil"),
        case((2, 4, 5), size=(3, 7), mode="cubic", cubic_coefficient=-0.5),
        case((1, 2, 7), size=(3,), mode="cubic", antialias=True, exclude_outside=True),
        case((2, 7), size=(4,), antialias=True, coordinates="half_pixel_symmetric", scale=(0.6,)),
        case((1, 6), size=(1,), coordinates="pytorch_half_pixel"),
        case((3, 4), size=(5, 3), coordinates="align_corners", mode="lanczos3"),
        case((2, 3, 4), size=(5, 6), coordinates="asymmetric", scale=(1.7, 1.5)),
        case((4,), size=(6,), coordinates="align_corners", scale=(1.7,)),
        case(
            (4, 5), size=(3, 6), coordinates="tf_crop_and_resize", region=(0.2, -0.3, 1.2, 0.8),
            fill_value=1.5,
        ),
        case((2, 3), size=(4, 2), mode="nearest", coordinates="tf_half_pixel_for_nn"),
        case((2, 3), size=(0, 2)),
        case((2, 2, 2, 2), size=(3, 2, 3, 2)),
    ),
    refuses=(
        refusal(ShapeError, (2,), size=(2, 2)),
        refusal(ArgumentError, (2,), size=(3,), mode="round"),
        refusal(ArgumentError, (2,), size=(3,), coordinates="middle"),
    ),
    method=False,
    example="pt.resize(pt.asarray([[[1.0, 3.0]]]), (4,))",
    doc="The last axes in another size, axis by axis, in the words of ONNX's Resize. ``mode``: "
    "nearest, linear, cubic (Keys, with ``cubic_coefficient`` as a) or lanczos3. ``coordinates`` "
    "says where results lie between the elements: half_pixel, half_pixel_symmetric, "
    "pytorch_half_pixel, align_corners, asymmetric, tf_half_pixel_for_nn, or tf_crop_and_resize, "
    "which reads ``region`` (all starts, then all ends, of 1) and puts ``fill_value`` where that "
    "is outside. ``rounding`` of nearest: round_prefer_floor, round_prefer_ceil, floor or ceil. "
    "``scale``: sizes over sizes where they are not those of the shapes. ``antialias`` widens "
    "filters where the tensor shrinks. Elements beyond the edge are those of the edge, or without "
    "weight under ``exclude_outside``.",
)  # fmt: skip
def resize(x: Tensor, *attributes: Any) -> Tensor:
    size, fill = attributes[0], attributes[-1]
    images = _as_images(x, attributes)
    if images:
        height, width = (1, *size)[-2:]
        planes = x.reshape((-1, 1, *(1, *x.shape[x.ndim - len(size) :])[-2:]))
        resized: Tensor = interpolate2d(planes, (height, width), *images)
        return resized.reshape((*x.shape[: x.ndim - len(size)], *size))
    out, outside = x.to_full_precision(), None
    for axis, (positions, weights, beyond) in reversed(list(places.lines(x.shape, attributes))):
        behind = (len(positions), *(1 for _ in range(x.ndim - 1 - axis)))
        taps = [
            out.take(asarray(at, dtype=x.device.default_int, device=x.device), axis=axis)
            * asarray(weight.reshape(behind), dtype=out.dtype, device=x.device)
            for at, weight in zip(positions.T, weights.T, strict=True)
            if weight.any() or not weight.size
        ]
        out = reduce(add, taps)
        if beyond.any():
            here = asarray(beyond.reshape(behind), device=x.device)
            outside = here if outside is None else outside | here
    return (out if outside is None else outside.where(fill, out)).astype(x.dtype)


@window.formula(
    "x: Float; size: Shape, mode: str = 'nearest', align_corners: bool = False, "
    "antialias: bool = False -> Float",
    numpy=ref.interpolate,
    shape=shapes.interpolate,
    linear=True,
    unpromised={"x": _CANCEL},
    ulp=16,
    atol=16,
    cases=(
        case((1, 2, 5), size=(7,), mode="linear"),
        case((1, 2, 5), size=(3,), mode="nearest_exact"),
        case((1, 1, 7), size=(3,), mode="cubic", antialias=True),
        case((1, 1, 7), size=(4,), mode="lanczos3", antialias=True),
        case((1, 1, 4), size=(6,), mode="lanczos3"),
        case((1, 1, 3, 4), size=(5, 3), mode="linear"),
        case((1, 1, 5, 6), size=(3, 2), mode="linear", antialias=True),
        case((1, 1, 2, 3, 2), size=(3, 2, 3), mode="linear", align_corners=True),
        case((1, 1, 2, 3, 2), size=(3, 2, 3)),
    ),
    refuses=(
        refusal(ShapeError, (1, 1, 2), size=(2, 2)),
        refusal(ArgumentError, (1, 1, 2), size=(2,), mode="round"),
        refusal(ShapeError, (1, 1, 0), size=(2,)),
    ),
    method=False,
    example="pt.interpolate(pt.asarray([[[1.0, 3.0]]]), (4,), mode='linear')",
    doc="Lines, images or volumes (N, C, *axes) in another size, axis by axis. ``mode``: nearest "
    "(``floor(i·n / size)``), nearest_exact (the pixel around the middle), linear, cubic (Keys "
    "with a = -0.75) or lanczos3. ``antialias`` widens the filter when the tensor shrinks (cubic "
    "has a = -0.5 then), as Pillow does. Sampling is as in PyTorch's ``interpolate``, and "
    "align_corners is False by default as there; in ``interpolate2d`` it is True.",
)
def interpolate(x: Tensor, *attributes: Any) -> Tensor:
    return resize(x, *places.as_resize(*attributes))
