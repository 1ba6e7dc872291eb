"""The same values under different strides: how tests put an array on a device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from .._device.backend import Backend
from .._functions import functions as pt
from .._values.dtype import DType
from .._values.tensor import Tensor

Array = np.ndarray[Any, Any]
Place = Callable[[Array, DType, Backend], Tensor[Any]]


def _upload(array: Array, dtype: DType, backend: Backend) -> Tensor[Any]:
    base = backend.base
    primitive = base.upload(np.ascontiguousarray(array).reshape(array.shape), dtype)
    tensor: Tensor[Any] = Tensor(primitive, base)
    return tensor if base is backend else tensor.to_device(backend)


def contiguous(array: Array, dtype: DType, backend: Backend) -> Tensor[Any]:
    """Row by row."""
    return _upload(array, dtype, backend)


def transposed(array: Array, dtype: DType, backend: Backend) -> Tensor[Any]:
    """Stored with the axes reversed, seen with them in order."""
    order = tuple(range(array.ndim))[::-1]
    return pt.permute_dims(_upload(array.transpose(order), dtype, backend), order)


def sliced(array: Array, dtype: DType, backend: Backend) -> Tensor[Any]:
    """Every second element of a larger array, from an offset."""
    wide = np.ones(tuple(2 * n + 1 for n in array.shape), array.dtype)
    wide[tuple(slice(1, None, 2) for _ in array.shape)] = array
    start, step = (1,) * array.ndim, (2,) * array.ndim
    start = tuple(0 if n == 0 else s for s, n in zip(start, array.shape, strict=True))
    return pt.slice(_upload(wide, dtype, backend), start, array.shape, step)


def reversed_(array: Array, dtype: DType, backend: Backend) -> Tensor[Any]:
    """Stored backwards, with negative strides."""
    return pt.flip(_upload(np.flip(array), dtype, backend))


def broadcast(array: Array, dtype: DType, backend: Backend) -> Tensor[Any]:
    """One row seen along the first axis, with stride 0; the values are the first row's."""
    if array.ndim == 0 or array.shape[0] == 0:
        return _upload(array, dtype, backend)
    return pt.broadcast_to(_upload(array[:1], dtype, backend), array.shape)


LAYOUTS: Final[dict[str, Place]] = {
    "broadcast": broadcast,
    "contiguous": contiguous,
    "reversed": reversed_,
    "sliced": sliced,
    "transposed": transposed,
}
