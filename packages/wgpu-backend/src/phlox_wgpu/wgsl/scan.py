"""Kernels of running sums, and of the largest and the smallest element so far."""

from __future__ import annotations

from .._kernel import Kernel
from .tile import SIGNATURE
from .walk import WORKGROUP, Params, coordinates, lengths, strides

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
  var before = NONE;
BEFORE\
  let end = min((block + 1u) * {COLUMN_BLOCK}u, p.length);
  for (var k = block * {COLUMN_BLOCK}u; k < end; k++) {{
    before = joined(before, LOAD);
    STORE
  }}
  TOTAL
}}
"""

# A workgroup per block of a row: four elements a thread, then the threads' sums by doubling steps.
_TOGETHER = f"""\
var<workgroup> sums: array<ITEM, {2 * WORKGROUP}>;
{SIGNATURE.format(threads=WORKGROUP)}\
  let g = linear_group(group, groups);
  if (g >= p.rows * p.blocks) {{ return; }}
  let block = g % p.blocks;
  let row = g / p.blocks;
PLACE
  let first = block * {BLOCK}u;
  let end = min(first + {BLOCK}u, p.length);
  var before = NONE;
BEFORE\
  for (var start = first; start < end; start += {_ROUND}u) {{
    let k0 = start + lane_index * 4u;
    var own: array<ITEM, 4>;
    var sum = NONE;
FETCH\
    var at_step = 0u;
    sums[lane_index] = sum;
    workgroupBarrier();
    for (var step = 1u; step < {WORKGROUP}u; step <<= 1u) {{
      var left = NONE;
      if (lane_index >= step) {{ left = sums[at_step + lane_index - step]; }}
      sum = joined(left, sum);
      at_step = {WORKGROUP}u - at_step;
      sums[at_step + lane_index] = sum;
      workgroupBarrier();
    }}
    var base = before;
    if (lane_index > 0u) {{ base = joined(base, sums[at_step + lane_index - 1u]); }}
    for (var n = 0u; n < 4u; n++) {{ own[n] = joined(base, own[n]); }}
KEEP\
    before = joined(before, sums[at_step + {WORKGROUP - 1}u]);
    workgroupBarrier();
  }}
  if (lane_index == 0u) {{ TOTAL }}
}}
"""


# How a thread reads its four elements, and what it stores of them.
_FETCH = """\
    for (var n = 0u; n < 4u; n++) {
      let k = k0 + n;
      if (k < end) { sum = joined(sum, LOAD); }
      own[n] = sum;
    }
"""
_KEEP = """\
    for (var n = 0u; n < 4u; n++) {
      let k = k0 + n;
      if (k < end) { STORE }
    }
"""
# The same at once, where four elements lie together and end with the row.
_FETCH_FOUR = """\
    if (k0 < end) {
      let four = vec4<ACC>(in0[(at + i32(k0)) / 4]);
      for (var n = 0u; n < 4u; n++) {
        sum = joined(sum, four[n]);
        own[n] = sum;
      }
    }
"""
_KEEP_FOUR = """\
    if (k0 < end) {
      out0[(to + i32(k0)) / 4] = vec4<TARGET>(vec4<ACC>(own[0], own[1], own[2], own[3]));
    }
"""


LOG_SUM = "logaddexp_f(a, b)"
BETTER = (">=", "<=")

_SUM = """\
fn joined(a: ACC, b: ACC) -> ACC { return JOINED; }
"""
# An element and where it is; the later one of equals, and nan before all.
_BEST = """\
struct Best { value: ACC, place: i32 }
fn joined(a: Best, b: Best) -> Best {
  if (b.place < 0) { return a; }
  if (a.place < 0 || NAN_B || (BETTER && !NAN_A)) { return b; }
  return a;
}
"""


def _params(rank: int) -> Params:
    return (
        *(("read_offset", "i32"), ("write_offset", "i32")),
        *(("rows", "u32"), ("length", "u32"), ("blocks", "u32")),
        *(("read", "i32"), ("write", "i32")),
        *lengths(rank),
        *strides("r", range(rank)),
        *strides("w", range(rank)),
    )


def running(
    joined: str,
    source: str,
    accumulator: str,
    target: str,
    rank: int,
    carried: bool,
    totals: bool,
    serial: bool,
    fours: bool,
) -> Kernel:
    """Every block of every row on its own, a thread each (`serial`) or a workgroup each.

    `fours`: a thread reads and writes four elements at once; sums alone, by workgroups.

    `joined`: what two elements a and b come to; or how an element relates to the best one before
    it. The places are the second output then. Inputs x and, where `carried`, what came before each
    block. `totals`: only what the block comes to is stored.
    """
    fetch = f"{accumulator}(in0[at + i32(k) * p.read])"
    if joined not in BETTER:
        none = "-inf_f32()" if joined == LOG_SUM else "ACC(0)"
        head, item, load = _SUM, "ACC", fetch
        carry = "in1[row * p.blocks + block - 1u]"
        parts, before_them = [""], [accumulator]
    else:
        head, item, none = _BEST, "Best", "Best(ACC(0), -1)"
        load = f"Best({fetch}, i32(k))"
        # The best blocks so far, which of them it is, and where in the row its best element is.
        last = "row * p.blocks + block - 1u"
        carry = f"Best(in1[{last}], in3[row * p.blocks + u32(in2[{last}])])"
        parts, before_them = [".value", ".place"], [accumulator, "i32", "i32"]
    stored = (target, "i32")[: len(parts)]
    floats = accumulator == "f32"
    before = f"  if (block > 0u) {{ before = {carry}; }}\n" if carried else ""

    def store(place: str, value: str) -> str:
        return " ".join(
            f"out{n}[to + i32({place}) * p.write] = {element}({value}{part});"
            for n, (part, element) in enumerate(zip(parts, stored, strict=True))
        )

    body = head + (_SERIAL if serial else _TOGETHER)
    for name, text in {
        "FETCH": _FETCH_FOUR if fours else _FETCH,
        "KEEP": _KEEP_FOUR if fours else _KEEP,
        "PLACE": _START + "\n".join(coordinates(rank, {"at": "r", "to": "w"})),
        "BEFORE": before,
        "LOAD": load,
        "STORE": "" if totals else store("k", "before" if serial else "own[n]"),
        "TOTAL": store("block", "before") if totals else "",
        "BETTER": f"b.value {joined} a.value",
        "JOINED": joined,
        "NAN_A": "is_nan_f32(a.value)" if floats else "false",
        "NAN_B": "is_nan_f32(b.value)" if floats else "false",
        "ITEM": item,
        "NONE": none,
        "ACC": accumulator,
        "TARGET": target,
    }.items():
        body = body.replace(name, text)
    if fours:
        source, stored = f"vec4<{source}>", (f"vec4<{target}>",)
    return Kernel(body, (source, *(before_them if carried else ())), stored, _params(rank))
