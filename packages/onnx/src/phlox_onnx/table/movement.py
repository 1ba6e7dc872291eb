"""Ops that give the same elements in other places, and those that make shapes."""

from __future__ import annotations

from math import prod
from typing import Any, Final, Literal

import numpy as np

import phlox_tensor as px
from phlox_tensor import Tensor

from .._errors import OnnxError
from ..read._limits import refuse_long
from ..read._types import to_type
from ._row import Host, Ints, Raw, Row, Scalar, row, whole
from .axes import axis_of
from .unchanged import alone, always

T = Tensor[Any]
Order = Literal["DCR", "CRD"]
PadMode = Literal["constant", "edge", "reflect", "wrap"]


def identity(input: Raw) -> Raw:
    return input


def shape(data: Raw, *, start: int = 0, end: int | None = None) -> Host:
    """Sizes are whole numbers of the host, wherever the tensor is."""
    return np.array(data.shape[start:end], np.int64)


def size(data: Raw) -> Host:
    return np.array(prod(data.shape), np.int64)


def new_shape(given: Ints, old: tuple[int, ...], allowzero: int) -> tuple[int, ...]:
    """The sizes that Reshape asks for, where 0 is the size from before."""
    if allowzero:
        return given
    return tuple(old[i] if n == 0 else n for i, n in enumerate(given))


def reshape(data: T, shape: Ints, *, allowzero: int = 0) -> T:
    return data.reshape(new_shape(shape, data.shape, allowzero))


def _host_reshape(data: Host, shape: Host, *, allowzero: int = 0) -> Host:
    return data.reshape(new_shape(whole(shape), data.shape, allowzero))


def flatten(input: T, *, axis: int = 1) -> T:
    axis = (
        axis_of("Flatten", axis, input.ndim + 1)
        if axis >= 0
        else axis_of("Flatten", axis, input.ndim)
    )
    return input.reshape((prod(input.shape[:axis]), prod(input.shape[axis:])))


def transpose(data: T, *, perm: Ints | None = None) -> T:
    return data.permute_dims(tuple(reversed(range(data.ndim))) if perm is None else perm)


def _host_transpose(data: Host, *, perm: Ints | None = None) -> Host:
    return np.transpose(data, perm)


def squeeze(data: T, axes: Ints | None = None) -> T:
    chosen = tuple(i for i, n in enumerate(data.shape) if n == 1) if axes is None else axes
    return data.squeeze(chosen) if chosen else data


def _host_squeeze(data: Host, axes: Host | None = None) -> Host:
    return np.squeeze(data, None if axes is None else whole(axes))


def unsqueeze(data: T, axes: Ints) -> T:
    return data.expand_dims(axis=axes) if axes else data


def _host_unsqueeze(data: Host, axes: Host) -> Host:
    return np.expand_dims(data, whole(axes))


def concat(*inputs: T, axis: int) -> T:
    kept = [x for x in inputs if x.size] or list(inputs[:1])
    return kept[0] if len(kept) == 1 else px.concat(kept, axis=axis)


def _host_concat(*inputs: Host, axis: int) -> Host:
    return np.concatenate(inputs, axis)


