"""Convolutions of lines (N, C, L) and volumes (N, C, D, H, W), made of those of images."""

from __future__ import annotations

from functools import partial
from typing import Any

from .._errors.classes import ShapeError
from .._op.records import case, refusal
from .._values.tensor import Tensor
from ..reference import convolution_nd as ref
from ..shapes import convolution as shapes
from ..shapes._window import sizes
from . import convolution, movement
from ._families import window
from ._windows import PADDED_WEIGHT

_declared = partial(window.formula, unpromised=PADDED_WEIGHT, ulp=16, atol=32, method=False)
_conv = partial(_declared, numpy=ref.conv, shape=shapes.conv, work=shapes.conv_work)
_transposed = partial(
    _declared,
    numpy=ref.conv_transpose,
    shape=shapes.conv_transpose,
    work=shapes.conv_transpose_work,
)


def _flat(x: Tensor) -> Tensor:
    """Lines as images of one row."""
    return x.expand_dims(axis=2)


def _row(items: Any) -> Any:
    """An attribute of lines as that of images of one row."""
    return ((0, 0) if isinstance(items[0], tuple) else 1, *items)


@_conv(
    "x: Float, weight: Float, bias: Float?; stride: Single = 1, padding: SingleSides = 0, "
    "dilation: Single = 1, groups: int = 1 -> Float",
    cases=(
        case((2, 3, 5), (2, 3, 3), (2,), padding=1),
        case((1, 4, 6), (2, 2, 3), None, stride=2, padding=(1, 0), groups=2),
        case((2, 2, 9), (2, 2, 3), (2,), dilation=2),
        case((0, 3, 5), (2, 3, 3), None),
    ),
    refuses=(
        refusal(ShapeError, (1, 3, 4), (2, 2, 3), None),
        refusal(ShapeError, (1, 2, 2), (2, 2, 3), None),
    ),
    example="pt.conv1d(pt.asarray([[[1.0, 2.0, 3.0, 4.0]]]), pt.asarray([[[1.0, -1.0]]]))",
    doc="Cross-correlation of lines (N, C, L) with weight (out, C / groups, k); padding is one "
    "number or (before, after).",
)
def conv1d(x: Tensor, weight: Tensor, bias: Tensor | None, *how: Any) -> Tensor:
    stride, padding, dilation, groups = how
    how = (_row(stride), _row(padding), _row(dilation), groups)
    return convolution.conv2d(_flat(x), _flat(weight), bias, *how).squeeze(2)


def _slabs(x: Tensor, weight: Tensor, depth: Any, size: int) -> tuple[Tensor, Tensor]:
    """Volumes as images: what lies under the window along the depth is beside the channels."""
    stride, (before, after), dilation = depth
    k, n, channels = weight.shape[2], x.shape[0], x.shape[1]
    if before or after:
        x = x.pad(((before, after), (0, 0), (0, 0)), 0.0)
    shape = (n, channels, size, *x.shape[3:])
    steps = (1, 1, stride, 1, 1)
    parts = [
        movement.slice_(x, (0, 0, i * dilation, 0, 0), shape, steps).permute_dims((0, 2, 1, 3, 4))
        for i in range(k)
    ]
    images = movement.stack(parts, axis=3)  # (N, D', C, k, H, W)
    wide = images.reshape((n * size, channels * k, *shape[3:]))
    return wide, weight.reshape((weight.shape[0], weight.shape[1] * k, *weight.shape[3:]))


@_conv(
    "x: Float, weight: Float, bias: Float?; stride: Triple = 1, padding: TripleSides = 0, "
    "dilation: Triple = 1, groups: int = 1 -> Float",
    cases=(
        case((2, 2, 3, 2, 2), (2, 2, 2, 2, 2), (2,), padding=1),
        case(
            (1, 2, 4, 3, 3), (2, 1, 2, 2, 1), None, stride=(2, 1, 2),
            padding=((1, 0), (0, 1), (0, 0)), groups=2,
        ),
        case((1, 1, 4, 3, 2), (1, 1, 2, 2, 2), (1,), dilation=(3, 2, 1)),
        case((0, 1, 2, 2, 2), (1, 1, 2, 1, 1), None),
    ),
    refuses=(
        refusal(ShapeError, (1, 3, 4, 4, 4), (2, 2, 3, 3, 3), None),
    ),
    example="pt.conv3d(pt.ones((1, 1, 2, 2, 3)), pt.ones((1, 1, 2, 2, 2)))",
    doc="Cross-correlation of volumes (N, C, D, H, W) with weight (out, C / groups, kd, kh, kw).",
)  # fmt: skip
def conv3d(x: Tensor, weight: Tensor, bias: Tensor | None, *how: Any) -> Tensor:
    stride, padding, dilation, groups = how
    n, out = x.shape[0], weight.shape[0]
    size = sizes("conv3d", x.shape[2:], weight.shape[2:], stride, padding, dilation)
    images, kernels = _slabs(x, weight, (stride[0], padding[0], dilation[0]), size[0])
    how = (stride[1:], padding[1:], dilation[1:], groups)
    y = convolution.conv2d(images, kernels, bias, *how)
    return y.reshape((n, size[0], out, *size[1:])).permute_dims((0, 2, 1, 3, 4))


