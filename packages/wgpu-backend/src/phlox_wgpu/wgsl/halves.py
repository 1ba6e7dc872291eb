"""Kernels around a product by halves, `cooperative_source`: scales before it, sums after it."""

from __future__ import annotations

from .._kernel import Kernel
from .matmul import BIAS_PARAMS
from .tile import SIGNATURE

_THREADS = 256
_AHEAD = 4  # loads in flight
_TOP = 14  # the exponent that the largest number of a line gets: float16 ends at 16
_SPREAD = 28  # exponents below it down to which both halves keep 22 bits
_LEAST, _MOST = 127 - 60, 127 + 60  # exponents, biased, from which two scales never overflow


def lines_of_group(deep: bool) -> int:
    """How many lines a workgroup of `line_scales` takes."""
    return 8 if deep else 16


def line_scales(deep: bool) -> Kernel:
    """A power of two for each row of an operand, or 0 where halves would lose what it has.

    That is: it holds numbers that are not finite, very large or small ones, or both large and much
    smaller ones. ``deep``: neighbours along the inner dimension lie together in memory.
    """
    lines = lines_of_group(deep)
    lanes = _THREADS // lines
    own, at = f"lane / {lanes}", f"lane % {lanes}"
    first, step = f"own * {lanes}", 1
    if not deep:
        own, at, first, step = f"lane % {lines}", f"lane / {lines}", "own", lines
    loads = []
    for i in range(_AHEAD):
        element = f"in0[base + min(k + {i * lanes}, p.k - 1) * p.depth]"
        loads.append(f"    let u{i} = bitcast<u32>({element}) & 0x7fffffffu;")
        loads.append(f"    high = max(high, u{i}); low = min(low, u{i} - 1u);")
    all_loads = "\n".join(loads)
    body = f"""\
var<workgroup> highs: array<u32, {_THREADS}>;
var<workgroup> lows: array<u32, {_THREADS}>;
{SIGNATURE.format(threads=_THREADS)}\
  let own = {own};
  let at = {at};
  let line = i32(linear_group(group, groups)) * {lines} + own;
  let inside = min(line, p.count - 1);
  let batch = inside / p.length;
  let base = p.offset + batch / p.inner * p.batch1 + batch % p.inner * p.batch0
    + inside % p.length * p.outer;
  var high = 0u;
  var low = 0xffffffffu;  // the least number that is not 0, less 1
  for (var k = at; k < p.k; k += {_AHEAD * lanes}) {{
{all_loads}
  }}
  highs[lane] = high;
  lows[lane] = low;
  workgroupBarrier();
  if (at > 0 || line >= p.count) {{ return; }}
  for (var i = 1; i < {lanes}; i++) {{
    high = max(high, highs[{first} + i * {step}]);
    low = min(low, lows[{first} + i * {step}]);
  }}
  let exponent = high >> 23u;
  var field = 127u;
  if (high > 0u) {{ field = {2 * 127 + _TOP}u - exponent; }}
  let wide = exponent > ((low + 1u) >> 23u) + {_SPREAD}u;
  if (high > 0u && (wide || exponent < {_LEAST}u || exponent > {_MOST}u)) {{ field = 0u; }}
  out0[line] = bitcast<f32>(field << 23u);
}}
"""
    names = ("count", "length", "k", "inner", "offset", "batch1", "batch0", "outer", "depth")
    return Kernel(body, ("f32",), ("f32",), tuple((name, "i32") for name in names))


def scaled_sum(bias: bool) -> Kernel:
    """The sum over the parts of whole tiles, in order, without the scales of rows and columns."""
    inverse = "bitcast<f32>(0x7f000000u - bitcast<u32>({}))"
    value = f"total * {inverse.format('in1[batch * p.m + row]')}"
    value += f" * {inverse.format('in2[batch * p.n + column]')}"
    if bias:
        value += " + in3[p.bias_offset + column * p.bias_stride]"
    body = f"""\
{SIGNATURE.format(threads=_THREADS)}\
  let i = i32(linear_group(group, groups)) * {_THREADS} + lane;
  if (i >= p.size) {{ return; }}
  let column = i % p.n;
  let row = i / p.n % p.m;
  let batch = i / p.n / p.m;
  let at = (batch * p.rows + row) * p.columns + column;
  var total = in0[at];
  for (var part = 1; part < p.parts; part++) {{ total += in0[part * p.part_size + at]; }}
  out0[i] = {value};
}}
"""
    names = ("size", "m", "n", "rows", "columns", "parts", "part_size")
    params = tuple((name, "i32") for name in names) + (BIAS_PARAMS if bias else ())
    return Kernel(body, ("f32",) * (4 if bias else 3), ("f32",), params)
