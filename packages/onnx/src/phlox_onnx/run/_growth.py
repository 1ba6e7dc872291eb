"""Results that grow with numbers in a file: how large they are is known before they are made."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import isfinite, prod
from typing import Any, Final

import numpy as np

import phlox_tensor as px
from phlox_tensor import Meta, PhloxError, Tensor

from .._errors import RAW, OnnxError
from .._graph import Node

META: Final = Meta()
# Attributes that say how many, but not how large.
_COUNTS: Final = frozenset(("axis", "dtype", "group", "seed", "to"))
_MOST: Final = 64  # sizes, paddings and bounds are short lists


def factor(attributes: dict[str, Any]) -> float:
    """How much larger than the inputs a result may be, by the attributes: never too little."""
    out = 1.0
    for name, value in attributes.items():
        if name not in _COUNTS and isinstance(value, int | tuple):
            out *= _product(value if isinstance(value, tuple) else (value,))
    return out


def bound(values: Iterable[Any]) -> float:
    """The same, by the inputs: their elements, and the numbers among them that are sizes."""
    out, largest = 1.0, 1
    for value in values:
        if isinstance(value, Tensor):
            largest = max(largest, prod(value.shape))
        elif isinstance(value, np.ndarray):
            largest = max(largest, value.size)
            if value.size <= _MOST and value.dtype.kind in "iuf":
                out *= _product(value.reshape(-1).tolist())
    return out * largest


def _product(numbers: Iterable[Any]) -> float:
    """Steps may be small, and sizes large; what is neither number nor finite may be anything."""
    out = 1.0
    for n in numbers:
        if isinstance(n, int | float) and n:
            out *= max(abs(n), 1 / abs(n)) if isfinite(n) else 1e300
    return out


def meta_of(value: Any) -> Any:
    """A tensor as one without data; anything else as it is."""
    if isinstance(value, Tensor):
        return px.zeros(value.shape, dtype=value.dtype, device=META)
    return value


def refuse_large(run: Callable[[], tuple[Any, ...]], node: Node, most: int) -> None:
    """Run a row without data, and refuse what is too large.

    Raises:
        OnnxError: when a result has more elements than ``most``.
    """
    try:
        found = run()
    except (PhloxError, *RAW):
        return  # the row itself says what is wrong
    except MemoryError:
        raise too_large("more than there is memory for", node, most) from None
    for each in found:
        if isinstance(each, Tensor) and prod(each.shape) > most:
            raise too_large(f"{prod(each.shape):,} elements, {each.shape}", node, most)


def too_large(got: str, node: Node, most: int) -> OnnxError:
    """The error of a node whose result may not be made."""
    return OnnxError(
        "onnx",
        "a result is too large",
        got=f"{got}, of {node.where()}",
        expected=f"at most {most:,} elements",
        hint="px.onnx.load(file, limits=px.onnx.Limits(elements=1 << 34))",
    )
