"""Collectives: sums and rows of all processes; a device of one process gives back its operand.

``Distributed(device, group)`` runs them over its group. Derivatives are those of the sum of the
losses of all ranks.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from .._errors.classes import ArgumentError, ShapeError
from .._groups.group import warn_alone
from .._op.records import case, refusal
from .._values.tensor import Tensor
from ..shapes import collective as shapes
from ..shapes._equal import same
from ._families import collective


def _itself(x: Tensor, *attributes: Any) -> Tensor:
    del attributes
    warn_alone("collective")
    return x


_CASES = (case((2, 3)), case(()), case((0, 2)))
_op: Final = partial(collective, expand=_itself, linear=True)

all_reduce = _op(
    "all_reduce",
    "x: Num -> Num",
    shape=same,
    cases=_CASES,
    method=False,
    example="pt.all_reduce(pt.asarray([1.0, 2.0]))",
    doc="The sum over all processes, on each of them; x itself where there is one. It is added in "
    "the order of a binary tree.",
)
all_gather = _op(
    "all_gather",
    "x: Any; axis: Axis = 0, ranks: int = 0 -> Any",
    shape=shapes.all_gather,
    prepare=shapes.prepare_ranks,
    cases=(case((2, 3)), case((2, 3), axis=-1), case((0, 2))),
    refuses=(
        refusal(ShapeError, ()),
        refusal(ShapeError, (2,), axis=1),
        refusal(ArgumentError, (2,), ranks=2),
    ),
    method=False,
    example="pt.all_gather(pt.asarray([1.0, 2.0]))",
    doc="Equal shares of all processes, one behind the other along an axis; x itself where there "
    "is one. ``ranks`` is their number, which the device tells.",
)
reduce_scatter = _op(
    "reduce_scatter",
    "x: Num; axis: Axis = 0, ranks: int = 0 -> Num",
    shape=shapes.reduce_scatter,
    prepare=shapes.prepare_ranks,
    cases=(case((2, 3)), case((2, 3), axis=-1), case((0, 2))),
    refuses=(refusal(ShapeError, ()), refusal(ArgumentError, (2,), ranks=2)),
    method=False,
    example="pt.reduce_scatter(pt.asarray([1.0, 2.0]))",
    doc="The sum over all processes, of which each gets its share along an axis; x itself where "
    "there is one. ``ranks`` is their number, which the device tells.",
)
broadcast = _op(
    "broadcast",
    "x: Any; root: int = 0 -> Any",
    shape=same,
    prepare=shapes.prepare_root,
    cases=_CASES,
    refuses=(refusal(ArgumentError, (2,), root=1),),
    method=False,
    example="pt.broadcast(pt.asarray([1.0, 2.0]))",
    doc="The x of process ``root``, on all of them. Shapes, which do not travel, are equal. "
    "``broadcast_to`` is what changes a shape.",
)
broadcast_backward = _op(
    "broadcast_backward",
    "g: Num; root: int = 0 -> Num",
    shape=same,
    prepare=shapes.prepare_root,
    cases=_CASES,
    internal=True,
    doc="The cotangent of ``broadcast``: the sum over all processes on ``root``, 0 elsewhere.",
)
