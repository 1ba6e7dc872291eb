"""Sorting along an axis, and searching in what is sorted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from phlox_tensor import int32, uint32

from ._array import GpuArray
from ._copy import contiguous, full
from ._runtime import GpuDevice
from .wgsl.sort import Emit, Load, Sort, search_source, sort_source, step_source

if TYPE_CHECKING:
    from ._table import Entries

Back = Callable[[GpuArray], GpuArray]
_PAIR_BYTES = 8
_NARROWEST = 16  # places of a row: what a thread takes at once
_WIDEST = 4096  # places of rows that a workgroup sorts at once, though slower than of shorter ones
_STEP_BITS = 4  # by which a pass over pairs exchanges at once
_SHRINKS = 4  # how much shorter rows get where the first of their chunks are found


def argsort(device: GpuDevice, x: GpuArray, axis: int, descending: bool) -> GpuArray:
    """Places that sort along the axis; stable, nan last."""
    rows, back = _rows(device, x, axis)
    out = device.empty(rows.shape, int32)
    _sort(device, rows, [out], x.wgsl, descending, "places")
    return back(out)


def sort(device: GpuDevice, x: GpuArray, axis: int, descending: bool) -> GpuArray:
    """Elements in order along the axis; stable, nan last."""
    rows, back = _rows(device, x, axis)
    out = device.empty(rows.shape, x.dtype)
    _sort(device, rows, [out], x.wgsl, descending, "values")
    return back(out)


def topk(
    device: GpuDevice, x: GpuArray, k: int, axis: int, largest: bool
) -> tuple[GpuArray, GpuArray]:
    """The first k of a sort along the axis, and their places."""
    rows, back = _rows(device, x, axis)
    found = [device.empty((*rows.shape[:-1], k), dtype) for dtype in (x.dtype, int32)]
    _sort(device, rows, found, x.wgsl, largest, "top", k)
    values, places = map(back, found)
    return values, places


def sort_keys(device: GpuDevice, keys: GpuArray) -> GpuArray:
    """Pairs (key, place) of each row of u32 keys in order, as an array with a last axis of 2."""
    out = device.empty((*keys.shape, 2), uint32)
    _sort(device, keys, [out], "key", False, "pairs")
    return out


def _rows(device: GpuDevice, x: GpuArray, axis: int) -> tuple[GpuArray, Back]:
    """X with the axis last, dense, and how the result goes back."""
    last = len(x.shape) - 1

    def moved(array: GpuArray, source: int, target: int) -> GpuArray:
        order = [i for i in range(last + 1) if i != source]
        order.insert(target, source)
        shape, strides = (tuple(a[i] for i in order) for a in (array.shape, array.strides))
        return array.view(shape, strides, array.offset)

    rows = contiguous(device, moved(x, axis, last))
    return rows, lambda out: moved(out, last, axis)


def block_of(device: GpuDevice, width: int) -> tuple[int, int]:
    """Pairs that a workgroup sorts at once where rows are so wide, and those of a thread."""
    if device.software:
        return 256, 4
    if width != _WIDEST:
        return min(max(width, 1024), 2048), 8
    limits = device.limits
    fits = limits["max-compute-workgroup-storage-size"] >= _WIDEST * _PAIR_BYTES
    fits = fits and limits["max-compute-invocations-per-workgroup"] >= _WIDEST // 8
    return (_WIDEST if fits else 2048), 8


def _sort(
    device: GpuDevice,
    x: GpuArray,
    outs: list[GpuArray],
    stored: str,
    descending: bool,
    emit: Emit,
    kept: int | None = None,
) -> None:
    """Sort the rows of a dense x into outs, as many rows at a time as one binding holds."""
    if not x.size or kept == 0:
        return
    length = x.shape[-1]
    rows, width = x.size // length, _width(length)
    at_once = max(1, device.max_binding_bytes // (width * _PAIR_BYTES))
    for first in range(0, rows, at_once):
        count = min(at_once, rows - first)
        part = x.view((count, length), (length, 1), x.offset + first * length)
        _Rows(device, part, outs, first, stored, descending, emit, kept or length).sort()


def _width(length: int) -> int:
    """The power of two that a row is padded to."""
    return max(_NARROWEST, 1 << (length - 1).bit_length())


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows x that go into `outs` from row `first` on: so many elements `kept` of each."""

    device: GpuDevice
    x: GpuArray
    outs: list[GpuArray]
    first: int
    stored: str
    descending: bool
    emit: Emit
    kept: int

    def sort(self) -> None:
        """Sort them."""
        _, length = self.x.shape
        width = _width(length)
        block, each = block_of(self.device, width)
        if width <= block:
            self._pass("x", self.emit, self.outs, (each.bit_length(), width.bit_length() - 1))
        elif self.emit == "top" and self.kept <= block // _SHRINKS:
            self._by_chunks()
        else:
            self._by_steps(width, block, each)

    def _by_steps(self, width: int, block: int, each: int) -> None:
        """Sort blocks, and then merge them by passes that reach over blocks."""
        rows = self.x.shape[0]
        block_bits = block.bit_length() - 1
        pairs = self.device.empty((rows * width, 2), uint32)
        self._pass("x", "block", [pairs], (each.bit_length(), block_bits))
        for stage in range(block_bits + 1, width.bit_length()):
            top = stage
            while top > block_bits:
                bits = min(_STEP_BITS, top - block_bits)
                top -= bits
                size = rows * width >> bits
                params = (size, width, stage, 1 << top)
                self.device.launch((step_source, bits), [], [pairs], params, -(-size // 256))
            last = stage == width.bit_length() - 1
            emit, outs = (self.emit, self.outs) if last else ("block", [])
            self._pass("block", emit, [pairs, *outs], (stage, stage))

    def _by_chunks(self) -> None:
        """Find the first of chunks of rows, then the first of these, until one chunk is left."""
        rows, length = self.x.shape
        pairs: list[GpuArray] = []
        while True:
            block, each = block_of(self.device, _width(length))
            chunks = -(-length // block)
            load: Load = "pairs" if pairs else "x"
            whole = length, chunks, min(_width(length), block)
            stages = each.bit_length(), whole[2].bit_length() - 1
            if chunks == 1:
                self._pass(load, self.emit, self.outs, stages, pairs, whole)
                return
            found = self.device.empty((rows, chunks * self.kept, 2), uint32)
            self._pass(load, "pairs", [found], stages, pairs, whole)
            pairs, length = [found], chunks * self.kept

    def _pass(
        self,
        load: Load,
        emit: Emit,
        outs: list[GpuArray],
        stages: tuple[int, int],
        pairs: Sequence[GpuArray] = (),
        whole: tuple[int, int, int] | None = None,
    ) -> None:
        """Go over the blocks of all rows, by stages; rows of a length, chunks, places of each."""
        rows, own = self.x.shape
        length, chunks, width = whole or (own, 1, _width(own))
        block, each = block_of(self.device, width)
        spec = Sort(self.stored, self.descending, block, each, load, emit)
        inputs = [self.x] if load == "x" or emit in ("values", "top") else []
        groups = -(-rows * chunks * width // block)
        offset = self.first * self.kept if outs[-1] is self.outs[-1] else 0
        params = (self.x.offset, rows, chunks, length, width, self.kept, groups, *stages)
        self.device.launch(
            (sort_source, spec), [*inputs, *pairs], outs, (*params, offset, own), groups
        )


def searchsorted(device: GpuDevice, line: GpuArray, x: GpuArray, side: str) -> GpuArray:
    """Where the elements of x would go into a sorted line."""
    if not line.size or not x.size:
        return full(device, x.shape, 0, int32)
    out = device.empty(x.shape, int32)
    wanted = contiguous(device, x)
    params = (x.size, line.size, line.offset, line.strides[0], wanted.offset)
    device.launch(
        (search_source, x.wgsl, side == "right"), [line, wanted], [out], params, -(-x.size // 256)
    )
    return out


ENTRIES: Entries = {"argsort": argsort, "searchsorted": searchsorted, "sort": sort, "topk": topk}
