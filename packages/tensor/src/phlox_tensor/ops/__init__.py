"""All ops by name, ``ops.exp(x)``, and the functions that declare further ones.

The modules of this package declare the ops, one family each. Where a family and an op share a name,
the attribute is the op.
"""

from __future__ import annotations

from .._op.declaration import REGISTRY as _REGISTRY
from .._op.declaration import Op as _Op
from . import (
    activation,
    binary,
    collective,
    contraction,
    convolution,
    convolution_nd,
    creation,
    factorization,
    gathering,
    indexing,
    interpolation,
    matrices,
    movement,
    piecewise,
    pooling,
    pooling_nd,
    quantization,
    random,
    rearrangement,
    recurrence,
    recurrence_backward,
    reduction,
    repetition,
    rows,
    sampling,
    scan,
    selection,
    signal,
    special,
    statistics,
    step,
    unary,
)
from ._families import elementwise
from .attention import attention
from .sort import sort_ as sort

__all__ = [
    "activation",
    "attention",
    "binary",
    "collective",
    "contraction",
    "convolution",
    "convolution_nd",
    "creation",
    "elementwise",
    "factorization",
    "gathering",
    "indexing",
    "interpolation",
    "matrices",
    "movement",
    "piecewise",
    "pooling",
    "pooling_nd",
    "quantization",
    "random",
    "rearrangement",
    "recurrence",
    "recurrence_backward",
    "reduction",
    "repetition",
    "rows",
    "sampling",
    "scan",
    "selection",
    "signal",
    "sort",
    "special",
    "statistics",
    "step",
    "unary",
]


def __getattr__(name: str) -> _Op:
    """Return the op of this name, also one that was declared later."""
    op = _REGISTRY.get(name)
    if op is not None:
        return op
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .._elsewhere.spellings import unknown_name  # noqa: PLC0415 - only a failing call needs it

    raise unknown_name(name, __name__, "px.ops", __dir__())


def __dir__() -> list[str]:
    """Every op, and the functions that declare further ones."""
    return sorted({*_REGISTRY, "elementwise"})
