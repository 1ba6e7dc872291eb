"""All ops by name, and the functions that declare further ones."""

from . import (
    activation,
    attention,
    binary,
    contraction,
    convolution,
    creation,
    indexing,
    interpolation,
    movement,
    pooling,
    random,
    reduction,
    rows,
    scan,
    sort,
    step,
    unary,
)
from ._families import elementwise

__all__ = [
    "activation",
    "attention",
    "binary",
    "contraction",
    "convolution",
    "creation",
    "elementwise",
    "indexing",
    "interpolation",
    "movement",
    "pooling",
    "random",
    "reduction",
    "rows",
    "scan",
    "sort",
    "step",
    "unary",
]
