"""Which recordings may serve a call: those with the key of its arguments."""

from __future__ import annotations

from typing import Any

from phlox_tensor import Tensor
from phlox_tensor.capture import ambient

from ..trees.flat import flat, twice
from ..trees.layout import flatten
from ..trees.static import NUMBERS, WIDE, is_wide


def key_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, list[Any]]:
    """What decides which recording serves a call, and the leaves of the arguments.

    None for tensors of a transform under way, whose ops run one by one.
    """
    key: list[Any] = [ambient()]
    leaves: list[Any] = []
    for item in (*args, *kwargs.values()) if kwargs else args:
        cls = type(item)
        if cls is Tensor:
            device = item.device
            primitive = item.primitive
            key.append(device)
            key.append(device.spec_of(primitive))
            while device.inner is not None:
                if device.transient:
                    return None, leaves
                key.append(device.standing(primitive))
                primitive = device.lower(primitive)
                device = device.inner
            leaves.append(primitive)
        elif cls in NUMBERS:
            key.append(WIDE if is_wide(item) else cls)
            leaves.append(item)
        elif item is None or cls is bool or cls is str:
            key.append((cls, item))
        else:
            layout, found, _ = flat(item)
            if layout.transient:
                return None, leaves
            key.append(layout)
            leaves += found
    if kwargs:
        key.append((len(args), *kwargs))
    if len({*map(id, leaves)}) < len(leaves) and twice(leaves):
        key.append(_shared(args, kwargs))
    return tuple(key), leaves


def _shared(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """Which tensors of the arguments are one; numbers that are one object count as two."""
    seen: dict[int, int] = {}
    pattern = []
    for item in (*args, *kwargs.values()):
        _, _, known = flatten(item)
        for primitive in known:
            if primitive is not None:
                pattern.append(seen.setdefault(id(primitive), len(seen)))
    return tuple(pattern)
