"""Copies of any view: dense, into another array, or into shared memory; concat, pad, full."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, Final, NamedTuple, final

import numpy as np

from phlox_tensor import DType

from ._array import ITEM_BYTES, GpuArray, Storage, dense_strides
from ._engine import Pipeline, SharesMemory, driver
from ._layout import Shape, merge_axes, window
from ._runtime import GpuDevice, grid
from ._table import Entries
from .wgsl import copy as kernels
from .wgsl.walk import WORKGROUP

_TILE_FROM = 4096  # smaller transposes are not worth the shared memory


def copy(device: GpuDevice, x: GpuArray) -> GpuArray:
    """A dense copy at offset 0, bit for bit."""
    out = device.empty(x.shape, x.dtype)
    copy_into(device, x, out)
    return out


def contiguous(device: GpuDevice, x: GpuArray) -> GpuArray:
    """X itself when it is dense row-major, at any offset, else a dense copy."""
    return x if x.contiguous else copy(device, x)


def packed(device: GpuDevice, x: GpuArray) -> GpuArray:
    """X itself, or a dense copy where it is spread over more than twice its own size."""
    reach = sum((n - 1) * abs(step) for n, step in zip(x.shape, x.strides, strict=True))
    return x if not x.size or reach < 2 * x.size + 64 else copy(device, x)


class _Plan(NamedTuple):
    """A copy between arrays of two layouts but for their offsets, which lie behind ``head``."""

    pipeline: Pipeline
    grid: tuple[int, int, int]
    head: Shape
    unit: int  # elements in which offsets count
    tail: Shape


def copy_into(device: GpuDevice, x: GpuArray, out: GpuArray, *, add: bool = False) -> None:
    """Write x into `out`, a fresh array or a window of one, of its shape and type, or `add` it."""
    if not x.size:
        return
    key = ("copy", x.known or x.layout, out.known or out.layout, add)
    plan: _Plan = device.plans.get(key) or device.plans.find(
        key, lambda: _plan(device, x, out, add)
    )
    params = (*plan.head, x.offset // plan.unit, out.offset // plan.unit, *plan.tail)
    device.record(plan.pipeline, [x], [out], params, plan.grid)


def _plan(device: GpuDevice, x: GpuArray, out: GpuArray, add: bool) -> _Plan:
    lengths, (read, write) = merge_axes(x.shape, [x.strides, out.strides])
    word = x.wgsl if add else "u32" if x.item_bytes == 4 else "f16"
    if not lengths:
        lengths, read, write = (1,), (1,), (1,)
    if not add and _tileable(lengths, read, write):
        return _plan_tiles(device, lengths, read, write, word)
    unit = 1
    if _vectors(lengths, read, write, [x.offset, out.offset]):
        unit, word = 4, f"vec4<{word}>"
        lengths = (*lengths[:-1], lengths[-1] // 4)
        read = (*[s // 4 for s in read[:-1]], 1)
        write = (*[s // 4 for s in write[:-1]], 1)
    count = math.prod(lengths)
    pipeline = device.pipeline(kernels.strided, word, len(lengths), add)
    groups = grid(-(-count // WORKGROUP))
    return _Plan(pipeline, groups, (count,), unit, (*lengths[1:], *read, *write))


def _vectors(lengths: Shape, read: Shape, write: Shape, offsets: list[int]) -> bool:
    steps = (*read[:-1], *write[:-1], *offsets, lengths[-1])
    return read[-1] == write[-1] == 1 and all(step % 4 == 0 for step in steps)


def _tileable(lengths: Shape, read: Shape, write: Shape) -> bool:
    """A transpose: written along the last axis, read along another one."""
    if math.prod(lengths) < _TILE_FROM or write[-1] != 1 or read[-1] == 1 or 1 not in read:
        return False
    return min(lengths[-1], lengths[read.index(1)]) >= kernels.TILE // 4


def _plan_tiles(device: GpuDevice, lengths: Shape, read: Shape, write: Shape, word: str) -> _Plan:
    """Through tiles in workgroup memory, so that reads and writes both run along memory."""
    last = len(lengths) - 1
    other = read.index(1)
    outer = [axis for axis in range(last) if axis != other]
    tiles = [-(-lengths[last] // kernels.TILE), -(-lengths[other] // kernels.TILE)]
    groups = tiles[0] * tiles[1] * math.prod(lengths[axis] for axis in outer)
    tail = (
        groups,
        *tiles,
        lengths[last],
        lengths[other],
        read[last],
        write[other],
        *(lengths[axis] for axis in outer),
        *(read[axis] for axis in outer),
        *(write[axis] for axis in outer),
    )
    pipeline = device.pipeline(kernels.tiled, word, len(outer))
    return _Plan(pipeline, grid(groups), (), 1, tail)


def full(device: GpuDevice, shape: Shape, value: Any, dtype: DType) -> GpuArray:
    """An array of one value."""
    out = device.empty(shape, dtype)
    if not out.size:
        return out
    with np.errstate(over="ignore"):
        host = np.full(2, value, dtype.numpy)
    bits = int(np.uint32(value != 0)) if dtype.name == "bool" else int(host.view(np.uint32)[0])
    words = -(-out.size * out.item_bytes // 4)
    count = -(-words // 4)
    device.launch((kernels.fill,), [], [out], (count, bits), -(-count // WORKGROUP))
    return out


def arange(device: GpuDevice, start: float, step: float, count: int, dtype: DType) -> GpuArray:
    """Fill with start + i*step, in double on the host: float32 would be off where terms cancel."""
    wide = np.float64 if dtype.kind == "Float" else np.int64
    host = np.asarray(start, wide) + np.arange(count) * np.asarray(step, wide)
    return device.upload(host.astype(dtype.numpy), dtype)


def concat(device: GpuDevice, xs: tuple[GpuArray, ...], axis: int) -> GpuArray:
    """The arrays one after the other."""
    total = sum(x.shape[axis] for x in xs)
    shape = (*xs[0].shape[:axis], total, *xs[0].shape[axis + 1 :])
    out = device.empty(shape, xs[0].dtype)
    at = 0
    for x in xs:
        copy_into(device, x, out.view(x.shape, out.strides, at * out.strides[axis]))
        at += x.shape[axis]
    return out


def add_slices(
    device: GpuDevice, parts: tuple[GpuArray, ...], shape: Shape, start: Shape, step: Shape
) -> GpuArray:
    """Zeros of a shape to which parts are added, each at a slice."""
    key = ("add_slices", shape, start, step, *[part.shape for part in parts])
    dtype = parts[0].dtype

    def found() -> tuple[bool, bool, list[tuple[Shape, Shape, int]]]:
        rank, dense = len(shape), dense_strides(shape)
        apart = _apart(parts, shape, start, step)
        whole = apart and sum(part.size for part in parts) == math.prod(shape)
        places = []
        for i, part in enumerate(parts):
            first, by = (given[i * rank : (i + 1) * rank] for given in (start, step))
            places.append(window(dense, 0, first, part.shape, by))
        return apart, whole, places

    apart, whole, places = device.plans.get(key) or device.plans.find(key, found)
    out = device.empty(shape, dtype) if whole else full(device, shape, 0, dtype)
    for part, place in zip(parts, places, strict=True):
        copy_into(device, part, out.view(*place), add=not apart)
    return out


def _apart(parts: tuple[GpuArray, ...], shape: Shape, start: Shape, step: Shape) -> bool:
    """Whether parts lie one after the other along an axis."""
    cut = {i for part in parts for i, n in enumerate(shape) if part.shape[i] != n}
    if len(cut) != 1 or any(by != 1 for by in step):
        return False
    (axis,) = cut
    spans = sorted(zip(start[axis :: len(shape)], [p.shape[axis] for p in parts], strict=True))
    return all(a + n <= b for (a, n), (b, _) in pairwise(spans))


def pad(
    device: GpuDevice, x: GpuArray, padding: tuple[tuple[int, int], ...], value: Any
) -> GpuArray:
    """Put x inside a margin of `value`."""
    shape = tuple(n + low + high for n, (low, high) in zip(x.shape, padding, strict=True))
    out = full(device, shape, value, x.dtype)
    start = sum(low * step for (low, _), step in zip(padding, out.strides, strict=True))
    copy_into(device, x, out.view(x.shape, out.strides, start))
    return out


def slice_scatter(
    device: GpuDevice, x: GpuArray, values: GpuArray, start: Shape, size: Shape, step: Shape
) -> GpuArray:
    """A copy of x with one slice replaced."""
    out = copy(device, x)
    if values.size:
        copy_into(device, values, out.view(*window(dense_strides(x.shape), 0, start, size, step)))
    return out


class _NoPool:
    """Where a buffer goes that is no pool's: nowhere."""

    returned: Final[deque[Any]] = deque(maxlen=0)


