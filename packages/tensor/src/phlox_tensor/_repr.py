"""How a tensor prints: its values as NumPy prints them, then type and device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from ._tensor import Tensor

_EDGE = 3
_MANY = 1000


def tensor_repr(tensor: Tensor[Any]) -> str:
    """Return ``Tensor([...], dtype=float32, device=Cpu())``; the shape where it is not seen."""
    if not tensor.device.is_readable(tensor.primitive):
        dtype = tensor.dtype.name
        return f"Tensor(shape={tensor.shape}, dtype={dtype}, device={tensor.device!r})"
    body = np.array2string(
        tensor.numpy(), separator=", ", prefix="Tensor(", threshold=_MANY, edgeitems=_EDGE
    )
    shape = f", shape={tensor.shape}" if 0 in tensor.shape or tensor.size > _MANY else ""
    tracked = ", requires_grad=True" if tensor.requires_grad else ""
    return f"Tensor({body}{shape}, dtype={tensor.dtype.name}, device={tensor.device!r}{tracked})"
