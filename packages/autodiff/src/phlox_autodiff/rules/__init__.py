"""The derivative of every op that has one of its own: a row for each, by family.

How rows are written is said in ``phlox_autodiff._rule``.
"""

from typing import Final

from .._rule import Rule, Second
from . import (
    _few,
    activation,
    binary,
    blocks,
    contraction,
    convolution,
    factorization,
    indexing,
    movement,
    piecewise,
    pooling,
    quantization,
    recurrence,
    reduction,
    rows,
    signal,
    unary,
)

_FAMILIES: Final = (
    _few, activation, binary, blocks, contraction, convolution, factorization, indexing, movement,
    piecewise, pooling, quantization, recurrence, reduction, rows, signal, unary,
)  # fmt: skip
TABLES: Final = tuple(family.RULES for family in _FAMILIES)
RULES: Final[dict[str, Rule]] = {name: row for table in TABLES for name, row in table.items()}
# Second lines, for forward mode: of ops whose rule does not say how tangents move, which are not
# declared linear, and which have no expansion to follow.
SECOND: Final[dict[str, Second]] = {
    **convolution.FORWARD,
    **indexing.FORWARD,
    **movement.FORWARD,
    **pooling.FORWARD,
}

__all__ = ["RULES", "SECOND", "TABLES"]
