"""Running sums."""

from __future__ import annotations

import math

from phlox_tensor import DType, float32

from ._array import GpuArray, dense_strides
from ._elementwise import cast
from ._kernel import Kernel
from ._layout import merge_axes
from ._runtime import GpuDevice
from ._table import Entries

_WORKGROUP = 256
_ROUND = _WORKGROUP * 4  # elements that a workgroup takes at a time
_BLOCK = _ROUND * 16  # elements of a row per workgroup; longer rows are cut into blocks
_COLUMN_BLOCK = 128  # elements of a column per thread


def cumsum(device: GpuDevice, x: GpuArray, axis: int) -> GpuArray:
    """Sum up along an axis, in order; float16 accumulates in float32."""
    out = device.empty(x.shape, x.dtype)
    if not x.size:
        return out
    order = (*(i for i in range(len(x.shape)) if i != axis), axis)
    source = x.view(tuple(x.shape[i] for i in order), tuple(x.strides[i] for i in order), x.offset)
    strides = dense_strides(x.shape)
    target = out.view(source.shape, tuple(strides[i] for i in order), 0)
    # Neighboring threads should read neighboring elements: along rows together, or a column each.
    columns = any(
        abs(step) == 1 and n >= 16
        for n, step in zip(source.shape[:-1], source.strides[:-1], strict=True)
    )
    block = _COLUMN_BLOCK if columns else _BLOCK
    if x.shape[axis] <= block:
        _scan(device, source, target, None, block)
        return out
    # The sums of the blocks, their running sum, then every block with what came before it.
    wide = float32 if x.dtype.kind == "Float" else x.dtype
    totals = device.empty((*source.shape[:-1], -(-x.shape[axis] // block)), wide)
    _scan(device, source, totals, None, block, totals=True)
    _scan(device, source, target, cumsum(device, totals, len(order) - 1), block)
    return out


def _scan(
    device: GpuDevice,
    x: GpuArray,
    out: GpuArray,
    carry: GpuArray | None,
    block: int,
    *,
    totals: bool = False,
) -> None:
    """Scan every block of every row on its own; ``totals``: store the sum of each block alone."""
    length = x.shape[-1]
    blocks = -(-length // block)
    lengths, (read, write) = merge_axes(x.shape[:-1], [x.strides[:-1], out.strides[:-1]])
    rank = len(lengths)
    rows = math.prod(lengths)
    params = (
        *(x.offset, out.offset, rows, length, blocks),
        *(x.strides[-1], out.strides[-1]),
        *lengths[1:],
        *read,
        *write,
    )
    accumulator = "f32" if x.dtype.kind == "Float" else x.wgsl
    serial = block == _COLUMN_BLOCK
    key = (x.wgsl, accumulator, out.wgsl, rank, carry is not None, totals, serial)
    device.launch(
        ("cumsum", *key),
        lambda: _kernel(*key),
        [x] if carry is None else [x, carry],
        [out],
        params,
        -(-rows * blocks // _WORKGROUP) if serial else rows * blocks,
    )


def _kernel(
    source: str,
    accumulator: str,
    target: str,
    rank: int,
    carried: bool,
    totals: bool,
    serial: bool,
) -> Kernel:
    load = f"{accumulator}(in0[at + i32(k) * p.read])"
    carry = "in1[row * p.blocks + block - 1u]"
    before = f"  if (block > 0u) {{ before = {carry}; }}\n" if carried else ""
    body = _SERIAL if serial else _TOGETHER
    for name, text in {
        "PLACE": _place(rank),
        "BEFORE": before,
        "LOAD": load,
        "STORE": "" if totals else f"out0[to + i32(k) * p.write] = {target}(VALUE);",
        "TOTAL": f"out0[to + i32(block) * p.write] = {target}(before);" if totals else "",
        "VALUE": "before" if serial else "own[n]",
        "ACC": accumulator,
    }.items():
        body = body.replace(name, text)
    params = (
        ("read_offset", "i32"),
        ("write_offset", "i32"),
        ("rows", "u32"),
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


def _place(rank: int) -> str:
    """Statements that turn `row` into `at` and `to`, where it starts in x and in the result."""
    lines = ["  var rest = row;", "  var at = p.read_offset;", "  var to = p.write_offset;"]
    for axis in range(rank - 1, -1, -1):
        index = f"i32(rest % p.n{axis})" if axis else "i32(rest)"
        lines.append(f"  at += {index} * p.r{axis};\n  to += {index} * p.w{axis};")
        if axis:
            lines.append(f"  rest /= p.n{axis};")
    return "\n".join(lines)


# A thread per block of a column.
_SERIAL = f"""\
@compute @workgroup_size({_WORKGROUP})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {{
  let i = linear_group(group, groups) * {_WORKGROUP}u + lane;
  if (i >= p.rows * p.blocks) {{ return; }}
  let row = i % p.rows;
  let block = i / p.rows;
PLACE
  var before = ACC(0);
BEFORE\
  let end = min((block + 1u) * {_COLUMN_BLOCK}u, p.length);
  for (var k = block * {_COLUMN_BLOCK}u; k < end; k++) {{
    before += LOAD;
    STORE
  }}
  TOTAL
}}
"""

# A workgroup per block of a row: four elements a thread, then the threads' sums by doubling steps.
_TOGETHER = f"""\
var<workgroup> sums: array<ACC, {_WORKGROUP}>;
@compute @workgroup_size({_WORKGROUP})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {{
  let g = linear_group(group, groups);
  if (g >= p.rows * p.blocks) {{ return; }}
  let block = g % p.blocks;
  let row = g / p.blocks;
PLACE
  let first = block * {_BLOCK}u;
  let end = min(first + {_BLOCK}u, p.length);
  var before = ACC(0);
BEFORE\
  for (var start = first; start < end; start += {_ROUND}u) {{
    let k0 = start + lane * 4u;
    var own: array<ACC, 4>;
    var sum = ACC(0);
    for (var n = 0u; n < 4u; n++) {{
      let k = k0 + n;
      if (k < end) {{ sum += LOAD; }}
      own[n] = sum;
    }}
    sums[lane] = sum;
    workgroupBarrier();
    for (var step = 1u; step < {_WORKGROUP}u; step <<= 1u) {{
      var left = ACC(0);
      if (lane >= step) {{ left = sums[lane - step]; }}
      workgroupBarrier();
      sums[lane] += left;
      workgroupBarrier();
    }}
    var base = before;
    if (lane > 0u) {{ base += sums[lane - 1u]; }}
    for (var n = 0u; n < 4u; n++) {{
      own[n] += base;
      let k = k0 + n;
      if (k < end) {{ STORE }}
    }}
    before += sums[{_WORKGROUP - 1}u];
    workgroupBarrier();
  }}
  if (lane == 0u) {{ TOTAL }}
}}
"""


def _cumsum(device: GpuDevice, x: GpuArray, axis: int, dtype: DType) -> GpuArray:
    """Sum up along an axis in a type: the wider of the two floats, where both are."""
    if x.dtype.kind == "Float" and x.dtype.itemsize > dtype.itemsize:
        return cast(device, cumsum(device, x, axis), dtype)
    return cumsum(device, x if x.dtype is dtype else cast(device, x, dtype), axis)


ENTRIES: Entries = {"cumsum": _cumsum}
