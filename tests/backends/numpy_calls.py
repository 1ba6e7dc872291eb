"""A third backend, whole: each entry is a call of NumPy or two, everything else an expansion."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

import phlox as px
from phlox import Backend, DType, IndexOutOfRangeError
from phlox_tensor.reference.binary import floor_divide, remainder
from phlox_tensor.reference.random import bits
from phlox_tensor.reference.unary import cast, erf

Array = np.ndarray[Any, Any]
Entry = Callable[..., Any]
FLOAT64: Final = np.float64


def _places(op: str, indices: Array, size: int) -> Array:
    """Indices counted from the front."""
    bad = (indices >= size) | ((indices < 0) & (indices < -size))
    if bad.any():
        got, expected = int(indices[bad].flat[0]), f"{-size} <= index < {size}"
        raise IndexOutOfRangeError(op, "index out of range", got=got, expected=expected)
    return np.where(indices < 0, indices + size, indices)


def _slices(start: Any, size: Any, step: Any) -> tuple[slice, ...]:
    ends = [a + n * s for a, n, s in zip(start, size, step, strict=True)]
    pairs = zip(start, ends, step, strict=True)
    return tuple(slice(a, end if end >= 0 else None, s) for a, end, s in pairs)


def _slice(x: Array, start: Any, size: Any, step: Any) -> Array:
    return x[_slices(start, size, step)] if 0 not in size else np.empty(size, x.dtype)


def _slice_scatter(x: Array, values: Array, start: Any, size: Any, step: Any) -> Array:
    out = x.copy()
    if values.size:
        out[_slices(start, size, step)] = values
    return out


UPDATES: Final[dict[str, Any]] = {
    "add": np.add, "max": np.maximum, "min": np.minimum, "mul": np.multiply,
}  # fmt: skip


def _scatter(x: Array, indices: Array, values: Array, axis: int, update: str) -> Array:
    out = x.copy()
    where: list[Any] = [*np.indices(indices.shape, sparse=True)]
    where[axis] = _places("scatter", indices, x.shape[axis])
    if update == "set":
        out[tuple(where)] = values
    else:
        UPDATES[update].at(out, tuple(where), values)
    return out


def _pow(x: Any, y: Any) -> Any:
    if np.asarray(x).dtype.kind in "iu" and np.any(np.less(y, 0)):
        raise px.ArgumentError("pow", "integer power with a negative exponent")
    return np.power(x, y)


def _arange(start: float, step: float, count: int, dtype: DType) -> Array:
    wide = FLOAT64 if dtype.kind == "Float" else np.int64
    return (wide(start) + np.arange(count) * wide(step)).astype(dtype.numpy)


def _argsort(x: Array, axis: int, descending: bool) -> Array:
    if not descending:
        return np.argsort(x, axis=axis, kind="stable")
    return np.argsort(-x if x.dtype.kind == "f" else ~x, axis=axis, kind="stable")


def _sum(x: Array, axis: Any, keepdims: bool, dtype: DType) -> Array:
    wide: Array = cast(x, dtype)
    return np.sum(wide, axis=axis, keepdims=keepdims, dtype=wide.dtype)


def _prod(x: Array, axis: Any, keepdims: bool, dtype: DType) -> Array:
    return np.prod(cast(x, dtype), axis=axis, keepdims=keepdims, dtype=dtype.numpy)


ENTRIES: Final[dict[str, Entry]] = {
    "add": np.add,
    "arange": _arange,
    "argmax": lambda x, axis, keepdims: np.argmax(x, axis=axis, keepdims=keepdims),
    "argsort": _argsort,
    "atan2": np.arctan2,
    "bitwise_and": np.bitwise_and,
    "broadcast_to": np.broadcast_to,
    "cast": cast,
    "cos": np.cos,
    "cumsum": lambda x, axis, dtype: np.cumsum(cast(x, dtype), axis, dtype.numpy),
    "divide": np.divide,
    "equal": np.equal,
    "erf": erf,
    "exp": np.exp,
    "expm1": np.expm1,
    "floor": lambda x: x if x.dtype.kind in "iu" else np.floor(x),
    "floor_divide": floor_divide,
    "full": lambda shape, value, dtype: np.full(shape, value, dtype.numpy),
    "less": np.less,
    "log": np.log,
    "log1p": np.log1p,
    "matmul": np.matmul,
    "max": lambda x, axis, keepdims: np.max(x, axis=axis, keepdims=keepdims),
    "maximum": np.maximum,
    "multiply": np.multiply,
    "negative": np.negative,
    "nonzero": np.flatnonzero,
    "permute_dims": np.transpose,
    "pow": _pow,
    "prod": _prod,
    "random_bits": lambda count, key, counter, dtype: bits(count, key, counter).astype(dtype.numpy),
    "remainder": remainder,
    "reshape": np.reshape,
    "scatter": _scatter,
    "sin": np.sin,
    "slice": _slice,
    "slice_scatter": _slice_scatter,
    "sqrt": np.sqrt,
    "sum": _sum,
    "take": lambda x, i, axis: np.take(x, _places("take", i, x.shape[axis]), axis),
    "take_along_axis": lambda x, i, axis: np.take_along_axis(
        x, _places("take_along_axis", i, x.shape[axis]), axis
    ),
    "tanh": np.tanh,
    "where": np.where,
}
INDICES: Final = {"argmax", "argsort", "nonzero"}


class NumpyCalls(Backend):
    """Arrays of NumPy and the table above; what is not in it is an expansion."""

    name = "numpy_calls"
    dtypes = frozenset(
        px.DTYPES[n]
        for n in ("bool", "float32", "float64", "int32", "int64", "uint8", "uint32", "uint64")
    )
    default_float, default_int = px.float32, px.int64

    def shape_of(self, primitive: Array, /) -> tuple[int, ...]:
        return primitive.shape

    def dtype_of(self, primitive: Array, /) -> DType:
        return px.DTYPES[primitive.dtype.name]

    def upload(self, array: Array, dtype: DType, /) -> Array:
        return np.array(array, dtype.numpy, order="C")

    def read(self, primitive: Array, /) -> Array:
        return primitive.view()

    def entry(self, name: str) -> Entry | None:
        call = ENTRIES.get(name)
        if call is None:
            return None

        def run(*args: Any) -> Array:
            with np.errstate(all="ignore"):
                out = np.asarray(call(*args))
            return out.astype(np.int64, copy=False) if name in INDICES else out

        return run