_NO_POOL: Final[Any] = _NoPool()
# Seconds to wait for other processes. Their hosts are in the same step, so it is only for GPUs.
_LONGEST: Final = 600.0


@final
class Shared:
    """Arrays at places of such memory, which stays until the process ends."""

    def __init__(self, device: GpuDevice, engine: SharesMemory, buffer: Any) -> None:
        """Take a buffer over it."""
        self._device, self._engine = device, engine
        self._storage = storage = Storage()
        storage.buffer, storage.pool = buffer, _NO_POOL
        storage.line = storage.taken = 0
        storage.newest = None

    def array(self, count: int, dtype: DType, at: int, /) -> GpuArray:
        """Return so many elements from a byte on, as they are when a kernel reads them."""
        return GpuArray(self._storage, (count,), (1,), at // ITEM_BYTES[dtype.name], dtype)

    def put(self, x: GpuArray, at: int, /) -> None:
        """Write an array of one axis from a byte on, after the ops before."""
        copy_into(self._device, x, self.array(x.size, x.dtype, at))

    def meet(
        self, words: Sequence[np.ndarray], own: int, turn: int, /, seconds: float = _LONGEST
    ) -> Callable[[], None]:
        """Keep back later work until all processes are here; gives what waits for that before.

        The device is lost where one of them does not come in so many seconds.
        """
        with self._device.lock:
            places = [word.ctypes.data for word in words]
            mark = self._engine.meet(places, own, turn, seconds)
        return partial(self._reach, mark)

    def _reach(self, mark: Any) -> None:
        try:
            self._engine.reached(mark)
        except driver.DriverError as error:
            raise self._device.told(error, "a step of several processes") from error


def shared(device: GpuDevice, memory: np.ndarray) -> Shared | None:
    """Return memory, whole pages, as memory of a device; None where that cannot be."""
    engine = device.engine
    if not isinstance(engine, SharesMemory) or memory.nbytes > device.max_binding_bytes:
        return None
    with device.lock:
        try:
            buffer = engine.imported(memory.ctypes.data, memory.nbytes)
        except driver.DriverError:
            return None
    return None if buffer is None else Shared(device, engine, buffer)


ENTRIES: Entries = {
    "add_slices": add_slices,
    "arange": arange,
    "concat": concat,
    "contiguous": contiguous,
    "full": full,
    "pad": pad,
    "slice_scatter": slice_scatter,
}