@_transposed(
    "x: Float, weight: Float, bias: Float?; stride: Single = 1, padding: SingleSides = 0, "
    "output_padding: SingleExtra = 0, *, dilation: Single = 1, groups: int = 1 -> Float",
    rounded=0.5,  # the formula rounds before it adds the bias
    cases=(
        case((2, 3, 3), (3, 2, 3), (2,), stride=2, padding=1, output_padding=1),
        case((1, 4, 3), (4, 3, 2), None, stride=3, groups=2),
        case((2, 2, 5), (2, 2, 3), (2,), padding=(1, 0), dilation=2),
        case((0, 3, 2), (3, 2, 2), None),
    ),
    refuses=(refusal(ShapeError, (1, 3, 4), (2, 2, 3), None),),
    example=(
        "pt.conv_transpose1d(pt.asarray([[[1.0, 2.0]]]), pt.asarray([[[1.0, 0.5]]]), stride=2)"
    ),
    doc="Transposed convolution of lines (N, C, L) with weight (C, out / groups, k).",
)
def conv_transpose1d(x: Tensor, weight: Tensor, bias: Tensor | None, *how: Any) -> Tensor:
    stride, padding, output_padding, dilation, groups = how
    how = (_row(stride), _row(padding), (0, *output_padding), _row(dilation), groups)
    return convolution.conv_transpose2d(_flat(x), _flat(weight), bias, *how).squeeze(2)


@_transposed(
    "x: Float, weight: Float, bias: Float?; stride: Triple = 1, padding: TripleSides = 0, "
    "output_padding: TripleExtra = 0, *, dilation: Triple = 1, groups: int = 1 -> Float",
    cases=(
        case((1, 2, 3, 2, 2), (2, 2, 3, 2, 2), (2,), stride=2, padding=1, output_padding=1),
        case(
            (1, 2, 2, 3, 2), (2, 1, 2, 1, 2), None, stride=(1, 2, 1),
            padding=((1, 0), (0, 0), (0, 1)), dilation=(2, 1, 1), groups=2,
        ),
        case((0, 1, 2, 2, 2), (1, 2, 2, 1, 1), None),
    ),
    refuses=(
        refusal(ShapeError, (1, 3, 4, 4, 4), (2, 2, 3, 3, 3), None),
    ),
    example="pt.conv_transpose3d(pt.asarray([[[[[1.0, 2.0]]]]]), pt.ones((1, 1, 1, 1, 2)))",
    doc="Transposed convolution of volumes (N, C, D, H, W) with weight "
    "(C, out / groups, kd, kh, kw).",
)  # fmt: skip
def conv_transpose3d(x: Tensor, weight: Tensor, bias: Tensor | None, *how: Any) -> Tensor:
    """Images to images for each place along the depth; what they give is added there."""
    stride, padding, output_padding, dilation, groups = how
    (n, channels, depth), k = x.shape[:3], weight.shape[2]
    out = weight.shape[1] * groups
    wide = x.to_full_precision().permute_dims((0, 2, 1, 3, 4))
    images = wide.reshape((n * depth, channels, *x.shape[3:]))
    kernels = weight.to_full_precision()
    kernels = kernels.reshape((channels, weight.shape[1] * k, *weight.shape[3:]))
    how = (stride[1:], padding[1:], output_padding[1:], dilation[1:], groups)
    y = convolution.conv_transpose2d(images, kernels, None, *how)
    size = y.shape[2:]
    y = y.reshape((n, depth, out, k, *size)).permute_dims((3, 0, 2, 1, 4, 5))
    (low, high), extra = padding[0], output_padding[0]
    whole = (depth - 1) * stride[0] + dilation[0] * (k - 1) + 1 + extra
    starts = [v for i in range(k) for v in (0, 0, i * dilation[0], 0, 0)]
    steps = (1, 1, stride[0], 1, 1) * k
    parts = list(movement.unstack(y, axis=0))
    sums = movement.add_slices(parts, (n, out, whole, *size), tuple(starts), steps)
    sums = sums[:, :, low : whole - high]
    if bias is not None:
        sums = sums + bias.to_full_precision().reshape((-1, 1, 1, 1))
    return sums.astype(x.dtype)
