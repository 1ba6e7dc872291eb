"""Kernels that read at indices."""

from __future__ import annotations

from .._kernel import Kernel
from .tile import SIGNATURE
from .walk import index_of, walk_params, walk_source

GATHER_PARAMS = (("x_offset", "i32"), ("i_offset", "i32"), ("length", "i32"), ("step", "i32"))


def gather(op: str, word: str, index: str, rank: int) -> Kernel:
    """Out = x at the index; a walk over (x without its axis, indices).

    Parameters: the walk's, `GATHER_PARAMS`.
    """
    names = ("x", "i")
    body = f"""\
  let k = i32(checked_index({index_of(index, "in1[p.i_offset + at_i]")}, p.length));
  out0[i] = in0[p.x_offset + at_x + k * p.step];
"""
    return Kernel(
        walk_source(names, rank, body),
        (word, index),
        (word,),
        (*walk_params(names, rank), *GATHER_PARAMS),
        index_errors=op,
    )


# A workgroup of `count_true` and `write_true` takes this many elements, four per thread.
MASK_BLOCK = 1024
MASK_PARAMS = (("size", "i32"), ("offset", "i32"), ("step", "i32"), ("groups", "u32"))

_MINE = """\
  let block = linear_group(group, groups);
  if (block >= p.groups) { return; }
  let first = i32(block) * 1024 + lane * 4;
  var mine: array<u32, 4>;
  var count = 0u;
  for (var j = 0; j < 4; j++) {
    mine[j] = 0u;
    if (first + j < p.size) { mine[j] = min(in0[p.offset + (first + j) * p.step], 1u); }
    count += mine[j];
  }
"""
# Doubling steps: afterwards counts[lane] is the sum up to and with this thread.
_PREFIX = """\
  counts[lane] = count;
  workgroupBarrier();
  for (var reach = 1; reach < 256; reach *= 2) {
    var before = 0u;
    if (lane >= reach) { before = counts[lane - reach]; }
    workgroupBarrier();
    counts[lane] += before;
    workgroupBarrier();
  }
"""


def count_true() -> Kernel:
    """How many elements of each block are True."""
    body = f"""\
var<workgroup> counts: array<u32, 256>;
{SIGNATURE.format(threads=256)}{_MINE}{_PREFIX}\
  if (lane == 255) {{ out0[block] = counts[255]; }}
}}
"""
    return Kernel(body, ("u32",), ("u32",), MASK_PARAMS)


def write_true() -> Kernel:
    """The positions of True; in1 is the running sum of the counts of the blocks."""
    body = f"""\
var<workgroup> counts: array<u32, 256>;
{SIGNATURE.format(threads=256)}{_MINE}{_PREFIX}\
  var at = counts[lane] - count;
  if (block > 0u) {{ at += in1[block - 1u]; }}
  for (var j = 0; j < 4; j++) {{
    if (mine[j] == 1u) {{
      out0[at] = first + j;
      at += 1u;
    }}
  }}
}}
"""
    return Kernel(body, ("u32", "u32"), ("i32",), MASK_PARAMS)
