"""Convolutions."""

from __future__ import annotations

from typing import Any

from .._errors.classes import ArgumentError, ShapeError
from .._op.records import case, refusal
from .._values.tensor import Tensor
from ..reference import convolution as ref
from ..shapes import convolution as shapes
from ..shapes._window import window_sizes
from . import movement
from ._families import window
from ._windows import PADDED_COTANGENT, PADDED_WEIGHT, Pair, Sides, added, padded, views

_CONV = "stride: Pair = 1, padding: Sides = 0, dilation: Pair = 1, groups: int = 1"


def _grouped(x: Tensor, groups: int) -> Tensor:
    """(N, C, H, W) as (N, groups, C / groups, H·W)."""
    n, c, height, width = x.shape
    return x.reshape((n, groups, c // groups, height * width))


def _over_batch(x: Tensor) -> Tensor:
    """(N, groups, C, size) as (groups, C, N·size)."""
    n, groups, channels, size = x.shape
    return x.permute_dims((1, 2, 0, 3)).reshape((groups, channels, n * size))


def _weights(weight: Tensor, groups: int) -> list[Tensor]:
    """For each place of the window (groups, out / groups, in / groups)."""
    out, channels, height, width = weight.shape
    parts = weight.to_full_precision().reshape((groups, out // groups, channels, height * width))
    return [parts[..., i] for i in range(height * width)]


@window.formula(
    f"x: Float, weight: Float, bias: Float?; {_CONV} -> Float",
    numpy=ref.conv2d,
    shape=shapes.conv,
    work=shapes.conv_work,
    unpromised=PADDED_WEIGHT,
    ulp=16,
    atol=32,
    cases=(
        case((2, 3, 7, 6), (4, 3, 3, 3), (4,), padding=1),
        case((1, 4, 8, 8), (6, 2, 3, 2), None, stride=2, padding=((1, 0), (0, 2)), groups=2),
        case((2, 3, 9, 9), (2, 3, 3, 3), (2,), dilation=2),
        case((2, 4, 5, 5), (4, 1, 3, 3), None, padding=1, groups=4),
        case((2, 5, 4, 4), (3, 5, 1, 1), (3,)),
        case((0, 3, 5, 5), (2, 3, 3, 3), (2,)),
    ),
    refuses=(
        refusal(ShapeError, (1, 3, 4, 4), (2, 2, 3, 3), None),
        refusal(ShapeError, (1, 2, 4, 4), (2, 2, 3, 3), (3,)),
        refusal(ShapeError, (1, 2, 4, 4), (2, 2, 5, 3), None),
        refusal(ArgumentError, (1, 2, 4, 4), (2, 2, 3, 3), None, stride=0),
        refusal(ShapeError, (1, 4, 4, 4), (3, 2, 3, 3), None, groups=2),
        refusal(ShapeError, (2, 4, 4), (2, 2, 3, 3), None),
    ),
    method=False,
    example=(
        "pt.conv2d(pt.asarray([[[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]]]), pt.ones((1, 1, 2, 2)))"
    ),
    doc="Cross-correlation of images (N, C, H, W) with weight (out, C / groups, kh, kw).",
)
def conv2d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Pair,
    padding: Sides,
    dilation: Pair,
    groups: int,
) -> Tensor:
    kernel: Pair = weight.shape[2:]  # type: ignore[assignment]
    size = window_sizes("conv2d", x.shape[2:], kernel, stride, padding, dilation)
    images = padded(x.to_full_precision(), padding, 0.0)
    y = images.zeros((x.shape[0], groups, weight.shape[0] // groups, size[0] * size[1]))
    seen = views(images, kernel, stride, dilation, size)
    for part, view in zip(_weights(weight, groups), seen, strict=True):
        y = y + part @ _grouped(view, groups)
    y = y.reshape((x.shape[0], weight.shape[0], *size))
    if bias is not None:
        y = y + bias.to_full_precision().reshape((-1, 1, 1))
    return y.astype(x.dtype)


@window.formula(
    f"g: Float, weight: Float; input_shape: Shape, {_CONV} -> Float",
    numpy=ref.conv2d_input_grad,
    shape=shapes.conv2d_input_grad,
    multilinear=True,
    work=shapes.conv2d_input_grad_work,
    unpromised=PADDED_WEIGHT,
    ulp=16,
    atol=32,
    cases=(
        case((2, 4, 7, 6), (4, 3, 3, 3), input_shape=(2, 3, 7, 6), padding=1),
        case(
            (1, 6, 4, 4),
            (6, 2, 3, 2),
            input_shape=(1, 4, 8, 8),
            stride=2,
            padding=((1, 0), (0, 1)),
            groups=2,
        ),
        case((2, 4, 5, 5), (4, 1, 3, 3), input_shape=(2, 4, 5, 5), padding=1, groups=4),
        case((2, 2, 5, 5), (2, 3, 3, 3), input_shape=(2, 3, 9, 9), dilation=2),
        case((2, 3, 4, 4), (3, 5, 1, 1), input_shape=(2, 5, 4, 4)),
    ),
    internal=True,
    doc="Cotangent of ``conv2d`` for its input: the transposed convolution.",
)
def conv2d_input_grad(
    g: Tensor,
    weight: Tensor,
    input_shape: tuple[int, ...],
    stride: Pair,
    padding: Sides,
    dilation: Pair,
    groups: int,
) -> Tensor:
    wide = _grouped(g.to_full_precision(), groups)
    shape = (g.shape[0], input_shape[1], *g.shape[2:])
    parts = [(part.mT @ wide).reshape(shape) for part in _weights(weight, groups)]
    kernel: Pair = weight.shape[2:]  # type: ignore[assignment]
    return added(parts, input_shape, padding, kernel, stride, dilation).astype(g.dtype)


@window.formula(
    f"g: Float, x: Float; weight_shape: Shape, {_CONV} -> Float",
    numpy=ref.conv2d_weight_grad,
    shape=shapes.conv2d_weight_grad,
    multilinear=True,
    work=shapes.conv2d_weight_grad_work,
    unpromised=PADDED_COTANGENT,
    ulp=32,
    atol=64,
    cases=(
        case((2, 4, 7, 6), (2, 3, 7, 6), weight_shape=(4, 3, 3, 3), padding=1),
        case(
            (1, 6, 4, 4),
            (1, 4, 8, 8),
            weight_shape=(6, 2, 3, 2),
            stride=2,
            padding=((1, 0), (0, 1)),
            groups=2,
        ),
        case((2, 4, 5, 5), (2, 4, 5, 5), weight_shape=(4, 1, 3, 3), padding=1, groups=4),
        case((2, 2, 5, 5), (2, 3, 9, 9), weight_shape=(2, 3, 3, 3), dilation=2),
        case((2, 3, 4, 4), (2, 5, 4, 4), weight_shape=(3, 5, 1, 1)),
    ),
    internal=True,
    doc="Cotangent of ``conv2d`` for its weight.",
)
def conv2d_weight_grad(
    g: Tensor,
    x: Tensor,
    weight_shape: tuple[int, ...],
    stride: Pair,
    padding: Sides,
    dilation: Pair,
    groups: int,
) -> Tensor:
    wide = _over_batch(_grouped(g.to_full_precision(), groups))
    images = padded(x.to_full_precision(), padding, 0.0)
    kernel: Pair = weight_shape[2:]  # type: ignore[assignment]
    size: Pair = g.shape[2:]  # type: ignore[assignment]
    shape = (*weight_shape[:2], 1)
    parts = [
        (wide @ _over_batch(_grouped(view, groups)).mT).reshape(shape)
        for view in views(images, kernel, stride, dilation, size)
    ]
    return movement.concat(parts, axis=2).reshape(weight_shape).astype(x.dtype)


def transposed_padding(padding: Any, extra: Any) -> tuple[tuple[tuple[int, int], ...], list[int]]:
    """Padding of the convolution after a transposed one, and how many zeros follow it."""
    cuts = [min(more, high) for (_, high), more in zip(padding, extra, strict=True)]
    sides = tuple((low, high - cut) for (low, high), cut in zip(padding, cuts, strict=True))
    return sides, [more - cut for more, cut in zip(extra, cuts, strict=True)]


@window.formula(
    "x: Float, weight: Float, bias: Float?; stride: Pair = 1, padding: Sides = 0, "
    "output_padding: Extra = 0, *, dilation: Pair = 1, groups: int = 1 -> Float",
    numpy=ref.conv_transpose2d,
    shape=shapes.conv_transpose,
    work=shapes.conv_transpose_work,
    unpromised=PADDED_WEIGHT,
    ulp=16,
    atol=32,
    rounded=1,  # the formula rounds before it adds the bias
    cases=(
        case((2, 3, 4, 5), (3, 4, 3, 3), (4,), stride=2, padding=1, output_padding=1),
        case((1, 4, 3, 4), (4, 3, 2, 3), None, stride=(3, 2), output_padding=(2, 0), groups=2),
        case((2, 3, 5, 5), (3, 2, 3, 3), (2,), padding=((1, 0), (2, 1)), dilation=2),
        case((2, 3, 3, 3), (3, 2, 2, 2), (2,), padding=2, output_padding=1, dilation=3),
        case((1, 4, 4, 4), (4, 1, 3, 3), (4,), stride=2, groups=4),
        case((2, 5, 3, 3), (5, 2, 1, 1), None),
        case((0, 3, 2, 2), (3, 2, 2, 2), (2,)),
    ),
    refuses=(
        refusal(ShapeError, (1, 3, 4, 4), (2, 2, 3, 3), None),
        refusal(ArgumentError, (1, 2, 4, 4), (2, 2, 3, 3), None, stride=2, output_padding=2),
    ),
    method=False,
    example="pt.conv_transpose2d(pt.asarray([[[[1.0, 2.0]]]]), pt.ones((1, 1, 2, 2)))",
    doc="Transposed convolution of images (N, C, H, W) with weight (C, out / groups, kh, kw): each "
    "element adds its weighted kernel to the result, which has height ``(H - 1)·stride - top - "
    "bottom + dilation·(kh - 1) + output_padding + 1``.",
)
def conv_transpose2d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Any,
    padding: Any,
    output_padding: Any,
    dilation: Any,
    groups: int,
) -> Tensor:
    """The adjoint of a convolution whose padding at the end is cut by the output padding."""
    sides, missing = transposed_padding(padding, output_padding)
    size = [
        (n - 1) * s + d * (k - 1) + 1 - low - high
        for n, k, s, (low, high), d in zip(
            x.shape[2:], weight.shape[2:], stride, sides, dilation, strict=True
        )
    ]
    shape = (x.shape[0], weight.shape[1] * groups, *size)
    out = conv2d_input_grad(x, weight, shape, stride, sides, dilation, groups)
    if any(missing):
        out = out.pad(tuple((0, after) for after in missing), 0.0)
    return out if bias is None else out + bias.reshape((-1, 1, 1))
