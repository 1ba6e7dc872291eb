"""Shape rules of convolutions."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from .._errors import ArgumentError, ShapeError
from ._equal import cotangent
from ._window import image, window_sizes

if TYPE_CHECKING:
    from .._op import Attributes, Op, Shape, Specs


def conv2d(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """(N, O, H', W')."""
    x, weight, bias = specs
    stride, padding, dilation, groups = attributes
    image(op, x)
    image(op, weight, "weight")
    channels, out = x.shape[1], weight.shape[0]
    if groups < 1 or channels % groups or out % groups or weight.shape[1] != channels // groups:
        raise ShapeError(
            op.name,
            "channels do not fit",
            got=f"x {x.shape}, weight {weight.shape}, groups {groups}",
            expected="weight (out, in / groups, kh, kw), both divisible by groups",
        )
    if bias is not None and bias.shape != (out,):
        raise ShapeError(op.name, "bias does not fit", got=bias.shape, expected=(out,))
    size = window_sizes(op.name, x.shape[2:], weight.shape[2:], stride, padding, dilation)
    return [(x.shape[0], out, *size)]


def conv2d_input_grad(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """The shape of the input, from which ``conv2d`` makes a result of g's shape."""
    g, weight = specs
    shape, *rest = attributes
    (result,) = conv2d(op, (g._replace(shape=shape), weight, None), tuple(rest))
    cotangent(op, g.shape, result)
    return [shape]


def _unwindowed(op: Op, size: Shape, kernel: Shape, attributes: Attributes) -> tuple[int, int]:
    """Height and width from which a convolution makes ``size``, plus the output padding."""
    stride, padding, output_padding, dilation, _ = attributes
    out = []
    for n, k, s, sides, extra, d in zip(
        size, kernel, stride, padding, output_padding, dilation, strict=True
    ):
        if extra >= max(s, d):
            raise ArgumentError(
                op.name,
                "output_padding too large",
                got=extra,
                expected=f"less than the stride {s} or the dilation {d}",
            )
        length = (n - 1) * s + d * (k - 1) + 1 - sum(sides)
        if length + min(extra, sides[1]) < 0:
            raise ShapeError(
                op.name,
                "padding larger than the result",
                got=f"padding {sides}, result {length + extra + sum(sides)} before it is cut",
            )
        out.append(length + extra)
    return out[0], out[1]


def conv_transpose2d(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """(N, O, H', W')."""
    x, weight, bias = specs
    groups = attributes[4]
    image(op, x)
    image(op, weight, "weight")
    channels = x.shape[1]
    if groups < 1 or channels % groups or weight.shape[0] != channels:
        raise ShapeError(
            op.name,
            "channels do not fit",
            got=f"x {x.shape}, weight {weight.shape}, groups {groups}",
            expected="weight (in, out / groups, kh, kw), in divisible by groups",
        )
    if min(*x.shape[2:], *weight.shape[2:]) < 1:
        raise ShapeError(
            op.name, "an empty window or image", got=f"x {x.shape}, weight {weight.shape}"
        )
    out = weight.shape[1] * groups
    if bias is not None and bias.shape != (out,):
        raise ShapeError(op.name, "bias does not fit", got=bias.shape, expected=(out,))
    return [(x.shape[0], out, *_unwindowed(op, x.shape[2:], weight.shape[2:], attributes))]


def conv2d_weight_grad(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """The shape of the weight, with which ``conv2d`` makes a result of g's shape."""
    g, x = specs
    shape, *rest = attributes
    (result,) = conv2d(op, (x, g._replace(shape=shape), None), tuple(rest))
    cotangent(op, g.shape, result)
    return [shape]


def conv2d_work(specs: Specs, attributes: Attributes) -> int:
    """At each place of the result every weight meets one element."""
    x, weight = specs[0].shape, specs[1].shape
    stride, padding, dilation, _ = attributes
    size = window_sizes("conv2d", x[2:], weight[2:], stride, padding, dilation)
    return int(x[0]) * prod(size) * prod(weight)


def conv2d_input_grad_work(specs: Specs, attributes: Attributes) -> int:
    """That of the convolution."""
    del attributes
    g, weight = specs[0].shape, specs[1].shape
    return int(g[0]) * prod(g[2:]) * prod(weight)


def conv2d_weight_grad_work(specs: Specs, attributes: Attributes) -> int:
    """That of the convolution."""
    g, weight = specs[0].shape, attributes[0]
    return int(g[0]) * prod(g[2:]) * prod(weight)


def conv_transpose2d_work(specs: Specs, attributes: Attributes) -> int:
    """At each place of x every weight meets one element."""
    del attributes
    x, weight = specs[0].shape, specs[1].shape
    return int(x[0]) * prod(x[2:]) * prod(weight)
