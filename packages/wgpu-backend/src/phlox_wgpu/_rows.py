"""Entries of ops that are programs over rows, and how threads share rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from phlox_tensor import Rejected, float32

from ._array import GpuArray, dense_strides
from ._copy import contiguous, full
from ._kernel import Kernel
from ._launch import Launch
from ._layout import Shape, broadcast_strides, merge_axes
from ._row_programs import (
    COSINE,
    LOG_SOFTMAX,
    LOG_SOFTMAX_BACKWARD,
    LOGSUMEXP,
    SOFTMAX,
    SOFTMAX_BACKWARD,
    VECTOR_NORM,
    layer_norm_program,
    norm_backward_program,
    norm_program,
    rms_norm_program,
)
from ._runtime import GpuDevice
from .products.matmul import add_parts
from .products.plans import ENOUGH_GROUPS
from .wgsl import cross_entropy as losses
from .wgsl.channels import COLUMNS, column_sums
from .wgsl.row_stages import RowProgram, row_stages
from .wgsl.stages import Rows, Stages, stages_source
from .wgsl.walk import WORKGROUP

if TYPE_CHECKING:
    from ._table import Entries

Axes = tuple[int, ...]

_SINGLE = 64  # threads of a workgroup that have a row each
_SHORT = 32  # rows up to here go to one thread each
_SOFTWARE_SHORT = 4096
_TALLIED = 64  # classes, whose rows a thread goes through three times
_ACROSS = 1024  # the longest row across memory for one thread; longer ones are turned first
_CACHED = 16  # elements per thread in registers
_MOST_CACHED = 32  # where more threads would wait for each other longer


def run(
    device: GpuDevice,
    program: RowProgram,
    rows: Sequence[GpuArray],
    columns: Sequence[GpuArray] = (),
    scalars: Sequence[float] = (),
    *,
    inner: int = 1,
    wide: bool = False,
) -> list[GpuArray]:
    """Run a program over the last axis of arrays of one shape; totals come as (count of rows,).

    With an `inner`, over the second axis of dense arrays (outer, length, inner). `wide`: the totals
    are float32 whatever the rows are.
    """
    x = rows[0]
    length = x.shape[-1] if inner == 1 else x.shape[1]
    count = x.size // length
    layouts = [row.layout for row in rows]
    places = [(vector.strides[0], vector.offset & 3) for vector in columns]
    key = (program.name, program.columns, inner, wide, *layouts, *places)

    def plan() -> Launch:
        if inner == 1:
            lengths, strides = merge_axes(x.shape[:-1], [row.strides[:-1] for row in rows])
            steps = [row.strides[-1] for row in rows]
        else:
            lengths, strides = (count // inner, inner), [(length * inner, 1)] * len(rows)
            steps = [inner] * len(rows)
        aligned = all(
            step == 1 and not any(at % 4 for at in (row.offset, *own))
            for row, own, step in zip(rows, strides, steps, strict=True)
        )
        rank = len(lengths)
        lanes, slots, vector = _deal(device, length, inner, aligned)
        access = ("v" if vector else "e") * len(rows)
        access += "".join("v" if vector and place == (1, 0) else "e" for place in places)
        subgroups = lanes > 1 and "subgroup" in device.features
        threads = lanes if subgroups else max(lanes, _SINGLE)
        way = Rows(access, rank, lanes, vector, slots, threads, subgroups, apart=inner > 1)
        totals = "float32" if wide else x.dtype.name
        stages = row_stages(program, x.dtype.name, totals, keeps=slots > 0)
        strides += [(0,) * rank] * len(columns)
        steps += [step for step, _ in places]
        return launch_rows(device, stages, way, lengths, strides, steps, length)

    launch: Launch = device.plans.get(key) or device.plans.find(key, plan)
    outputs = [device.empty(x.shape, x.dtype) for _ in program.results]
    outputs += [device.empty((count,), float32 if wide else x.dtype) for _ in program.totals]
    launch.run(device, [*rows, *columns], outputs, scalars)
    return outputs


def launch_rows(
    device: GpuDevice,
    stages: Stages,
    way: Rows,
    lengths: Shape,
    strides: Sequence[Shape],
    steps: Sequence[int],
    length: int,
) -> Launch:
    """A launch over rows of a length: how many, by axes, and strides and step of each input."""
    count, width = math.prod(lengths), 4 if way.vector else 1
    units = [4 if kind == "v" else 1 for kind in way.access]
    tail: list[float] = [count, -(-length // width), length, *lengths[1:]]
    for kind, unit, own, step in zip(way.access, units, strides, steps, strict=True):
        tail += [at // unit for at in own]
        tail += [step] if kind == "e" else []
    groups = -(-count * way.lanes // way.threads)
    operands = tuple((unit, ()) for unit in units)
    return Launch.of(device, (stages_source, stages, way), groups, (), operands, tuple(tail))


def _deal(device: GpuDevice, length: int, inner: int, aligned: bool) -> tuple[int, int, bool]:
    """Threads of a row, how many steps of each stay in registers, and whether it goes by fours."""
    short = _SOFTWARE_SHORT if device.software else _SHORT
    if inner > 1 or length <= short:
        return 1, 0, False
    four = 4 if aligned and length % 4 == 0 else 1
    units = -(-length // four)
    # As few threads as hold the row: combining what each has takes longer than what each does.
    choices = [(32, _CACHED), (64, _CACHED), (128, _CACHED), (256, _CACHED)]
    if "subgroup" not in device.features:
        choices = [(64, _CACHED), (128, _CACHED), (128, _MOST_CACHED)]
    for threads, most in choices:
        each = 1 << (-(-units // threads) - 1).bit_length()
        if each * four <= most:
            return threads, each, four == 4
    return 256, 0, four == 4


def _along(
    device: GpuDevice, program: RowProgram, arrays: tuple[GpuArray, ...], axis: int
) -> GpuArray:
    """A program with one result, along any axis."""
    x = arrays[0]
    if not x.size:
        return device.empty(x.shape, x.dtype)
    length, inner = x.shape[axis], math.prod(x.shape[axis + 1 :])
    if inner > 1 and length > _ACROSS:
        last = len(x.shape) - 1
        turned = tuple(contiguous(device, _swapped(array, axis, last)) for array in arrays)
        return _swapped(_along(device, program, turned, last), axis, last)
    shape = (
        (x.size // length, length) if inner == 1 else (x.size // (length * inner), length, inner)
    )
    dense = [contiguous(device, array) for array in arrays]
    flat = [array.view(shape, dense_strides(shape), array.offset) for array in dense]
    out = run(device, program, flat, inner=inner)[0]
    return out.view(x.shape, dense_strides(x.shape), 0)


def _swapped(x: GpuArray, i: int, j: int) -> GpuArray:
    shape, strides = list(x.shape), list(x.strides)
    for axes in (shape, strides):
        axes[i], axes[j] = axes[j], axes[i]
    return x.view(tuple(shape), tuple(strides), x.offset)


def _entry(program: RowProgram) -> Callable[..., GpuArray]:
    """The entry of an op that is a program along an axis."""
    return lambda device, *args: _along(device, program, args[:-1], args[-1])


def reduced(x: GpuArray, axis: Axes, keepdims: bool) -> Shape:
    """The shape of a reduction."""
    if keepdims:
        return tuple(1 if i in axis else n for i, n in enumerate(x.shape))
    return tuple(n for i, n in enumerate(x.shape) if i not in axis)


def axes_last(device: GpuDevice, x: GpuArray, axis: Axes) -> GpuArray:
    """Dense rows (kept, reduced)."""
    order = [*(i for i in range(len(x.shape)) if i not in axis), *axis]
    shape = tuple(x.shape[i] for i in order)
    turned = contiguous(device, x.view(shape, tuple(x.strides[i] for i in order), x.offset))
    length = math.prod(x.shape[i] for i in axis)
    flat = (x.size // length, length)
    return turned.view(flat, dense_strides(flat), turned.offset)


def _totals(
    device: GpuDevice,
    program: RowProgram,
    arrays: Sequence[GpuArray],
    axis: Axes,
    keepdims: bool,
    scalars: Sequence[float] = (),
    nothing: float = 0.0,
) -> GpuArray:
    """What a program gives for each row along axes; `nothing`: for rows without elements."""
    x = arrays[0]
    shape = reduced(x, axis, keepdims)
    if not x.size:
        return full(device, shape, nothing, x.dtype)
    rows = [axes_last(device, array, axis) for array in arrays]
    out = run(device, program, rows, scalars=scalars)[0]
    return out.view(shape, dense_strides(shape), 0)


def logsumexp(device: GpuDevice, x: GpuArray, axis: Axes, keepdims: bool) -> GpuArray:
    """Ln of the sum of exponentials along axes."""
    return _totals(device, LOGSUMEXP, (x,), axis, keepdims, nothing=-math.inf)


def cosine_similarity(
    device: GpuDevice, x1: GpuArray, x2: GpuArray, axis: int, epsilon: float
) -> GpuArray:
    """Products of vectors along an axis by their lengths, which are at least `epsilon`."""
    return _totals(device, COSINE, (x1, x2), (axis,), False, [epsilon])


def cdist(device: GpuDevice, x1: Any, x2: Any, p: float) -> GpuArray:
    """Norms of the differences of all rows of one matrix and all of another.

    Raises:
        Rejected: the operands are not two arrays of one float type that fit, or p is negative.
    """
    arrays = type(x1) is GpuArray and type(x2) is GpuArray and x1.dtype is x2.dtype
    if (
        not arrays
        or x1.dtype.kind != "Float"
        or not p >= 0
        or min(map(len, (x1.shape, x2.shape))) < 2
    ):
        raise Rejected
    try:
        batch = np.broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
    except ValueError:
        raise Rejected from None
    (n, length), m = x1.shape[-2:], x2.shape[-2]
    if x2.shape[-1] != length:
        raise Rejected
    shape, rows = (*batch, n, m), []
    if not length or not math.prod(shape):
        return full(device, shape, 0.0, x1.dtype)
    for x, turn in ((x1, 1), (x2, -1)):
        steps = (x.strides[-2], 0)[::turn]
        outside = broadcast_strides(x.shape[:-2], x.strides[:-2], batch)
        rows.append(x.view((*shape, length), (*outside, *steps, x.strides[-1]), x.offset))
    program = norm_program(("x1", "x2"), "x1 - x2", p)
    out = run(device, program, rows, scalars=[p] * len(program.scalars))[0]
    return out.view(shape, dense_strides(shape), 0)


def layer_norm(
    device: GpuDevice,
    x: GpuArray,
    weight: GpuArray | None,
    bias: GpuArray | None,
    epsilon: float,
) -> GpuArray:
    """Rows over the last axis with mean 0 and variance 1, times weight, plus bias."""
    program = layer_norm_program(weight is not None, bias is not None)
    return _norm(device, program, x, (weight, bias), epsilon)


def rms_norm(device: GpuDevice, x: GpuArray, weight: GpuArray | None, epsilon: float) -> GpuArray:
    """Rows over the last axis by their root mean square, times weight."""
    return _norm(device, rms_norm_program(weight is not None), x, (weight,), epsilon)


def _norm(
    device: GpuDevice,
    program: RowProgram,
    x: GpuArray,
    vectors: Sequence[GpuArray | None],
    epsilon: float,
) -> GpuArray:
    if not x.size:
        return device.empty(x.shape, x.dtype)
    columns = [v for v in vectors if v is not None]
    out = run(device, program, [_flat(device, x)], columns, [epsilon])[0]
    return out.view(x.shape, dense_strides(x.shape), 0)


def _flat(device: GpuDevice, x: GpuArray) -> GpuArray:
    dense = contiguous(device, x)
    shape = (x.size // x.shape[-1], x.shape[-1])
    return dense.view(shape, dense_strides(shape), dense.offset)


def layer_norm_backward(
    device: GpuDevice, g: GpuArray, x: GpuArray, weight: GpuArray | None, epsilon: float
) -> tuple[GpuArray, ...]:
    """Cotangents of layer_norm for x, weight and bias."""
    return _norm_backward(device, g, x, weight, epsilon, centered=True)


def rms_norm_backward(
    device: GpuDevice, g: GpuArray, x: GpuArray, weight: GpuArray | None, epsilon: float
) -> tuple[GpuArray, ...]:
    """Cotangents of rms_norm for x and weight."""
    return _norm_backward(device, g, x, weight, epsilon, centered=False)


def _norm_backward(
    device: GpuDevice,
    g: GpuArray,
    x: GpuArray,
    weight: GpuArray | None,
    epsilon: float,
    *,
    centered: bool,
) -> tuple[GpuArray, ...]:
    """Cotangents for x and for the vectors: sums over rows of g times normal, `centered` of g."""
    count = 1 + centered
    length = x.shape[-1]
    if not x.size:
        zero = full(device, (length,), 0.0, x.dtype)
        return (device.empty(x.shape, x.dtype), *[zero] * count)
    rows = [_flat(device, g), _flat(device, x)]
    program = norm_backward_program(weight is not None, centered=centered)
    columns = [] if weight is None else [weight]
    dx, *moments = run(device, program, rows, columns, [epsilon], wide=True)
    stored, many = rows[0].wgsl, rows[0].shape[0]
    tiles = -(-length // COLUMNS)
    parts = max(1, min(2 * ENOUGH_GROUPS // tiles, many // 32))
    per_part = -(-many // parts)
    parts = -(-many // per_part)
    partial = device.empty((parts, count, length), float32)
    params = (tiles * parts, tiles, many, length, per_part, rows[0].offset, rows[1].offset)
    device.launch(
        (column_sums, stored, centered), [*rows, *moments], [partial], params, tiles * parts
    )
    out = device.empty((count, length), x.dtype)
    add_parts(device, partial, out, None, 1)
    vectors = (out.view((length,), (1,), length * i) for i in range(count))
    return dx.view(x.shape, dense_strides(x.shape), 0), *vectors


def cross_entropy(
    device: GpuDevice, formula: Callable[..., GpuArray], x: GpuArray, target: GpuArray
) -> GpuArray:
    """Minus the logarithm of the softmax of each row at its class; rows up to `_TALLIED`."""
    if not _is_tallied(device, x):
        return formula(x, target)
    out = device.empty(target.shape, x.dtype)
    _tally(device, losses.cross_entropy, x, [target], out)
    return out


def cross_entropy_backward(
    device: GpuDevice, formula: Callable[..., GpuArray], g: GpuArray, x: GpuArray, target: GpuArray
) -> GpuArray:
    """The softmax of each row, less 1 at its class, times g; rows up to `_TALLIED`."""
    if not _is_tallied(device, x):
        return formula(g, x, target)
    out = device.empty(x.shape, x.dtype)
    _tally(device, losses.cross_entropy_backward, x, [target, g], out)
    return out


def _is_tallied(device: GpuDevice, x: GpuArray) -> bool:
    return 0 < x.shape[-1] <= (_SOFTWARE_SHORT if device.software else _TALLIED)


def _tally(
    device: GpuDevice,
    kernel: Callable[[str, str], Kernel],
    x: GpuArray,
    others: list[GpuArray],
    out: GpuArray,
) -> None:
    """Launch a kernel that has a thread for each row of x; the others have an element for each."""
    count = x.size // x.shape[-1]
    x = contiguous(device, x)
    lines = [y if len(y.shape) == 1 else contiguous(device, y) for y in others]
    params = [count, x.shape[-1], x.offset]
    for y in lines:
        params += [y.offset, y.strides[0] if len(y.shape) == 1 else 1]
    device.launch(
        (kernel, x.wgsl, lines[0].wgsl), [x, *lines], [out], params, -(-count // WORKGROUP)
    )


ENTRIES: Entries = {
    "cdist": cdist,
    "cosine_similarity": cosine_similarity,
    "layer_norm": layer_norm,
    "layer_norm_backward": layer_norm_backward,
    "log_softmax": _entry(LOG_SOFTMAX),
    "log_softmax_backward": _entry(LOG_SOFTMAX_BACKWARD),
    "logsumexp": logsumexp,
    "rms_norm": rms_norm,
    "rms_norm_backward": rms_norm_backward,
    "softmax": _entry(SOFTMAX),
    "softmax_backward": _entry(SOFTMAX_BACKWARD),
    "vector_norm": lambda device, x, *how: _totals(device, VECTOR_NORM, (x,), *how),
}
PARTIAL: Entries = {
    "cross_entropy": cross_entropy,
    "cross_entropy_backward": cross_entropy_backward,
}
