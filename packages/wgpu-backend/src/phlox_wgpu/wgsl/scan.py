"""Kernels of running sums."""

from __future__ import annotations

from .._kernel import Kernel
from .tile import SIGNATURE
from .walk import WORKGROUP, coordinates, lengths, strides

_ROUND = WORKGROUP * 4  # elements that a workgroup takes at a time
BLOCK = _ROUND * 16  # elements of a row per workgroup; longer rows are cut into blocks
COLUMN_BLOCK = 128  # elements of a column per thread

_START = """\
  var rest = row;
  var at = p.read_offset;
  var to = p.write_offset;
"""


# A thread per block of a column.
_SERIAL = f"""\
{SIGNATURE.format(threads=WORKGROUP)}\
  let i = linear_group(group, groups) * {WORKGROUP}u + lane_index;
  if (i >= p.rows * p.blocks) {{ return; }}
  let row = i % p.rows;
  let block = i / p.rows;
PLACE
  var before = ACC(0);
BEFORE\
  let end = min((block + 1u) * {COLUMN_BLOCK}u, p.length);
  for (var k = block * {COLUMN_BLOCK}u; k < end; k++) {{
    before += LOAD;
    STORE
  }}
  TOTAL
}}
"""

# A workgroup per block of a row: four elements a thread, then the threads' sums by doubling steps.
_TOGETHER = f"""\
var<workgroup> sums: array<ACC, {WORKGROUP}>;
{SIGNATURE.format(threads=WORKGROUP)}\
  let g = linear_group(group, groups);
  if (g >= p.rows * p.blocks) {{ return; }}
  let block = g % p.blocks;
  let row = g / p.blocks;
PLACE
  let first = block * {BLOCK}u;
  let end = min(first + {BLOCK}u, p.length);
  var before = ACC(0);
BEFORE\
  for (var start = first; start < end; start += {_ROUND}u) {{
    let k0 = start + lane_index * 4u;
    var own: array<ACC, 4>;
    var sum = ACC(0);
    for (var n = 0u; n < 4u; n++) {{
      let k = k0 + n;
      if (k < end) {{ sum += LOAD; }}
      own[n] = sum;
    }}
    sums[lane_index] = sum;
    workgroupBarrier();
    for (var step = 1u; step < {WORKGROUP}u; step <<= 1u) {{
      var left = ACC(0);
      if (lane_index >= step) {{ left = sums[lane_index - step]; }}
      workgroupBarrier();
      sums[lane_index] += left;
      workgroupBarrier();
    }}
    var base = before;
    if (lane_index > 0u) {{ base += sums[lane_index - 1u]; }}
    for (var n = 0u; n < 4u; n++) {{
      own[n] += base;
      let k = k0 + n;
      if (k < end) {{ STORE }}
    }}
    before += sums[{WORKGROUP - 1}u];
    workgroupBarrier();
  }}
  if (lane_index == 0u) {{ TOTAL }}
}}
"""


def running_sum(
    source: str,
    accumulator: str,
    target: str,
    rank: int,
    carried: bool,
    totals: bool,
    serial: bool,
) -> Kernel:
    """Every block of every row on its own, a thread each (`serial`) or a workgroup each.

    Inputs x and, where `carried`, the running sums of the blocks. `totals`: the sum of each block
    is stored alone.
    """
    load = f"{accumulator}(in0[at + i32(k) * p.read])"
    carry = "in1[row * p.blocks + block - 1u]"
    before = f"  if (block > 0u) {{ before = {carry}; }}\n" if carried else ""
    body = _SERIAL if serial else _TOGETHER
    for name, text in {
        "PLACE": _START + "\n".join(coordinates(rank, {"at": "r", "to": "w"})),
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
        *lengths(rank),
        *strides("r", range(rank)),
        *strides("w", range(rank)),
    )
    inputs = (source, accumulator) if carried else (source,)
    return Kernel(body, inputs, (target,), params)
