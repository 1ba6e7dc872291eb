"""Shape rules of products."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from .._errors import ArgumentError, ShapeError
from ._broadcast import broadcast_shapes

if TYPE_CHECKING:
    from .._op import Attributes, Op, Shape, Specs


def matmul(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """NumPy's rule: vectors lose their axis, batches broadcast."""
    del attributes
    a, b = specs[0].shape, specs[1].shape
    if not a or not b:
        raise ShapeError(op.name, "a 0-d operand", got=f"{a} @ {b}", hint="x * y")
    rows = a if len(a) > 1 else (1, *a)
    columns = b if len(b) > 1 else (*b, 1)
    if rows[-1] != columns[-2]:
        hint = None
        if len(b) > 1 and rows[-1] == b[-1]:
            hint = "x @ y.T" if len(b) == 2 else "x @ y.mT"
        elif len(a) > 1 and a[-2] == columns[-2]:
            hint = "x.T @ y" if len(a) == 2 else "x.mT @ y"
        raise ShapeError(
            op.name,
            "inner sizes differ",
            got=f"{a} @ {b}",
            expected="(…, n, k) @ (…, k, m)",
            hint=hint,
        )
    batch = broadcast_shapes((rows[:-2], columns[:-2]), op.name)
    return [batch + a[-2:-1] * (len(a) > 1) + b[-1:] * (len(b) > 1)]


def linear(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """(…, in) times (in, out), plus (out,)."""
    del attributes
    x, weight, bias = specs
    if not x.shape or len(weight.shape) != 2 or x.shape[-1] != weight.shape[0]:
        raise ShapeError(
            op.name,
            "inner sizes differ",
            got=f"x {x.shape}, weight {weight.shape}",
            expected="x (…, in), weight (in, out)",
        )
    out = weight.shape[1]
    if bias is not None and bias.shape != (out,):
        raise ShapeError(op.name, "bias does not fit", got=bias.shape, expected=(out,))
    return [(*x.shape[:-1], out)]


ACTIVATIONS = ("gelu", "none", "relu")


def fused_linear(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """That of ``linear``; the residual has it too."""
    activation = attributes[0]
    if activation not in ACTIVATIONS:
        expected = ", ".join(ACTIVATIONS)
        raise ArgumentError(op.name, "unknown activation", got=activation, expected=expected)
    *operands, residual = specs
    (shape,) = linear(op, operands, attributes)
    if residual is not None and residual.shape != shape:
        raise ShapeError(op.name, "residual does not fit", got=residual.shape, expected=shape)
    return [shape]


def matmul_work(specs: Specs, attributes: Attributes) -> int:
    """Each element of the result adds up as many products as the inner size."""
    del attributes
    a, b = specs[0].shape, specs[1].shape
    batch = broadcast_shapes((a[:-2], b[:-2]), "matmul")
    return prod(batch) * prod(a[-2:]) * (b[-1] if len(b) > 1 else 1)


def linear_work(specs: Specs, attributes: Attributes) -> int:
    """Each element of x meets each column of weight."""
    del attributes
    return prod(specs[0].shape) * int(specs[1].shape[1])
