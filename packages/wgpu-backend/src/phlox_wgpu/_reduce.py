"""Reductions over any axes: rows, columns, everything; in one pass or two."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from phlox_tensor import DType, bool_, float32, int32, uint32

from ._array import GpuArray
from ._elementwise import cast, merge_axes
from ._runtime import GpuDevice
from ._table import Entries
from .wgsl.reduce import WORKGROUP, Reduction, reduction_source

_PER_LANE = 64  # elements per lane before a long reduction is cut into parts
_ENOUGH_GROUPS = 1024  # workgroups that fill a large GPU; beyond that, no more parts
_LETTERS = {"bool": "u", "float16": "f", "float32": "f", "int32": "i", "uint32": "u"}
_ACCUMULATORS = {"f": float32, "i": int32, "u": uint32}
_ARG = frozenset({"argmax", "argmin"})

Axes = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Shape:
    """A reduction as numbers: merged axes, and how the work is dealt out."""

    kept: Axes
    kept_strides: Axes
    reduced: Axes
    reduced_strides: Axes
    lanes: int
    along: bool
    parts: int
    chunk: int


def _reduce(
    device: GpuDevice, op: str, x: GpuArray, axes: Axes, keepdims: bool, dtype: DType
) -> GpuArray:
    kept_axes = [i for i in range(len(x.shape)) if i not in axes]
    kept = tuple(x.shape[i] for i in kept_axes)
    shape = tuple(1 if i in axes else n for i, n in enumerate(x.shape)) if keepdims else kept
    out = device.empty(shape, dtype)
    if not out.size:
        return out
    letter = "i" if dtype is int32 and op not in _ARG else _LETTERS[x.dtype.name]
    plan = _deal(
        merge_axes(kept, [tuple(x.strides[i] for i in kept_axes)]),
        merge_axes(tuple(x.shape[i] for i in axes), [tuple(x.strides[i] for i in axes)]),
    )
    count = math.prod(x.shape[i] for i in axes)
    kernel = Reduction(
        op=op,
        source=x.wgsl,
        letter=letter,
        target=out.wgsl,
        kept=len(plan.kept),
        reduced=len(plan.reduced),
        lanes=plan.lanes,
        along=plan.along,
        partial=False,
    )
    if plan.parts == 1:
        _launch(device, kernel, plan, [x], [out], count)
        return out
    results = out.size
    partial = [device.empty((plan.parts, results), _ACCUMULATORS[letter])]
    if op in _ARG:
        partial.append(device.empty((plan.parts, results), uint32))
    _launch(device, replace(kernel, target=""), plan, [x], partial, count)
    last = _deal(((results,), [(1,)]), ((plan.parts,), [(results,)]), split=False)
    final = replace(
        kernel,
        source=partial[0].wgsl,
        kept=len(last.kept),
        reduced=len(last.reduced),
        lanes=last.lanes,
        along=last.along,
        partial=True,
    )
    _launch(device, final, last, partial, [out], count)
    return out


def _deal(
    kept: tuple[Axes, list[Axes]], reduced: tuple[Axes, list[Axes]], *, split: bool = True
) -> _Shape:
    """Choose lanes per result, their direction and the parts, by shape and layout alone."""
    kept_lengths, (kept_strides,) = kept
    lengths, (strides,) = reduced
    results = math.prod(kept_lengths)
    length = math.prod(lengths)
    # Neighbouring threads should read neighbouring elements.
    along = not (kept_strides and abs(kept_strides[-1]) == 1 and kept_lengths[-1] >= 16)
    lanes = 1
    while lanes < WORKGROUP and lanes * (16 if along else _PER_LANE) < length:
        lanes *= 2
    if not along:
        # Keep 32 columns side by side, and no more lanes than it takes to fill the GPU.
        lanes = min(lanes, WORKGROUP // 32)
    groups = -(-results * lanes // WORKGROUP)
    parts = 1
    if split and groups < _ENOUGH_GROUPS:
        parts = max(1, min(length // (lanes * _PER_LANE), _ENOUGH_GROUPS // groups))
    chunk = -(-length // parts) if length else 0
    parts = max(1, -(-length // chunk)) if chunk else 1
    return _Shape(kept_lengths, kept_strides, lengths, strides, lanes, along, parts, chunk)


def _launch(
    device: GpuDevice,
    kernel: Reduction,
    plan: _Shape,
    inputs: list[GpuArray],
    outputs: list[GpuArray],
    count: int,
) -> None:
    results = math.prod(plan.kept)
    total = results * plan.parts
    params = (
        inputs[0].offset,
        results,
        math.prod(plan.reduced),
        plan.chunk,
        total,
        float(count),
        *plan.kept[1:],
        *plan.reduced[1:],
        *plan.kept_strides,
        *plan.reduced_strides,
    )
    rows = WORKGROUP // kernel.lanes
    device.launch(
        ("reduce", kernel),
        lambda: reduction_source(kernel),
        inputs,
        outputs,
        params,
        -(-total // rows),
    )


def sum_(device: GpuDevice, x: GpuArray, axis: Axes, keepdims: bool, dtype: DType) -> GpuArray:
    """Sum along the axes."""
    return _reduce(device, "sum", _widened(device, x, dtype), axis, keepdims, dtype)


def prod(device: GpuDevice, x: GpuArray, axis: Axes, keepdims: bool, dtype: DType) -> GpuArray:
    """Product along the axes."""
    return _reduce(device, "prod", _widened(device, x, dtype), axis, keepdims, dtype)


def _widened(device: GpuDevice, x: GpuArray, dtype: DType) -> GpuArray:
    """Bring x to the type of the sum; a bool is summed as it is stored, as 0 and 1."""
    return x if x.dtype is dtype or x.dtype is bool_ else cast(device, x, dtype)


def mean(device: GpuDevice, x: GpuArray, axis: Axes, keepdims: bool) -> GpuArray:
    """Mean along the axes, nan for none."""
    return _reduce(device, "mean", x, axis, keepdims, x.dtype)


def max_(device: GpuDevice, x: GpuArray, axis: Axes, keepdims: bool) -> GpuArray:
    """Largest element along the axes; nan wins."""
    return _reduce(device, "max", x, axis, keepdims, x.dtype)


def min_(device: GpuDevice, x: GpuArray, axis: Axes, keepdims: bool) -> GpuArray:
    """Smallest element along the axes; nan wins."""
    return _reduce(device, "min", x, axis, keepdims, x.dtype)


def any_(device: GpuDevice, x: GpuArray, axis: Axes, keepdims: bool) -> GpuArray:
    """Whether any element is True."""
    return _reduce(device, "any", x, axis, keepdims, bool_)


def all_(device: GpuDevice, x: GpuArray, axis: Axes, keepdims: bool) -> GpuArray:
    """Whether all elements are True."""
    return _reduce(device, "all", x, axis, keepdims, bool_)


def argmax(device: GpuDevice, x: GpuArray, axis: int | None, keepdims: bool) -> GpuArray:
    """Place of the first largest element; the first nan wins."""
    return _reduce(device, "argmax", x, _axes(x, axis), keepdims, int32)


def argmin(device: GpuDevice, x: GpuArray, axis: int | None, keepdims: bool) -> GpuArray:
    """Place of the first smallest element; the first nan wins."""
    return _reduce(device, "argmin", x, _axes(x, axis), keepdims, int32)


def _axes(x: GpuArray, axis: int | None) -> Axes:
    return tuple(range(len(x.shape))) if axis is None else (axis,)


ENTRIES: Entries = {
    "all": all_,
    "any": any_,
    "argmax": argmax,
    "argmin": argmin,
    "max": max_,
    "mean": mean,
    "min": min_,
    "prod": prod,
    "sum": sum_,
}
