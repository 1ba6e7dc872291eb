"""The primitive of this backend: a pooled GPU buffer seen through a shape and strides."""

from __future__ import annotations

import math
from collections.abc import Hashable
from functools import lru_cache
from itertools import count
from typing import TYPE_CHECKING, Any, final
from weakref import ref

from ._cache import Recent

if TYPE_CHECKING:
    from phlox_tensor import DType

    from ._engine import Buffer
    from ._pool import Pool

# How an element is stored in a buffer and spelled in WGSL. WGSL has no storage type for bool: it is
# a u32, 0 or 1.
WGSL_TYPES = {"bool": "u32", "float16": "f16", "float32": "f32", "int32": "i32", "uint32": "u32"}
ITEM_BYTES = {"bool": 4, "float16": 2, "float32": 4, "int32": 4, "uint32": 4}


_KEPT_LAYOUTS = 1 << 14
_layouts: Recent[Hashable, int] = Recent(_KEPT_LAYOUTS)
_names = count(1)


def layout_of(dtype: DType, shape: tuple[int, ...], strides: tuple[int, ...], offset: int) -> int:
    """The number of a layout: see `GpuArray.layout`."""
    key = dtype.name, shape, strides, offset & 3  # names are hashed in C
    return _layouts.get(key) or _layouts.find(key, lambda: next(_names))


Result = tuple[tuple[int, ...], tuple[int, ...], int, int, "DType", int, bool]
"""An array to be made: shape, strides, elements, bytes, type, what it is `known` by, if dense."""


_results: Recent[Hashable, Result] = Recent(_KEPT_LAYOUTS)


def result_of(shape: tuple[int, ...], dtype: DType) -> Result:
    """A dense row-major array to be made."""
    key = shape, dtype.name

    def found() -> Result:
        size, strides = math.prod(shape), dense_strides(shape)
        known = layout_of(dtype, shape, strides, 0)
        return shape, strides, size, size * ITEM_BYTES[dtype.name], dtype, known, True

    return _results.get(key) or _results.find(key, found)


class Storage:
    """One pooled buffer; its bytes go back to the pool when the last array over it is gone."""

    __slots__ = ("__weakref__", "buffer", "line", "newest", "pool", "taken")
    buffer: Buffer
    pool: Pool
    line: int  # elements of a line that grows, and of each those in use
    taken: int
    newest: ref[GpuArray] | None  # which array may be written: see `_append`

    def __del__(self) -> None:
        # May run in any thread, also inside a garbage collection under the device lock: it only
        # appends.
        self.pool.returned.append(self.buffer)


@final
class GpuArray:
    """An immutable array: element (i, j) is at ``offset + i*strides[0] + j*strides[1]``.

    Views share ``storage``. ``contiguous`` is True for a dense row-major layout, at any offset.
    """

    __slots__ = (
        "__weakref__",
        "contiguous",
        "dtype",
        "known",
        "offset",
        "shape",
        "size",
        "storage",
        "strides",
    )

    def __init__(
        self,
        storage: Storage,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
        offset: int,
        dtype: DType,
    ) -> None:
        self.storage = storage
        self.shape = shape
        self.strides = strides
        self.offset = offset
        self.dtype = dtype
        self.size = math.prod(shape)
        self.contiguous = is_dense(shape, strides)
        self.known = 0

    @property
    def layout(self) -> int:
        """A number for type, shape, strides, and the offset up to multiples of 4; see `known`.

        Two arrays that have it in common are walked in the same way.
        """
        if not self.known:
            self.known = layout_of(self.dtype, self.shape, self.strides, self.offset)
        return self.known

    @property
    def wgsl(self) -> str:
        """The WGSL element type of the buffer: f32, i32, u32 (also for bool) or f16."""
        return WGSL_TYPES[self.dtype.name]

    @property
    def item_bytes(self) -> int:
        return ITEM_BYTES[self.dtype.name]

    def view(self, shape: tuple[int, ...], strides: tuple[int, ...], offset: int) -> GpuArray:
        """The same storage under another shape; the caller vouches for the range."""
        return GpuArray(self.storage, shape, strides, offset, self.dtype)

    def __repr__(self) -> str:
        place = f"shape={self.shape}, strides={self.strides}, offset={self.offset}"
        return f"GpuArray({self.dtype.name}, {place})"


_new: Any = object.__new__  # a constructor takes three times as long


def array_of(result: Result, storage: Storage, offset: int) -> GpuArray:
    """An array that is known but for its place."""
    array: GpuArray = _new(GpuArray)
    array.storage = storage
    array.offset = offset
    array.shape, array.strides, array.size, _, array.dtype, array.known, array.contiguous = result
    return array


def seen_as(dtype: DType, shape: tuple[int, ...], strides: tuple[int, ...], offset: int) -> Result:
    """Arrays of a layout, which is that of the offset up to multiples of 4."""
    size, known = math.prod(shape), layout_of(dtype, shape, strides, offset)
    return (
        shape,
        strides,
        size,
        size * ITEM_BYTES[dtype.name],
        dtype,
        known,
        is_dense(shape, strides),
    )


@lru_cache(_KEPT_LAYOUTS)
def dense_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Row-major strides in elements."""
    strides = [0] * len(shape)
    step = 1
    for axis in range(len(shape) - 1, -1, -1):
        strides[axis] = step
        step *= shape[axis]
    return tuple(strides)


@lru_cache(_KEPT_LAYOUTS)
def is_dense(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Whether the strides are row-major; axes of length 1 have no say, an empty array always is."""
    if 0 in shape:
        return True
    step = 1
    for length, stride in zip(reversed(shape), reversed(strides), strict=True):
        if length != 1:
            if stride != step:
                return False
            step *= length
    return True
