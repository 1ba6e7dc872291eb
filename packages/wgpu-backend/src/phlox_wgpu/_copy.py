"""Copies of any view, dense or into a window of another; concat, pad, slices; full, arange."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from phlox_tensor import DType

from ._array import GpuArray, dense_strides
from ._kernel import Kernel
from ._layout import Shape, merge_axes, window
from ._runtime import GpuDevice
from ._table import Entries

WORKGROUP = 256
_TILE = 32
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


def copy_into(device: GpuDevice, x: GpuArray, out: GpuArray) -> None:
    """Write x into `out`, a fresh array or a window of one, of the same shape and type."""
    if not x.size:
        return
    lengths, (read, write) = merge_axes(x.shape, [x.strides, out.strides])
    word = "u32" if x.item_bytes == 4 else "f16"
    if not lengths:
        lengths, read, write = (1,), (1,), (1,)
    if _tileable(lengths, read, write):
        _copy_tiles(device, x, out, lengths, read, write, word)
        return
    offsets = [x.offset, out.offset]
    if _vectors(lengths, read, write, offsets):
        word = f"vec4<{word}>"
        lengths = (*lengths[:-1], lengths[-1] // 4)
        read = (*[s // 4 for s in read[:-1]], 1)
        write = (*[s // 4 for s in write[:-1]], 1)
        offsets = [o // 4 for o in offsets]
    count = math.prod(lengths)
    rank = len(lengths)
    device.launch(
        ("copy", word, rank),
        lambda: _strided(word, rank),
        [x],
        [out],
        (count, *offsets, *lengths[1:], *read, *write),
        -(-count // WORKGROUP),
    )


def _vectors(lengths: Shape, read: Shape, write: Shape, offsets: list[int]) -> bool:
    steps = (*read[:-1], *write[:-1], *offsets, lengths[-1])
    return read[-1] == write[-1] == 1 and all(step % 4 == 0 for step in steps)


def _strided(word: str, rank: int) -> Kernel:
    lines = []
    for axis in range(rank - 1, -1, -1):
        index = f"i32(rest % p.n{axis})" if axis else "i32(rest)"
        lines.append(f"  at += {index} * p.r{axis};\n  to += {index} * p.w{axis};")
        if axis:
            lines.append(f"  rest /= p.n{axis};")
    body = f"""\
@compute @workgroup_size({WORKGROUP})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {{
  let i = linear_group(group, groups) * {WORKGROUP}u + lane;
  if (i >= p.count) {{ return; }}
  var rest = i;
  var at = p.read_offset;
  var to = p.write_offset;
{chr(10).join(lines)}
  out0[to] = in0[at];
}}
"""
    params = (
        ("count", "u32"),
        ("read_offset", "i32"),
        ("write_offset", "i32"),
        *((f"n{axis}", "u32") for axis in range(1, rank)),
        *((f"r{axis}", "i32") for axis in range(rank)),
        *((f"w{axis}", "i32") for axis in range(rank)),
    )
    return Kernel(body, (word,), (word,), params)


def _tileable(lengths: Shape, read: Shape, write: Shape) -> bool:
    """A transpose: written along the last axis, read along another one."""
    if math.prod(lengths) < _TILE_FROM or write[-1] != 1 or read[-1] == 1 or 1 not in read:
        return False
    return min(lengths[-1], lengths[read.index(1)]) >= _TILE // 4


def _copy_tiles(
    device: GpuDevice,
    x: GpuArray,
    out: GpuArray,
    lengths: Shape,
    read: Shape,
    write: Shape,
    word: str,
) -> None:
    """Through tiles in workgroup memory, so that reads and writes both run along memory."""
    last = len(lengths) - 1
    other = read.index(1)
    outer = [axis for axis in range(last) if axis != other]
    tiles = [-(-lengths[last] // _TILE), -(-lengths[other] // _TILE)]
    groups = tiles[0] * tiles[1] * math.prod(lengths[axis] for axis in outer)
    params = (
        x.offset,
        out.offset,
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
    rank = len(outer)
    device.launch(("transpose", word, rank), lambda: _tiled(word, rank), [x], [out], params, groups)


def _tiled(word: str, rank: int) -> Kernel:
    """32x32 tiles, 256 threads, one column of padding against bank conflicts."""
    lines = []
    for axis in range(rank - 1, -1, -1):
        index = f"i32(batch % p.n{axis})"
        lines.append(f"  at += {index} * p.r{axis};\n  to += {index} * p.w{axis};")
        lines.append(f"  batch /= p.n{axis};")
    body = f"""\
var<workgroup> tile: array<{word}, {_TILE * (_TILE + 1)}>;
@compute @workgroup_size({WORKGROUP})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {{
  let g = linear_group(group, groups);
  if (g >= p.groups) {{ return; }}
  let a0 = (g % p.tiles_a) * {_TILE}u;
  let b0 = ((g / p.tiles_a) % p.tiles_b) * {_TILE}u;
  var batch = g / (p.tiles_a * p.tiles_b);
  var at = p.read_offset;
  var to = p.write_offset;
{chr(10).join(lines)}
  let x = lane % {_TILE}u;
  for (var y = lane / {_TILE}u; y < {_TILE}u; y += {WORKGROUP // _TILE}u) {{
    let a = a0 + y;
    let b = b0 + x;
    if (a < p.length_a && b < p.length_b) {{
      tile[y * {_TILE + 1}u + x] = in0[at + i32(a) * p.read_a + i32(b)];
    }}
  }}
  workgroupBarrier();
  for (var y = lane / {_TILE}u; y < {_TILE}u; y += {WORKGROUP // _TILE}u) {{
    let a = a0 + x;
    let b = b0 + y;
    if (a < p.length_a && b < p.length_b) {{
      out0[to + i32(a) + i32(b) * p.write_b] = tile[x * {_TILE + 1}u + y];
    }}
  }}
}}
"""
    params = (
        ("read_offset", "i32"),
        ("write_offset", "i32"),
        ("groups", "u32"),
        ("tiles_a", "u32"),
        ("tiles_b", "u32"),
        ("length_a", "u32"),
        ("length_b", "u32"),
        ("read_a", "i32"),
        ("write_b", "i32"),
        *((f"n{axis}", "u32") for axis in range(rank)),
        *((f"r{axis}", "i32") for axis in range(rank)),
        *((f"w{axis}", "i32") for axis in range(rank)),
    )
    return Kernel(body, (word,), (word,), params)


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
    device.launch(("fill",), _fill, [], [out], (count, bits), -(-count // WORKGROUP))
    return out


def _fill() -> Kernel:
    body = f"""\
@compute @workgroup_size({WORKGROUP})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {{
  let i = linear_group(group, groups) * {WORKGROUP}u + lane;
  if (i < p.count) {{ out0[i] = vec4<u32>(p.bits); }}
}}
"""
    return Kernel(body, (), ("vec4<u32>",), (("count", "u32"), ("bits", "u32")))


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


ENTRIES: Entries = {
    "arange": arange,
    "concat": concat,
    "contiguous": contiguous,
    "full": full,
    "pad": pad,
    "slice_scatter": slice_scatter,
}
