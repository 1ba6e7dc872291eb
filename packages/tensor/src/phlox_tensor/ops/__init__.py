"""All ops by name, and the functions that declare further ones."""

from . import (
    activation,
    binary,
    contraction,
    creation,
    interpolation,
    movement,
    reduction,
    rows,
    step,
    unary,
)
from ._families import elementwise

__all__ = [
    "activation",
    "binary",
    "contraction",
    "creation",
    "elementwise",
    "interpolation",
    "movement",
    "reduction",
    "rows",
    "step",
    "unary",
]
