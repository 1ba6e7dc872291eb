"""Running sums."""

from __future__ import annotations

import math

from phlox_tensor import float32

from ._array import GpuArray, dense_strides
from ._elementwise import merge_axes
from ._kernel import Kernel
from ._runtime import GpuDevice
from ._table import Entries

_WORKGROUP = 256
_ROUND = _WORKGROUP * 4  # elements a workgroup takes at a time
_BLOCK = _ROUND * 16  # elements per workgroup of a row; longer rows are cut into blocks


def cumsum(device: GpuDevice, x: GpuArray, axis: int) -> GpuArray:
    """Running sum along an axis; float16 accumulates in float32."""
    out = device.empty(x.shape, x.dtype)
    if not x.size:
        return out
    order = (*(i for i in range(len(x.shape)) if i != axis), axis)
    source = x.view(tuple(x.shape[i] for i in order), tuple(x.strides[i] for i in order), x.offset)
    strides = dense_strides(x.shape)
    target = out.view(source.shape, tuple(strides[i] for i in order), 0)
    blocks = -(-x.shape[axis] // _BLOCK)
    if blocks == 1:
        _scan(device, source, target, None, False)
        return out
    # The sums of the blocks, their running sum, then every block with what came before it.
    wide = float32 if x.dtype.kind == "Float" else x.dtype
    totals = device.empty((*source.shape[:-1], blocks), wide)
    _scan(device, source, totals, None, True)
    _scan(device, source, target, cumsum(device, totals, len(order) - 1), False)
    return out


def _scan(
    device: GpuDevice, x: GpuArray, out: GpuArray, carry: GpuArray | None, totals: bool
) -> None:
    """One workgroup per row and block. `totals`: store the sum of each block alone."""
    length = x.shape[-1]
    blocks = -(-length // _BLOCK)
    lengths, (read, write) = merge_axes(x.shape[:-1], [x.strides[:-1], out.strides[:-1]])
    rank = len(lengths)
    groups = math.prod(lengths) * blocks
    params = (
        *(x.offset, out.offset, groups, length, blocks),
        *(x.strides[-1], out.strides[-1]),
        *lengths[1:],
        *read,
        *write,
    )
    accumulator = "f32" if x.dtype.kind == "Float" else x.wgsl
    key = (x.wgsl, accumulator, out.wgsl, rank, carry is not None, totals)
    device.launch(
        ("cumsum", *key),
        lambda: _kernel(*key),
        [x] if carry is None else [x, carry],
        [out],
        params,
        groups,
    )


def _kernel(
    source: str, accumulator: str, target: str, rank: int, carried: bool, totals: bool
) -> Kernel:
    lines = []
    for axis in range(rank - 1, -1, -1):
        index = f"i32(rest % p.n{axis})" if axis else "i32(rest)"
        lines.append(f"  at += {index} * p.r{axis};\n  to += {index} * p.w{axis};")
        if axis:
            lines.append(f"  rest /= p.n{axis};")
    load = f"{accumulator}(in0[at + i32(k) * p.read])"
    before = "select(before, in1[row * p.blocks + block - 1u], block > 0u)" if carried else "before"
    store = f"""\
    for (var n = 0u; n < 4u; n++) {{
      let k = k0 + n;
      if (k < end) {{ out0[to + i32(k) * p.write] = {target}(own[n]); }}
    }}
"""
    last = f"  if (lane == 0u) {{ out0[to + i32(block) * p.write] = {target}(before); }}\n"
    body = f"""\
var<workgroup> sums: array<{accumulator}, {_WORKGROUP}>;
@compute @workgroup_size({_WORKGROUP})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {{
  let g = linear_group(group, groups);
  if (g >= p.groups) {{ return; }}
  let block = g % p.blocks;
  let row = g / p.blocks;
  var rest = row;
  var at = p.read_offset;
  var to = p.write_offset;
{chr(10).join(lines)}
  let first = block * {_BLOCK}u;
  let end = min(first + {_BLOCK}u, p.length);
  var before = {accumulator}(0);
  before = {before};
  for (var start = first; start < end; start += {_ROUND}u) {{
    let k0 = start + lane * 4u;
    var own: array<{accumulator}, 4>;
    var sum = {accumulator}(0);
    for (var n = 0u; n < 4u; n++) {{
      let k = k0 + n;
      if (k < end) {{ sum += {load}; }}
      own[n] = sum;
    }}
    sums[lane] = sum;
    workgroupBarrier();
    for (var step = 1u; step < {_WORKGROUP}u; step <<= 1u) {{
      var left = {accumulator}(0);
      if (lane >= step) {{ left = sums[lane - step]; }}
      workgroupBarrier();
      sums[lane] += left;
      workgroupBarrier();
    }}
    var base = before;
    if (lane > 0u) {{ base += sums[lane - 1u]; }}
    for (var n = 0u; n < 4u; n++) {{ own[n] += base; }}
    before += sums[{_WORKGROUP - 1}u];
    workgroupBarrier();
{"" if totals else store}\
  }}
{last if totals else ""}\
}}
"""
    params = (
        ("read_offset", "i32"),
        ("write_offset", "i32"),
        ("groups", "u32"),
        ("length", "u32"),
        ("blocks", "u32"),
        ("read", "i32"),
        ("write", "i32"),
        *((f"n{axis}", "u32") for axis in range(1, rank)),
        *((f"r{axis}", "i32") for axis in range(rank)),
        *((f"w{axis}", "i32") for axis in range(rank)),
    )
    inputs = (source, accumulator) if carried else (source,)
    return Kernel(body, inputs, (target,), params)


ENTRIES: Entries = {"cumsum": cumsum}
