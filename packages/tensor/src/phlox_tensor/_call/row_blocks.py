"""Large tensors by blocks of rows, so that results in between take little memory."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, Final

from .._values.tensor import Tensor

# So many truths stay in a cache between two ops. More parts are more calls; 16 took no longer than
# all at once (two threads, elements of 1, 2, 4 and 8 bytes, 2**22 to 2**26 of them).
_ELEMENTS: Final = 1 << 20
_MOST: Final = 16
# Elements of a tensor that makes two parts.
LARGE: Final = 2 * _ELEMENTS
# Results of all parts take no more than truths of all elements, where so many make one.
_LEAST: Final = 64


def parts_of(x: Tensor[Any], axis: Sequence[int]) -> Sequence[Tensor[Any]]:
    """Parts of a tensor along one of the axes that are reduced; itself where it is small."""
    sizes = [x.shape[i] for i in axis]
    count = min(_MOST, x.size // _ELEMENTS, max(sizes, default=0))
    if count < 2 or prod(sizes) < _LEAST:
        return (x,)
    return x.chunk(count, axis=next(i for i in axis if x.shape[i] >= count))
