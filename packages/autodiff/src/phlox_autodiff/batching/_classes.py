"""Batching rules of whole classes of ops, chosen by the properties of the class."""

from __future__ import annotations

from math import prod
from typing import Any, Final

from phlox_tensor import Op, Spec, Tensor

from .._lanes import Call, LanesRule

_SIZES: Final = "input_shape"
# What all sequences of a recurrence have in common.
_SHARED: Final = frozenset({"bias", "weight"})


def elementwise(call: Call) -> Any:
    """Line the axes up after the lanes, and broadcast."""
    rank = max(len(call.shape(i)) for i in range(len(call.operands)))
    given = [
        call.full(i, rank) if mapped and len(call.shape(i)) < rank else operand
        for i, (operand, mapped) in enumerate(zip(call.operands, call.mapped, strict=True))
    ]
    return call.run(*given)


def along_axis(call: Call) -> Any:
    """Every axis is one further; without an axis a lane is flattened."""
    rank = len(call.shape(0))
    given = [call.full(i) for i in range(len(call.operands))]
    axis = call.attribute("axis")
    if axis is not None:
        moved = axis + 1 if isinstance(axis, int) else tuple(i + 1 for i in axis)
        return call.run(*given, attributes=call.replaced(axis=moved))
    flat = [x.reshape((call.size, prod(x.shape[1:]))) for x in given]
    out = call.run(*flat, attributes=call.replaced(axis=1))
    if "keepdims" in call.op.attribute_names and call.attribute("keepdims"):
        return out.reshape((call.size, *(1,) * rank))
    return out


def images(call: Call) -> Any:
    """Lanes of images are more images: the lanes are counted along the axis of the batch."""
    given = in_batch(call, call.op.op_class.weights)
    if given is None:
        return None
    attributes = call.attributes
    if _SIZES in call.op.attribute_names:
        count, *rest = call.attribute(_SIZES)
        attributes = call.replaced(**{_SIZES: (call.size * count, *rest)})
    specs = [Spec(x.shape, x.dtype) if isinstance(x, Tensor) else x for x in given]
    shapes = call.op.shape(call.op, specs, attributes)
    if any(not s or s[0] != given[0].shape[0] for s in shapes):
        return None  # a result that is no image, such as the gradient of a weight
    out = call.run(*given, attributes=attributes)
    return unfolded(out, call.size)


def in_batch(call: Call, weights: frozenset[str]) -> list[Any] | None:
    """The operands with lanes along the axis of the batch.

    None where lanes differ in weights, and where none are: nothing would tell the batch of one.
    """
    names = [operand.name for operand in call.op.signature.operands]
    if not call.size or any(
        m for name, m in zip(names, call.mapped, strict=True) if name in weights
    ):
        return None
    return [
        operand if name in weights else folded(call.full(i))
        for i, (name, operand) in enumerate(zip(names, call.operands, strict=True))
    ]


def sequences(call: Call) -> Any:
    """Lanes of recurrences are more sequences, where all share the weights."""
    given = in_batch(call, _SHARED)
    return None if given is None else unfolded(call.run(*given), call.size)


def first_only(call: Call) -> Any:
    """Lanes of the first operand are more rows, where all share the others."""
    return call.run(*call.operands) if call.only(0) else None


def leading(call: Call) -> Any:
    """The op works on the last axes, so lanes stay in front."""
    return call.run(call.full(0))


def folded(x: Any) -> Any:
    """(lanes, N, …) as (lanes · N, …)."""
    return x.reshape((x.shape[0] * x.shape[1], *x.shape[2:])) if isinstance(x, Tensor) else x


def unfolded(out: Any, size: int) -> Any:
    """(lanes · N, …) as (lanes, N, …)."""
    if isinstance(out, tuple):
        return tuple(unfolded(each, size) for each in out)
    return out.reshape((size, out.shape[0] // size, *out.shape[1:]))


def matrices(call: Call) -> Any:
    """Lanes are a further axis in front of the batches, which have to line up."""
    rank = max(len(call.shape(i)) for i in range(len(call.operands)))
    return each_as_its_lane(call, [call.full(i, rank) for i in range(len(call.operands))])


def each_as_its_lane(call: Call, given: list[Any]) -> Any:
    """What the op gives for operands of many lanes, the axes of a lane as they are in one."""
    out = call.run(*given)
    if not isinstance(out, tuple):
        return out
    # A result of a single operand has no axes that lined this one up with the others.
    specs = [
        Spec(call.shape(i), x.dtype) if isinstance(x, Tensor) else x
        for i, x in enumerate(call.operands)
    ]
    shapes = call.op.shape(call.op, specs, call.attributes)
    return tuple(x.reshape((call.size, *lane)) for x, lane in zip(out, shapes, strict=True))


def class_rule(op: Op) -> LanesRule | None:
    """The rule that the properties of its class give an op, if they do."""
    op_class, operands = op.op_class, op.signature.operands
    if any(operand.variadic for operand in operands):
        return None
    if op_class.broadcasts or (op_class.diagonal and len(operands) == 1):
        return elementwise
    if op_class.matrices:
        return matrices
    types = {a.name: a.type for a in op.signature.attributes}
    if op_class.reduces and len(operands) == 1 and types.get("axis", "").startswith("Ax"):
        return along_axis
    if op_class.lines and types.get("axis", "").startswith("Axis"):
        return along_axis
    if op_class.windows and operands[0].name not in op_class.weights:
        return images
    return None
