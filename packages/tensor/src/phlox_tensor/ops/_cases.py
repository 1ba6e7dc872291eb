"""Test cases that a class makes up for its ops: operand shapes and attributes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from .._errors.classes import ShapeError
from .._op.declaration import Op
from .._op.records import Case, Refusal, refusal
from .._op.signature import REQUIRED
from .._values.dtype import DTYPES
from .._values.kinds import KIND_SETS

UNARY_SHAPES: Final = ((), (3,), (2, 3), (4, 1, 5), (0, 3), (67,), (33, 70))
BINARY_SHAPES: Final = (
    ((), ()),
    ((2, 3), (2, 3)),
    ((2, 3), (3,)),
    ((4, 1), (1, 5)),
    ((), (3,)),
    ((2, 3, 4), (3, 1)),
    ((0, 3), (1, 3)),
    ((33, 70), (33, 70)),
    ((40, 65), (40, 1)),
)
REDUCTION_CASES: Final = (
    ((5,), None),
    ((3, 4), 0),
    ((3, 4), -1),
    ((2, 3, 4), (0, 2)),
    ((2, 3, 4), 1),
    ((), None),
    ((3, 0, 2), (0, 2)),
    ((130, 65), 0),
    ((65, 130), 1),
    ((37, 130), None),
)
LINE_CASES: Final = (
    ((7,), 0),
    ((3, 4), 0),
    ((3, 4), -1),
    ((2, 3, 4), 1),
    ((3, 70), 1),
    ((2, 0), 1),
)


def casts(op: Op) -> Iterator[Case]:
    """To every element type."""
    del op
    for name in sorted(DTYPES):
        yield Case(((3, 5),), {"dtype": DTYPES[name]})


def broadcasting(op: Op) -> Iterator[Case]:
    """Shapes for one operand, and shapes that broadcast for several."""
    count = len(op.signature.operands)
    if count == 1:
        yield from (Case((shape,), {}) for shape in UNARY_SHAPES)
    for a, b in BINARY_SHAPES:
        if count == 2:
            yield Case((a, b), {})
        elif count > 2:
            yield Case((a, b, a), {})


def reductions(op: Op) -> Iterator[Case]:
    """One axis, several and all, kept or not."""
    single = any(a.type == "Axis?" for a in op.signature.attributes)
    for shape, axis in REDUCTION_CASES:
        if single and isinstance(axis, tuple):
            continue
        for keepdims in (False, True):
            yield Case((shape,), {"axis": axis, "keepdims": keepdims})
    if "dtype" in op.attribute_names:
        yield from in_types()


def lines(op: Op) -> Iterator[Case]:
    """Along an axis, in both directions where the op has them."""
    for shape, axis in LINE_CASES:
        yield Case((shape,), {"axis": axis})
        if "descending" in op.attribute_names:
            yield Case((shape,), {"axis": axis, "descending": True})
    if "dtype" in op.attribute_names:
        yield from in_types()


def in_types() -> Iterator[Case]:
    """Numbers along an axis, in every type of the result."""
    for name in sorted(DTYPES):
        if DTYPES[name].kind in KIND_SETS["Num"]:
            for shape, axis in (((5,), 0), ((3, 70), 1), ((70, 3), 0), ((2, 0), 1)):
                yield Case((shape,), {"axis": axis, "dtype": DTYPES[name]})


def wrong_shapes(op: Op) -> Iterator[Refusal]:
    """Operands that do not broadcast."""
    count = len(op.signature.operands)
    if count > 1:
        yield refusal(ShapeError, (2, 3), *[(4,)] * (count - 1))


def wrong_axes(op: Op) -> Iterator[Refusal]:
    """Axes that are not there."""
    single = len(op.signature.operands) == 1
    if single and all(a.default is not REQUIRED for a in op.signature.attributes):
        yield refusal(ShapeError, (2, 3), axis=2)
        yield refusal(ShapeError, (2, 3), axis=-3)
