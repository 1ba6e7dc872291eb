"""Shape rules of pools."""

from __future__ import annotations

from .._device.backend import Backend
from .._errors.classes import ArgumentError
from .._op.declaration import Attributes, Op, Shape, Specs
from ._equal import cotangent
from ._window import window_sizes, windowed


def prepare_pool(specs: Specs, attributes: Attributes, backend: Backend) -> Attributes:
    """The stride is the kernel where none is given."""
    del specs, backend
    kernel, stride, padding, *rest = attributes
    for (before, after), k in zip(padding, kernel, strict=True):
        if max(before, after) > k // 2:
            raise ArgumentError(
                "pool2d", "padding too large", got=(before, after), expected=f"at most {k // 2}"
            )
    return (kernel, kernel if stride is None else stride, padding, *rest)


def max_pool2d(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """(N, C, H', W'), once for each result."""
    kernel, stride, padding, dilation, ceil_mode = attributes
    windowed(op, specs[0], 2)
    shape = specs[0].shape
    size = window_sizes(op.name, shape[2:], kernel, stride, padding, dilation, ceil_mode)
    return [(*shape[:2], *size)] * len(op.signature.results)


def avg_pool2d(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """(N, C, H', W')."""
    kernel, stride, padding, ceil_mode, _ = attributes
    windowed(op, specs[0], 2)
    shape = specs[0].shape
    size = window_sizes(op.name, shape[2:], kernel, stride, padding, (1, 1), ceil_mode)
    return [(*shape[:2], *size)]


def max_pool2d_backward(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """The shape of the input; each element of g has an index."""
    g, indices = specs
    (shape,) = attributes
    windowed(op, g, 2, "g")
    windowed(op, g._replace(shape=shape), 2, "input_shape")
    cotangent(op, g.shape, (*shape[:2], *g.shape[2:]))
    cotangent(op, indices.shape, g.shape)
    return [shape]


def avg_pool2d_backward(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """The shape of the input, from which ``avg_pool2d`` makes a result of g's shape."""
    shape, *rest = attributes
    (result,) = avg_pool2d(op, (specs[0]._replace(shape=shape),), tuple(rest))
    cotangent(op, specs[0].shape, result)
    return [shape]
