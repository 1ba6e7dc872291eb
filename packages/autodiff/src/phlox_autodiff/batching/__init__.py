"""Batching rules: how an op runs once for all lanes of ``vmap``.

A class of ops has one rule, told by its properties. An op that needs more has a row in the file of
its family; an op without either follows its expansion. A rule is a function from a ``Call`` to the
results with the lanes along their first axis, or None for a case that it leaves to the expansion.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from phlox_tensor import Op

from .._lanes import LanesRule, NoLanes
from . import _few, attention, contraction, convolution, indexing, movement, random
from ._classes import class_rule

TABLES: Final[tuple[Mapping[str, LanesRule | NoLanes], ...]] = tuple(
    family.LANES
    for family in (_few, attention, contraction, convolution, indexing, movement, random)
)
LANES: Final[dict[str, LanesRule | NoLanes]] = {
    name: row for table in TABLES for name, row in table.items()
}


def lanes_rule(op: Op) -> LanesRule | NoLanes | None:
    """The rule of an op: its own row, else that of its class, else None."""
    return LANES.get(op.name) or class_rule(op)


def batching_kind(op: Op) -> str:
    """How an op runs over the lanes of ``vmap``.

    Returns:
        ``"rule"`` for a row of its own, ``"class"`` for the rule of its class, ``"expansion"``, or
        ``"none: reason"``.

    Example:
        >>> from phlox_tensor import REGISTRY
        >>> batching_kind(REGISTRY["tanh"]), batching_kind(REGISTRY["matmul"])
        ('class', 'rule')
    """
    rule = LANES.get(op.name)
    if isinstance(rule, NoLanes):
        return f"none: {rule.reason}"
    if rule is not None:
        return "rule"
    if not op.signature.operands or class_rule(op) is not None:
        return "class"
    return "expansion" if op.expand is not None else "none: no rule and no expansion"
