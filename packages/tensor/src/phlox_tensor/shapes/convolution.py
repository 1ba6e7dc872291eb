"""Shape rules of convolutions of lines, images and volumes."""

from __future__ import annotations

from math import prod
from typing import Any

from .._errors.classes import ArgumentError, ShapeError
from .._op.declaration import Attributes, Op, Shape, Specs
from ._equal import cotangent
from ._window import sizes, windowed


def _bias(op: Op, bias: Any, out: int) -> None:
    if bias is not None and bias.shape != (out,):
        raise ShapeError(op.name, "bias does not fit", got=bias.shape, expected=(out,))


def conv(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """(N, O, *size), of as many axes as the stride has."""
    x, weight, bias = specs
    stride, padding, dilation, groups = attributes
    windowed(op, x, len(stride))
    windowed(op, weight, len(stride), "weight")
    channels, out = x.shape[1], weight.shape[0]
    if groups < 1 or channels % groups or out % groups or weight.shape[1] != channels // groups:
        raise ShapeError(
            op.name,
            "channels do not fit",
            got=f"x {x.shape}, weight {weight.shape}, groups {groups}",
            expected="weight (out, in / groups, *kernel), both divisible by groups",
            hint=_channels_last(x, weight.shape[1] * groups),
        )
    _bias(op, bias, out)
    size = sizes(op.name, x.shape[2:], weight.shape[2:], stride, padding, dilation)
    return [(x.shape[0], out, *size)]


def _channels_last(x: Any, channels: int) -> str | None:
    """What to type where the channels that a weight takes are on the last axis."""
    if x.shape[-1] != channels:
        return None
    rank = len(x.shape)
    return f"x.permute_dims{(0, rank - 1, *range(1, rank - 1))}, as channels come before places"


def conv_transpose(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """(N, O, *size)."""
    x, weight, bias = specs
    stride, padding, output_padding, dilation, groups = attributes
    windowed(op, x, len(stride))
    windowed(op, weight, len(stride), "weight")
    channels = x.shape[1]
    if groups < 1 or channels % groups or weight.shape[0] != channels:
        raise ShapeError(
            op.name,
            "channels do not fit",
            got=f"x {x.shape}, weight {weight.shape}, groups {groups}",
            expected="weight (in, out / groups, *kernel), in divisible by groups",
            hint=_channels_last(x, weight.shape[0]),
        )
    if min(*x.shape[2:], *weight.shape[2:]) < 1:
        raise ShapeError(op.name, "an empty window", got=f"x {x.shape}, weight {weight.shape}")
    out = weight.shape[1] * groups
    _bias(op, bias, out)
    size = []
    places = zip(
        x.shape[2:], weight.shape[2:], stride, padding, output_padding, dilation, strict=True
    )
    for n, k, s, sides, extra, d in places:
        if extra >= max(s, d):
            expected = f"less than the stride {s} or the dilation {d}"
            raise ArgumentError(op.name, "output_padding too large", got=extra, expected=expected)
        length = (n - 1) * s + d * (k - 1) + 1
        if length + min(extra, sides[1]) < sum(sides):
            raise ShapeError(
                op.name,
                "padding larger than the result",
                got=f"padding {sides}, result {length + extra} before it is cut",
            )
        size.append(length + extra - sum(sides))
    return [(x.shape[0], out, *size)]


def conv2d_input_grad(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """The shape of the input, from which ``conv2d`` makes a result of g's shape."""
    g, weight = specs
    shape, *rest = attributes
    (result,) = conv(op, (g._replace(shape=shape), weight, None), tuple(rest))
    cotangent(op, g.shape, result)
    return [shape]


def conv2d_weight_grad(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """The shape of the weight, with which ``conv2d`` makes a result of g's shape."""
    g, x = specs
    shape, *rest = attributes
    (result,) = conv(op, (x, g._replace(shape=shape), None), tuple(rest))
    cotangent(op, g.shape, result)
    return [shape]


def conv_work(specs: Specs, attributes: Attributes) -> int:
    """At each place of the result every weight meets one element."""
    x, weight = specs[0].shape, specs[1].shape
    stride, padding, dilation, _ = attributes
    return int(x[0]) * prod(sizes("", x[2:], weight[2:], stride, padding, dilation)) * prod(weight)


def conv2d_input_grad_work(specs: Specs, attributes: Attributes) -> int:
    """That of the convolution."""
    del attributes
    g, weight = specs[0].shape, specs[1].shape
    return int(g[0]) * prod(g[2:]) * prod(weight)


def conv2d_weight_grad_work(specs: Specs, attributes: Attributes) -> int:
    """That of the convolution."""
    g, weight = specs[0].shape, attributes[0]
    return int(g[0]) * prod(g[2:]) * prod(weight)


def conv_transpose_work(specs: Specs, attributes: Attributes) -> int:
    """At each place of x every weight meets one element."""
    del attributes
    x, weight = specs[0].shape, specs[1].shape
    return int(x[0]) * prod(x[2:]) * prod(weight)
