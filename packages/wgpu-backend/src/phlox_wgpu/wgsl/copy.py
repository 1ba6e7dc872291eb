"""Kernels that move elements, bit for bit, from any strides to any strides; fills."""

from __future__ import annotations

from .._kernel import Kernel
from .tile import SIGNATURE
from .walk import WORKGROUP, coordinates, lengths, strides

TILE = 32
_ROWS = WORKGROUP // TILE  # rows of a tile that a workgroup moves at once
_OFFSETS = (("read_offset", "i32"), ("write_offset", "i32"))
_PLACES = {"at": "r", "to": "w"}
_START = """\
  var at = p.read_offset;
  var to = p.write_offset;
"""


def strided(word: str, rank: int, add: bool) -> Kernel:
    """A thread per element or vector; parameters count, offsets, lengths, strides read, written.

    `add`: to what is there.
    """
    body = f"""\
{SIGNATURE.format(threads=WORKGROUP)}\
  let i = linear_group(group, groups) * {WORKGROUP}u + lane_index;
  if (i >= p.count) {{ return; }}
  var rest = i;
{_START}\
{chr(10).join(coordinates(rank, _PLACES))}
  out0[to] {"+" * add}= in0[at];
}}
"""
    axes = range(rank)
    params = (("count", "u32"), *_OFFSETS, *lengths(rank), *strides("r", axes), *strides("w", axes))
    return Kernel(body, (word,), (word,), params)


TILED_PARAMS = (
    *_OFFSETS,
    *(("groups", "u32"), ("tiles_a", "u32"), ("tiles_b", "u32")),
    *(("length_a", "u32"), ("length_b", "u32"), ("read_a", "i32"), ("write_b", "i32")),
)


def tiled(word: str, rank: int) -> Kernel:
    """Square tiles through workgroup memory, so that reads and writes both run along memory.

    Axis a is written along memory, axis b read; `rank` counts the others, whose lengths and strides
    follow `TILED_PARAMS`. A column of padding avoids bank conflicts.
    """
    body = f"""\
var<workgroup> tile: array<{word}, {TILE * (TILE + 1)}>;
{SIGNATURE.format(threads=WORKGROUP)}\
  let g = linear_group(group, groups);
  if (g >= p.groups) {{ return; }}
  let a0 = (g % p.tiles_a) * {TILE}u;
  let b0 = ((g / p.tiles_a) % p.tiles_b) * {TILE}u;
  var rest = g / (p.tiles_a * p.tiles_b);
{_START}\
{chr(10).join(coordinates(rank, _PLACES, bounded=False))}
  let x = lane_index % {TILE}u;
  for (var y = lane_index / {TILE}u; y < {TILE}u; y += {_ROWS}u) {{
    let a = a0 + y;
    let b = b0 + x;
    if (a < p.length_a && b < p.length_b) {{
      tile[y * {TILE + 1}u + x] = in0[at + i32(a) * p.read_a + i32(b)];
    }}
  }}
  workgroupBarrier();
  for (var y = lane_index / {TILE}u; y < {TILE}u; y += {_ROWS}u) {{
    let a = a0 + x;
    let b = b0 + y;
    if (a < p.length_a && b < p.length_b) {{
      out0[to + i32(a) + i32(b) * p.write_b] = tile[x * {TILE + 1}u + y];
    }}
  }}
}}
"""
    axes = range(rank)
    outer = (*lengths(rank, first=0), *strides("r", axes), *strides("w", axes))
    return Kernel(body, (word,), (word,), (*TILED_PARAMS, *outer))


def fill() -> Kernel:
    """One word to all of an array, four at a time."""
    body = f"""\
{SIGNATURE.format(threads=WORKGROUP)}\
  let i = linear_group(group, groups) * {WORKGROUP}u + lane_index;
  if (i < p.count) {{ out0[i] = vec4<u32>(p.bits); }}
}}
"""
    return Kernel(body, (), ("vec4<u32>",), (("count", "u32"), ("bits", "u32")))