def split(
    input: T, split: Ints | None = None, *, axis: int = 0, num_outputs: int = 0, outputs: int
) -> tuple[T, ...]:
    """In equal parts, of which the last may be smaller, or in parts of given sizes."""
    if split is None:
        count = num_outputs or outputs
        each = -(-input.shape[axis] // count)
        last = input.shape[axis] - each * (count - 1)
        split = (*(each,) * (count - 1), last)
    if len(split) != outputs:
        raise OnnxError("Split", "parts that no result takes", got=len(split), expected=outputs)
    return tuple(px.split(input, list(split), axis=axis))


def _slices(
    rank: int, starts: Ints, ends: Ints, axes: Ints | None, steps: Ints | None
) -> tuple[slice, ...]:
    out = [slice(None)] * rank
    chosen = tuple(range(len(starts))) if axes is None else axes
    lists = (starts, ends, chosen, starts if steps is None else steps)
    if len({len(each) for each in lists}) > 1:
        raise OnnxError("Slice", "lists of unlike lengths", got=tuple(map(len, lists)))
    for i, (start, end) in enumerate(zip(starts, ends, strict=True)):
        axis = axis_of("Slice", chosen[i], rank)
        out[axis] = slice(start, end, 1 if steps is None else steps[i])
    return tuple(out)


def slice_(
    data: T, starts: Ints, ends: Ints, axes: Ints | None = None, steps: Ints | None = None
) -> T:
    found = _slices(data.ndim, starts, ends, axes, steps)
    return data[tuple(_within(s, n) for s, n in zip(found, data.shape, strict=True))]


def _within(asked: slice, n: int) -> slice:
    """The same elements with bounds that fit a size: files use the largest of all integers.

    What counts down begins at the first element where its start lies before that.
    """
    start, stop, step = asked.indices(n)
    return slice(max(start, 0), None if stop < 0 else stop, step)


def _host_slice(
    data: Host, starts: Host, ends: Host, axes: Host | None = None, steps: Host | None = None
) -> Host:
    given = [None if v is None else whole(v) for v in (axes, steps)]
    found = _slices(data.ndim, whole(starts), whole(ends), *given)
    return data[tuple(_within(s, n) for s, n in zip(found, data.shape, strict=True))]


def expand(input: T, shape: Ints) -> T:
    """The result has the shape in which both meet."""
    return input.broadcast_to(px.broadcast_shapes(input.shape, shape))


def _host_expand(input: Host, shape: Host) -> Host:
    return np.broadcast_to(input, np.broadcast_shapes(input.shape, whole(shape)))


def tile(input: T, repeats: Ints) -> T:
    if len(repeats) != input.ndim:
        raise OnnxError("Tile", "a number for each axis", got=repeats, expected=input.ndim)
    return px.tile(input, repeats)


def constant_of_shape(input: Host, *, value: Any = None) -> Any:
    """An array of one number, which takes no memory before it is used."""
    one = np.zeros(1, np.float32) if value is None else value
    return np.broadcast_to(one.reshape(()), whole(input))


def _constant_on(input: Ints, *, value: Any = None, device: Any) -> T:
    one = np.zeros(1, np.float32) if value is None else value
    dtype = px.as_dtype(one.dtype)
    if dtype not in device.dtypes and dtype.kind == "Int":
        dtype = device.default_int
    return px.full(input, one.reshape(()).item(), dtype=dtype, device=device)


def _steps(start: Scalar, limit: Scalar, delta: Scalar) -> int:
    return max(0, int(np.ceil((limit - start) / delta)))


def range_(start: Host, limit: Host, delta: Host, *, stash_type: int = 1, device: Any) -> T:
    first, last, step = (v.reshape(()).item() for v in (start, limit, delta))
    count = _steps(first, last, step)
    dtype = px.as_dtype(start.dtype)
    dtype = dtype if dtype in device.dtypes else device.default_int
    line = px.arange(count, device=device)
    short = dtype.kind == "Float" and dtype.itemsize < to_type(stash_type).itemsize
    wide = to_type(stash_type) if short else dtype
    return (line.astype(wide) * step + first).astype(dtype)


def _host_range(start: Host, limit: Host, delta: Host, *, stash_type: int = 1) -> Any:
    """Numbers of the host are wide enough for any ``stash_type``."""
    first, last, step = (v.reshape(()).item() for v in (start, limit, delta))
    return (np.arange(_steps(first, last, step)) * step + first).astype(start.dtype)


def pad(
    data: T,
    pads: Ints,
    constant_value: Raw = None,
    axes: Ints | None = None,
    *,
    mode: PadMode = "constant",
) -> T:
    """Negative pads cut."""
    chosen = tuple(range(data.ndim)) if axes is None else axes
    low, high = [0] * data.ndim, [0] * data.ndim
    if len(pads) != 2 * len(chosen):
        got = f"{len(pads)} for {len(chosen)} axes"
        raise OnnxError("Pad", "not two numbers for each axis", got=got, expected=2 * len(chosen))
    for i, axis in enumerate(axis_of("Pad", a, data.ndim) for a in chosen):
        low[axis], high[axis] = pads[i], pads[i + len(chosen)]
    cut = tuple(
        slice(max(0, -a), n - max(0, -b)) for a, b, n in zip(low, high, data.shape, strict=True)
    )
    if any(a < 0 for a in (*low, *high)):
        data = data[cut]
    sides = tuple((max(0, a), max(0, b)) for a, b in zip(low, high, strict=True))
    if mode == "constant":
        value = 0 if constant_value is None else _number(constant_value, data)
        return data.pad(sides, value) if data.ndim else data
    for axis, (a, b) in enumerate(sides):
        if a or b:
            places = _bordered(data.shape[axis], a, b, mode)
            indices = px.asarray(places, dtype=data.device.default_int, device=data.device)
            data = data.take(indices, axis=axis)
    return data


def _number(value: Any, data: T) -> Any:
    found = (value if isinstance(value, np.ndarray) else value.numpy()).reshape(()).item()
    return float(found) if data.dtype.kind == "Float" else found


def _bordered(n: int, low: int, high: int, mode: str) -> Any:
    """Where each element of a padded line comes from."""
    refuse_long("Pad", max(1, n + low + high))
    return np.pad(np.arange(n), (low, high), mode=mode)  # type: ignore[call-overload]


def depth_to_space(input: T, *, blocksize: int, mode: Order = "DCR") -> T:
    n, c, h, w = input.shape
    b = blocksize
    if mode == "DCR":
        x = input.reshape((n, b, b, c // (b * b), h, w)).permute_dims((0, 3, 4, 1, 5, 2))
    else:
        x = input.reshape((n, c // (b * b), b, b, h, w)).permute_dims((0, 1, 4, 2, 5, 3))
    return x.reshape((n, c // (b * b), h * b, w * b))


def space_to_depth(input: T, *, blocksize: int, mode: Order = "DCR") -> T:
    n, c, h, w = input.shape
    b = blocksize
    x = input.reshape((n, c, h // b, b, w // b, b))
    order = (0, 3, 5, 1, 2, 4) if mode == "DCR" else (0, 1, 3, 5, 2, 4)
    return x.permute_dims(order).reshape((n, c * b * b, h // b, w // b))


def trilu(input: T, k: Ints | None = None, *, upper: int = 1) -> T:
    diagonal = k[0] if k else 0
    rows, columns = input.shape[-2:]
    kept = np.arange(columns) - np.arange(rows)[:, None]
    mask = px.asarray(kept >= diagonal if upper else kept <= diagonal, device=input.device)
    if input.dtype.kind == "Bool":
        return input & mask
    return mask.where(input, 0.0 if input.dtype.kind == "Float" else 0)


def eye_like(input: T, *, dtype: int | None = None, k: int = 0) -> T:
    chosen = input.dtype if dtype is None else to_type(dtype)
    return px.eye(*input.shape, k=k, dtype=px.float32, device=input.device).astype(chosen)


def center_crop_pad(input_data: T, shape: Ints, *, axes: Ints | None = None) -> T:
    chosen = tuple(range(input_data.ndim)) if axes is None else axes
    cut = [slice(None)] * input_data.ndim
    sides = [(0, 0)] * input_data.ndim
    for axis, wanted in zip(chosen, shape, strict=True):
        n = input_data.shape[axis]
        if n > wanted:
            first = (n - wanted) // 2
            cut[axis] = slice(first, first + wanted)
        else:
            low = (wanted - n) // 2
            sides[axis] = (low, wanted - n - low)
    return input_data[tuple(cut)].pad(tuple(sides), 0)


def reverse_sequence(
    input: T, sequence_lens: Host, *, batch_axis: int = 1, time_axis: int = 0
) -> T:
    """The first elements of each sequence in the opposite order."""
    steps = input.shape[time_axis]
    line = np.arange(steps)
    lengths = sequence_lens.astype(np.int64)[:, None]
    places = np.where(line < lengths, lengths - 1 - line, line)  # (batch, time)
    if batch_axis > time_axis:
        places = places.T
    sizes = [1] * input.ndim
    sizes[batch_axis], sizes[time_axis] = input.shape[batch_axis], steps
    indices = np.broadcast_to(places.reshape(sizes), input.shape)
    at = px.asarray(indices, dtype=input.device.default_int, device=input.device)
    return input.take_along_axis(at, axis=time_axis)


def align(A: T, B: T, *, axis: int) -> T:
    """The second operand with ones behind, so that it lies along axes of the first."""
    at = axis_of("Align", axis, A.ndim)
    if B.ndim + at >= A.ndim or (axis == 1 and B.ndim != 1 and B.ndim + at > A.ndim):
        return B
    return B.reshape((*B.shape, *(1,) * (A.ndim - at - B.ndim)))


def tile_axis(input: T, tiles: Ints, axis: Ints) -> T:
    return px.tile(input, tuple(tiles[0] if i == axis[0] else 1 for i in range(input.ndim)))


ROWS: Final[dict[str, Row]] = {
    "CenterCropPad": row(18, center_crop_pad, file_sized=True),
    "Concat": row(13, concat, host=_host_concat, movement=True, same=alone),
    "ConstantOfShape": row(25, _constant_on, host=constant_of_shape, file_sized=True, scalar=True),
    "DepthToSpace": row(28, depth_to_space, movement=True),
    "Expand": row(13, expand, host=_host_expand, movement=True, file_sized=True),
    "EyeLike": row(22, eye_like, file_sized=True),
    "Flatten": row(25, flatten, movement=True),
    "Identity": row(25, identity, host=lambda v: v, movement=True, same=always),
    "Pad": row(25, pad, movement=True, file_sized=True),
    "Range": row(27, range_, host=_host_range, file_sized=True),
    "Reshape": row(25, reshape, host=_host_reshape, movement=True, scalar=True),
    "ReverseSequence": row(28, reverse_sequence),
    "Shape": row(25, shape, measures=True),
    "Size": row(25, size, measures=True, scalar=True),
    "Slice": row(13, slice_, host=_host_slice, movement=True),
    "SpaceToDepth": row(28, space_to_depth, movement=True),
    "Split": row(18, split, movement=True),
    "Squeeze": row(25, squeeze, host=_host_squeeze, movement=True, scalar=True),
    "Tile": row(13, tile, movement=True, file_sized=True),
    "Transpose": row(25, transpose, host=_host_transpose, movement=True),
    "Trilu": row(14, trilu),
    "Unsqueeze": row(25, unsqueeze, host=_host_unsqueeze, movement=True),
}
OWN_ROWS: Final[dict[str, Row]] = {
    "Align": row(1, align, movement=True),
    "TileAxis": row(1, tile_axis, file_sized=True),
}
