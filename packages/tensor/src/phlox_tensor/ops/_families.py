"""The classes of ops, each of which declares ops: ``row("softmax", …)``, ``@row.formula(…)``.

``collective``, ``contraction``, ``factorization``, ``indexing``, ``movement``, ``quantization``,
``row``, ``step``, ``transform``, ``view`` and ``window`` ops bring a shape rule and test cases of
their own; the other classes have them for all.
"""

from __future__ import annotations

from typing import Final

from .._op.declaration import OpClass
from ..shapes._broadcast import elementwise as broadcast
from ..shapes._equal import same
from ..shapes.creation import from_attribute
from ..shapes.reduction import reduction as reduced
from ._cases import broadcasting, casts, lines, reductions, wrong_axes, wrong_shapes

cast: Final = OpClass("cast", same, casts, diagonal=True, memory_bound=True, takes_numbers=True)
collective: Final = OpClass("collective", no_numbers=True)
contraction: Final = OpClass("contraction", checking=True, contracts=True)
creation: Final = OpClass("creation", from_attribute, memory_bound=True)
elementwise: Final = OpClass(
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
factorization: Final = OpClass("factorization", hosted=True, matrices=True)
indexing: Final = OpClass("indexing", moves=True)
movement: Final = OpClass("movement", moves=True)
quantization: Final = OpClass("quantization", memory_bound=True)
random: Final = OpClass("random", from_attribute)
reduction: Final = OpClass("reduction", reduced, reductions, reduces=True, refuses=wrong_axes)
row: Final = OpClass("row", lines=True, memory_bound=True)
scan: Final = OpClass("scan", same, lines, lines=True, refuses=wrong_axes)
search: Final = OpClass("search")
sort: Final = OpClass("sort", same, lines, lines=True, orders=True, refuses=wrong_axes)
step: Final = OpClass("step")
transform: Final = OpClass("transform", hosted=True, lines=True)
view: Final = OpClass("view", memory_bound=True, moves=True)
# A view whose entries may read the index themselves, so that a slice costs one call.
view_by_index: Final = OpClass("view", checking=True, memory_bound=True, moves=True)
window: Final = OpClass("window", weights=frozenset({"bias", "weight"}), windows=True)
