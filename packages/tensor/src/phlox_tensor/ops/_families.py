"""The classes of ops, and one function per class to declare an op of it.

``collective``, ``contraction``, ``factorization``, ``indexing``, ``movement``, ``quantization``,
``row``, ``step``, ``transform``, ``view`` and ``window`` ops bring a shape rule and test cases of
their own; the other classes have them for all.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from .._op.declaration import Op, OpClass, declare
from ..shapes._broadcast import elementwise as broadcast
from ..shapes._equal import same
from ..shapes.creation import from_attribute
from ..shapes.reduction import reduction as reduced
from ._cases import broadcasting, casts, lines, reductions, wrong_axes, wrong_shapes

CAST: Final = OpClass("cast", same, casts, diagonal=True, memory_bound=True, takes_numbers=True)
COLLECTIVE: Final = OpClass("collective")
CONTRACTION: Final = OpClass("contraction", checking=True, contracts=True)
CREATION: Final = OpClass("creation", from_attribute, memory_bound=True)
ELEMENTWISE: Final = OpClass(
    "elementwise",
    broadcast,
    broadcasting,
    broadcasts=True,
    checking=True,
    diagonal=True,
    memory_bound=True,
    refuses=wrong_shapes,
    takes_numbers=True,
)
FACTORIZATION: Final = OpClass("factorization", hosted=True, matrices=True)
INDEXING: Final = OpClass("indexing", moves=True)
MOVEMENT: Final = OpClass("movement", moves=True)
QUANTIZATION: Final = OpClass("quantization", memory_bound=True)
RANDOM: Final = OpClass("random", from_attribute)
REDUCTION: Final = OpClass("reduction", reduced, reductions, reduces=True, refuses=wrong_axes)
ROW: Final = OpClass("row", lines=True, memory_bound=True)
SCAN: Final = OpClass("scan", same, lines, lines=True, refuses=wrong_axes)
SEARCH: Final = OpClass("search")
SORT: Final = OpClass("sort", same, lines, lines=True, orders=True, refuses=wrong_axes)
STEP: Final = OpClass("step")
TRANSFORM: Final = OpClass("transform", hosted=True, lines=True)
VIEW: Final = OpClass("view", memory_bound=True, moves=True)
# A view whose entries may read the index themselves, so that a slice costs one call.
VIEW_BY_INDEX: Final = OpClass("view", checking=True, memory_bound=True, moves=True)
WINDOW: Final = OpClass("window", weights=frozenset({"bias", "weight"}), windows=True)


def elementwise(name: str, signature: str, *, doc: str, **fields: Any) -> Op:
    """Declare an op that acts on each element alone; operands broadcast.

    Args:
        name: the one spelling of the op, lower case.
        signature: such as ``"x: Float -> Float"`` or ``"x: Num; slope: float = 0.01 -> Num"``.
        doc: one sentence, then formula and special cases.
        fields: further fields of ``Op``: ``numpy=``, ``expand=``, ``domain=``, ``ulp=``.

    Raises:
        ValueError: when the name is taken or the signature does not parse.
    """
    return declare(ELEMENTWISE, name, signature, doc=doc, **fields)


Declare = Callable[..., Op]
cast: Final[Declare] = partial(declare, CAST)
collective: Final[Declare] = partial(declare, COLLECTIVE)
contraction: Final[Declare] = partial(declare, CONTRACTION)
creation: Final[Declare] = partial(declare, CREATION)
factorization: Final[Declare] = partial(declare, FACTORIZATION)
indexing: Final[Declare] = partial(declare, INDEXING)
movement: Final[Declare] = partial(declare, MOVEMENT)
quantization: Final[Declare] = partial(declare, QUANTIZATION)
random: Final[Declare] = partial(declare, RANDOM)
reduction: Final[Declare] = partial(declare, REDUCTION)
row: Final[Declare] = partial(declare, ROW)
scan: Final[Declare] = partial(declare, SCAN)
search: Final[Declare] = partial(declare, SEARCH)
sort: Final[Declare] = partial(declare, SORT)
step: Final[Declare] = partial(declare, STEP)
transform: Final[Declare] = partial(declare, TRANSFORM)
view: Final[Declare] = partial(declare, VIEW)
view_by_index: Final[Declare] = partial(declare, VIEW_BY_INDEX)
window: Final[Declare] = partial(declare, WINDOW)
