"""Reductions over any axes: rows, columns, everything; in one pass or two."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from phlox_tensor import REGISTRY, DType, bool_, float16, float32, int32, uint32
from phlox_tensor.inference import result_dtype

from ._array import WGSL_TYPES, GpuArray
from ._elementwise import ENTRIES as ELEMENTWISE
from ._elementwise import cast
from ._errors import DeviceMemoryError
from ._launch import Launch
from ._layout import merge_axes
from ._runtime import GpuDevice
from ._table import Entries
from .wgsl.reduce import REDUCTIONS, Reduction, reduction_source
from .wgsl.walk import WORKGROUP

_MOST = 2**31  # elements that 32 bits count, with a sign to spare
_PER_LANE = 64  # elements per lane before a long reduction is cut into parts
_FILLING_GROUPS = 1024  # workgroups that fill a large GPU; beyond that, no more parts
_LETTERS = {"bool": "u", "float16": "f", "float32": "f", "int32": "i", "uint32": "u"}
_ACCUMULATORS = {"f32": float32, "i32": int32, "u32": uint32}
_ARG = frozenset(
    op.name
    for op in REGISTRY.values()
    if op.op_class.reduces and op.signature.results[0].kind == "Int"
)

Axes = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Dealt:
    """A reduction as numbers: merged axes, and how the work is dealt out."""

    kept: Axes
    kept_strides: Axes
    reduced: Axes
    reduced_strides: Axes
    lanes: int
    reduces_last_axis: bool
    parts: int
    chunk: int
    vector: bool


@dataclass(frozen=True, slots=True)
class _Plan:
    """A whole reduction: its passes, the shape of the result, and what lies between two passes."""

    passes: tuple[Launch, ...]
    shape: Axes
    dtype: DType
    partial: Axes = ()
    partial_types: tuple[DType, ...] = ()
    repeats: int = 0


def reduce(
    device: GpuDevice,
    op: str,
    x: GpuArray,
    axes: Axes,
    keepdims: bool,
    asked: tuple[DType, ...],
) -> GpuArray:
    key = (op, x.layout, axes, keepdims, asked)
    plan: _Plan = device.plans.get(key) or device.plans.find(
        key, lambda: _plan(device, op, x, axes, keepdims, asked)
    )
    if plan.repeats:
        return _repeated(device, op, x, axes, keepdims, asked, plan.repeats)
    out = device.empty(plan.shape, plan.dtype)
    inputs = [x]
    if len(plan.passes) == 2:
        inputs = [device.empty(plan.partial, t) for t in plan.partial_types]
        plan.passes[0].run(device, [x], inputs)
    if plan.passes:
        plan.passes[-1].run(device, inputs, [out])
    return out


def _plan(
    device: GpuDevice, op: str, x: GpuArray, axes: Axes, keepdims: bool, asked: tuple[DType, ...]
) -> _Plan:
    declared = REGISTRY[op]
    result = declared.signature.results[0].kind
    dtype = result_dtype(declared, result, [x.dtype], (axes, keepdims, *asked), int32)
    kept_axes = [i for i in range(len(x.shape)) if i not in axes]
    kept = tuple(x.shape[i] for i in kept_axes)
    shape = tuple(1 if i in axes else n for i, n in enumerate(x.shape)) if keepdims else kept
    results = math.prod(kept)
    if not results:
        return _Plan((), shape, dtype)
    count = math.prod(x.shape[i] for i in axes)
    repeats = math.prod(x.shape[i] for i in axes if x.strides[i] == 0)
    if count >= _MOST and repeats > 1:
        return _Plan((), shape, dtype, repeats=repeats)
    letter = "i" if dtype is int32 and op not in _ARG else _LETTERS[x.dtype.name]
    deal = deal_out(
        merge_axes(kept, [tuple(x.strides[i] for i in kept_axes)]),
        merge_axes(tuple(x.shape[i] for i in axes), [tuple(x.strides[i] for i in axes)]),
        x.offset,
    )
    kernel = Reduction(
        op=op,
        source=x.wgsl,
        letter=letter,
        target=WGSL_TYPES[dtype.name],
        kept=len(deal.kept),
        reduced=len(deal.reduced),
        lanes=deal.lanes,
        reduces_last_axis=deal.reduces_last_axis,
        vector=deal.vector,
        partial=False,
    )
    if deal.parts == 1:
        return _Plan((_pass(device, kernel, deal, count),), shape, dtype)
    first = _pass(device, replace(kernel, target=""), deal, count)
    last, between = final_pass(device, kernel, results, deal.parts, count)
    types = (between, uint32) if op in _ARG else (between,)
    return _Plan((first, last), shape, dtype, (deal.parts, results), types)


def final_pass(
    device: GpuDevice, kernel: Reduction, results: int, parts: int, count: int
) -> tuple[Launch, DType]:
    """The pass over what the parts of a reduction gave, and the element type of that."""
    between = _ACCUMULATORS[kernel.accumulator]
    last = deal_out(((results,), [(1,)]), ((parts,), [(results,)]), 0, split=False)
    final = replace(
        kernel,
        source=WGSL_TYPES[between.name],
        kept=len(last.kept),
        reduced=len(last.reduced),
        lanes=last.lanes,
        reduces_last_axis=last.reduces_last_axis,
        vector=last.vector,
        partial=True,
        made=False,
    )
    return _pass(device, final, last, count), between


def deal_out(
    kept: tuple[Axes, list[Axes]],
    reduced: tuple[Axes, list[Axes]],
    offset: int,
    *,
    split: bool = True,
) -> Dealt:
    """Choose lanes per result, their direction and the parts, only by shape and layout."""
    kept_lengths, (kept_strides,) = kept
    lengths, (strides,) = reduced
    results = math.prod(kept_lengths)
    length = math.prod(lengths)
    # Neighboring threads should read neighboring elements.
    rows = not (kept_strides and abs(kept_strides[-1]) == 1 and kept_lengths[-1] >= 16)
    steps = (offset, length, *kept_strides)
    vector = split and rows and strides == (1,) and all(step % 4 == 0 for step in steps)
    lanes = 1
    while lanes < WORKGROUP and lanes * (16 if rows else _PER_LANE) < length:
        lanes *= 2
    if not rows:
        # Keep 32 columns side by side, and no more lanes than it takes to fill the GPU.
        lanes = min(lanes, WORKGROUP // 32)
    groups = -(-results * lanes // WORKGROUP)
    parts = 1
    if split and groups < _FILLING_GROUPS:
        parts = max(1, min(length // (lanes * _PER_LANE), _FILLING_GROUPS // groups))
    chunk = -(-length // (4 * parts)) * 4 if vector else -(-length // parts)
    parts = max(1, -(-length // chunk)) if chunk else 1
    return Dealt(kept_lengths, kept_strides, lengths, strides, lanes, rows, parts, chunk, vector)


def _repeated(
    device: GpuDevice,
    op: str,
    x: GpuArray,
    axes: Axes,
    keepdims: bool,
    asked: tuple[DType, ...],
    repeats: int,
) -> GpuArray:
    """Reduce more elements than any buffer holds: most are the same ones, seen again and again."""
    if op in _ARG:
        raise DeviceMemoryError(
            "wgpu",
            "a position among so many elements does not fit int32",
            got=f"{math.prod(x.shape[i] for i in axes)} elements",
            expected=f"less than {_MOST}",
            hint="reduce before broadcasting",
        )
    shape = tuple(1 if i in axes and not x.strides[i] else n for i, n in enumerate(x.shape))
    once = reduce(device, op, x.view(shape, x.strides, x.offset), axes, keepdims, asked)
    repeat = _REPEAT.get(op)
    return repeat(device, once, repeats) if repeat else once


def _times(device: GpuDevice, once: GpuArray, repeats: int) -> GpuArray:
    """The sum of equal elements; integers wrap."""
    wrapped = repeats if once.dtype.kind == "Float" else repeats % 2**32
    if once.dtype is int32 and wrapped >= 2**31:
        wrapped -= 2**32
    return ELEMENTWISE["multiply"](device, once, wrapped)


def _power(device: GpuDevice, once: GpuArray, repeats: int) -> GpuArray:
    """The product of equal elements; integers wrap."""
    even = repeats - repeats % 2  # an exponent rounded to float stays even, and the sign right
    if once.dtype.kind == "Int" and even >= 2**31:
        even = 2**30 + even % 2**30  # odd numbers have an order that divides 2**30, modulo 2**32
    power = ELEMENTWISE["pow"](device, once, even)
    return ELEMENTWISE["multiply"](device, power, once) if repeats % 2 else power


# How a result for one element becomes the one for many equal ones; else it is the same.
_REPEAT: dict[str, Callable[[GpuDevice, GpuArray, int], GpuArray]] = {"prod": _power, "sum": _times}


def _pass(device: GpuDevice, kernel: Reduction, deal: Dealt, count: int) -> Launch:
    operands = ((4 if deal.vector else 1, ()),)
    params = pass_params(deal, count)
    return Launch.of(device, (reduction_source, kernel), pass_groups(deal), (), operands, params)


def pass_groups(deal: Dealt) -> int:
    """The workgroups of a pass."""
    return -(-math.prod(deal.kept) * deal.parts * deal.lanes // WORKGROUP)


def pass_params(deal: Dealt, count: int) -> tuple[float, ...]:
    """The parameters of a pass after its offset; ``count`` is the divisor of a mean."""
    total = math.prod(deal.kept) * deal.parts
    unit = 4 if deal.vector else 1
    return (
        math.prod(deal.kept),
        math.prod(deal.reduced) // unit,
        deal.chunk // unit,
        total,
        float(count),
        *deal.kept[1:],
        *deal.reduced[1:],
        *(step // unit for step in deal.kept_strides),
        *deal.reduced_strides,
    )


def _entry(op: str) -> Callable[..., GpuArray]:
    """The entry of a reduction; its declaration says what it gives, and if in a requested type."""
    declared = REGISTRY[op]
    typed = "dtype" in declared.attribute_names

    def run(
        device: GpuDevice, x: GpuArray, axis: Axes | int | None, keepdims: bool, *dtype: DType
    ) -> GpuArray:
        axes = axis if isinstance(axis, tuple) else _axes(x, axis)
        # Summed in the requested type or a wider one; a bool is as it is stored, as 0 and 1.
        source = cast(device, x, _summed_in(x.dtype, dtype[0])) if typed else x
        return reduce(device, op, source, axes, keepdims, dtype)

    return run


def _summed_in(dtype: DType, asked: DType) -> DType:
    """The type of the terms of a sum: what is cut off before adding is lost."""
    if dtype is bool_ or (asked is float16 and dtype.kind == "Float"):
        return dtype
    return float32 if asked is float16 else asked


def _axes(x: GpuArray, axis: int | None) -> Axes:
    return tuple(range(len(x.shape))) if axis is None else (axis,)


ENTRIES: Entries = {op: _entry(op) for op in REDUCTIONS}
