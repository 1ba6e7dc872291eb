"""What an op would give: shapes by its shape rule, element types by one rule for all ops.

For backends of one's own too, which make results of their operands' types and of others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ._op.declaration import Op, Spec, reserve
from ._values.dtype import DType, bool_
from ._values.number import Scalar

Dtypes = Sequence[DType | None]  # one per operand; None for an absent one, a number, an empty list


def infer_prepared(
    op: Op, operands: Sequence[Any], attributes: tuple[Any, ...], default_int: DType
) -> tuple[Spec, ...]:
    """Return what the results would be, from operands and attributes as entries get them.

    Args:
        op: the op.
        operands: a Spec for each; a number or None where entries get that, a tuple where many.
        attributes: normalized, one for each that the op declares.
        default_int: the type of indices and counts.

    Returns:
        One Spec per result. A size of -1 is one that only the values tell.

    Raises:
        ShapeError: shapes that do not fit.
    """
    specs = [None if isinstance(x, Scalar) else x for x in operands]
    shapes = [tuple(shape) for shape in op.shape(op, specs, attributes)]
    dtypes = [dtype_of(x) for x in specs]
    first = op.signature.results[0]
    results = [first] * len(shapes) if first.variadic else op.signature.results
    return tuple(
        Spec(shape, result_dtype(op, result.kind, dtypes, attributes, default_int))
        for shape, result in zip(shapes, results, strict=True)
    )


def dtype_of(operand: Any) -> DType | None:
    """Return the element type of what stands for an operand: a Spec, a tuple of them or None."""
    if isinstance(operand, tuple) and not isinstance(operand, Spec):
        operand = operand[0] if operand else None
    return None if operand is None else operand.dtype


def result_dtype(
    op: Op, kind: str, dtypes: Dtypes, attributes: tuple[Any, ...], default_int: DType
) -> DType:
    """Return the element type of a result of the declared ``kind``.

    That is the attribute ``dtype``, where the op has one; else the type of the operands of the
    same declared kind, which have one by then; else, of an op that takes Int in the default float
    type, theirs; else Bool, or for Int the default.
    """
    if "dtype" in op.attribute_names:
        return attributes[op.attribute_names.index("dtype")]
    for operand, dtype in zip(op.signature.operands, dtypes, strict=True):
        if dtype is not None and (
            operand.kind == kind or (dtype.kind == kind and op.signature.divides)
        ):
            return dtype
    return bool_ if kind == "Bool" else default_int


def _untyped(op: Op) -> str | None:
    """Why the element type of a result would not follow from the declaration, or None."""
    given = {o.kind for o in op.signature.operands if not o.optional}
    for result in op.signature.results:
        follows = result.kind in given or result.kind in ("Bool", "Int")
        if not (follows or "dtype" in op.attribute_names or op.signature.divides):
            return (
                f"op {op.name!r}: nothing says the element type of its {result.kind} result; "
                f"an operand of that kind or an attribute dtype: DType would"
            )
    return None


reserve(_untyped)
