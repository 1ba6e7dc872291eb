"""Shape rules of products."""

from __future__ import annotations

from math import prod

from .._device.backend import Backend
from .._errors.classes import ArgumentError, ShapeError
from .._op.attributes import normalize_axis
from .._op.declaration import Attributes, Op, Shape, Specs
from ._broadcast import broadcast_shapes


def matmul_integer(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """As ``matmul``, only for integers and sums of integers."""
    (dtype,) = attributes
    if dtype.kind != "Int":
        raise ArgumentError(op.name, "no integers", got=dtype, expected="such as int32")
    return matmul(op, specs, ())


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


def prepacked(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """A matrix."""
    del attributes
    shape = specs[0].shape
    if len(shape) != 2:
        raise ShapeError(op.name, "no matrix", got=shape, expected="(in, out)")
    return [shape]


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


def prepare_vecdot(specs: Specs, attributes: Attributes, backend: Backend) -> Attributes:
    """Count the axis from the end of both, which agree there."""
    del backend
    a, b = specs[0].shape, specs[1].shape
    (axis,) = attributes
    if axis >= 0 and len(a) != len(b):
        raise ShapeError(
            "vecdot",
            "axis counts from the end where ranks differ",
            got=axis,
            expected=f"{-min(len(a), len(b))} <= axis < 0",
        )
    rank = min(len(a), len(b))
    place = normalize_axis(axis, "vecdot", rank) - rank
    if a[place] != b[place]:
        raise ShapeError(
            "vecdot",
            "sizes differ along the axis",
            got=f"{a} and {b}",
            expected="equal sizes: only the other axes broadcast",
        )
    return (max(len(a), len(b)) + place,)


def vecdot(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """What both broadcast to, without the axis."""
    (axis,) = attributes
    both = broadcast_shapes((specs[0].shape, specs[1].shape), op.name)
    return [(*both[:axis], *both[axis + 1 :])]


def outer(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """(n,) and (m,) give (n, m)."""
    del attributes
    a, b = specs[0].shape, specs[1].shape
    if len(a) != 1 or len(b) != 1:
        raise ShapeError(op.name, "not two vectors", got=f"{a} and {b}", expected="(n,) and (m,)")
    return [(*a, *b)]


def prepare_tensordot(specs: Specs, attributes: Attributes, backend: Backend) -> Attributes:
    """The axes of either tensor, counted from the front."""
    del backend
    a, b = len(specs[0].shape), len(specs[1].shape)
    (axes,) = attributes
    if not isinstance(axes, int):
        pair = zip((a, b), axes, strict=True)
        left, right = (tuple(normalize_axis(i, "tensordot", n) for i in own) for n, own in pair)
        if len(left) != len(right) or len({*left}) < len(left) or len({*right}) < len(right):
            expected = "as many of either tensor, each once"
            raise ShapeError("tensordot", "axes do not pair up", got=axes, expected=expected)
        return ((left, right),)
    if not 0 <= axes <= min(a, b):
        got = f"axes {axes} of {specs[0].shape} and {specs[1].shape}"
        raise ShapeError("tensordot", "as many axes are not there", got=got)
    return ((tuple(range(a - axes, a)), tuple(range(axes))),)


def tensordot(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """The axes that are left, first those of the first."""
    ((left, right),) = attributes
    a, b = specs[0].shape, specs[1].shape
    if [a[i] for i in left] != [b[i] for i in right]:
        got = f"{a} along {left} and {b} along {right}"
        raise ShapeError(op.name, "sizes along the axes differ", got=got)
    rows = tuple(n for i, n in enumerate(a) if i not in left)
    return [rows + tuple(n for i, n in enumerate(b) if i not in right)]
