"""All ops by name, ``ops.exp(x)``, and the functions that declare further ones.

The modules of this package declare the ops, one family each. Where a family and an op share a name,
the attribute is the op.
"""

from typing import Any as _Any

from .._op.declaration import REGISTRY as _REGISTRY
from .._op.declaration import Op as _Op
from . import activation as activation
from . import binary as binary
from . import blocks as blocks
from . import collective as collective
from . import contraction as contraction
from . import convolution as convolution
from . import convolution_nd as convolution_nd
from . import creation as creation
from . import factorization as factorization
from . import gathering as gathering
from . import indexing as indexing
from . import interpolation as interpolation
from . import matrices as matrices
from . import movement as movement
from . import piecewise as piecewise
from . import pooling as pooling
from . import pooling_nd as pooling_nd
from . import quantization as quantization
from . import random as random
from . import rearrangement as rearrangement
from . import recurrence as recurrence
from . import recurrence_backward as recurrence_backward
from . import reduction as reduction
from . import repetition as repetition
from . import rows as rows
from . import sampling as sampling
from . import scan as scan
from . import selection as selection
from . import signal as signal
from . import special as special
from . import statistics as statistics
from . import step as step
from . import unary as unary
from ._families import elementwise as _elementwise
from .attention import attention as attention
from .sort import sort_ as sort  # noqa: F401 - the op, in the place of its module


def elementwise(name: str, signature: str, *, doc: str, **fields: _Any) -> _Op:
    """Declare an op that acts on each element alone; operands broadcast.

    Args:
        name: the one spelling of the op, lower case.
        signature: such as ``"x: Float -> Float"`` or ``"x: Num; slope: float = 0.01 -> Num"``.
        doc: one sentence, then formula and special cases.
        fields: further fields of ``Op``: ``numpy=``, ``expand=``, ``domain=``, ``ulp=``.

    Raises:
        ValueError: when the name is taken or the signature does not parse.
    """
    return _elementwise(name, signature, doc=doc, **fields)


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
