"""Kernels that write at indices, none of which depends on the order in which threads run.

- set: every index claims its destination with the largest place, so the last value in order stays;
- integer sums and products, extremes: atomics, whose result does not depend on order (floats by
  ordered keys);
- float sums and products, which round: each destination adds its updates in their order. A
  compare-and-swap loop would be shorter, and would give other bits from run to run. Few updates:
  every destination looks at all indices. Many: the indices are sorted first, and every destination
  finds its run of them by bisection.
"""

from __future__ import annotations

from .._kernel import Kernel
from .walk import index_of, walk_params, walk_source

Params = tuple[tuple[str, str], ...]

_INDEX: Params = (("i_offset", "i32"), ("length", "i32"))
CLAIM_PARAMS: Params = (*_INDEX, ("step", "i32"))
KEEP_PARAMS: Params = (("x_offset", "i32"), ("v_offset", "i32"), ("step", "i32"))
ATOMIC_PARAMS: Params = (*_INDEX, ("v_offset", "i32"), ("step", "i32"))
SCAN_PARAMS: Params = (
    *_INDEX,
    *(("x_offset", "i32"), ("v_offset", "i32"), ("count", "i32"), ("i_step", "i32")),
    ("v_step", "i32"),
)
KEY_PARAMS: Params = _INDEX
RUN_PARAMS: Params = (
    *(("x_offset", "i32"), ("v_offset", "i32"), ("count", "i32"), ("v_step", "i32")),
)


def _index(kind: str, place: str) -> str:
    return f"checked_index({index_of(kind, place)}, p.length)"


def claim(index: str, rank: int) -> Kernel:
    """Zeroed out0 gets, per destination, 1 + the largest place along the axis that names it."""
    names = ("i", "o", "j")
    body = f"""\
  let k = i32({_index(index, "in0[p.i_offset + at_i]")});
  atomicMax(&out0[at_o + k * p.step], u32(at_j) + 1u);
"""
    params = (*walk_params(names, rank), *CLAIM_PARAMS)
    return Kernel(
        walk_source(names, rank, body), (index,), ("atomic<u32>",), params, index_errors="scatter"
    )


def keep(word: str, rank: int) -> Kernel:
    """x, or the value whose place in2 holds, plus one."""
    names = ("x", "v")
    body = """\
  let owner = i32(in2[i]);
  if (owner == 0) {
    out0[i] = in0[p.x_offset + at_x];
  } else {
    out0[i] = in1[p.v_offset + at_v + (owner - 1) * p.step];
  }
"""
    params = (*walk_params(names, rank), *KEEP_PARAMS)
    return Kernel(walk_source(names, rank, body), (word, word, "u32"), (word,), params)


# Float order as integer order. For the largest, nan is above all; for the smallest, below all.
_KEYS = """\
fn key_of(x: f32) -> u32 {
  if (is_nan_f32(x)) { return NAN_KEY; }
  let bits = bitcast<u32>(x);
  return select(bits | 0x80000000u, ~bits, (bits & 0x80000000u) != 0u);
}
fn of_key(key: u32) -> f32 {
  if (key == NAN_KEY) { return nan_f32(); }
  return bitcast<f32>(select(~key, key & 0x7fffffffu, (key & 0x80000000u) != 0u));
}
"""


def keys(update: str, back: bool, rank: int) -> Kernel:
    """A float array as keys whose order as integers is that of the floats, and back."""
    constant = f"const NAN_KEY = {'0xffffffffu' if update == 'max' else '0u'};\n"
    value = "of_key" if back else "key_of"
    body = f"  out0[i] = {value}(in0[p.x_offset + at_x]);\n"
    text = constant + _KEYS + walk_source(("x",), rank, body)
    types = ("u32", "f32") if back else ("f32", "u32")
    params = (*walk_params(("x",), rank), ("x_offset", "i32"))
    return Kernel(text, types[:1], types[1:], params)


_ATOMIC = {
    "add": "atomicAdd(&out0[at], value);",
    "max": "atomicMax(&out0[at], value);",
    "min": "atomicMin(&out0[at], value);",
    "mul": """\
var seen = atomicLoad(&out0[at]);
  loop {
    let was = atomicCompareExchangeWeak(&out0[at], seen, seen * value);
    if (was.exchanged) { break; }
    seen = was.old_value;
  }""",
}


def atomic(op: str, update: str, word: str, index: str, rank: int) -> Kernel:
    """Update integers, or keys of floats, in place."""
    names = ("i", "v", "o")
    body = f"""\
  let k = i32({_index(index, "in0[p.i_offset + at_i]")});
  let at = at_o + k * p.step;
  let value = in1[p.v_offset + at_v];
  {_ATOMIC[update]}
"""
    params = (*walk_params(names, rank), *ATOMIC_PARAMS)
    return Kernel(
        walk_source(names, rank, body), (index, word), (f"atomic<{word}>",), params, index_errors=op
    )


_FLOAT = {"add": "{a} + {b}", "mul": "{a} * {b}"}


def scan(op: str, update: str, stored: str, index: str, rank: int) -> Kernel:
    """Each destination goes through all indices of its line in order; inputs x, indices, values."""
    names = ("x", "i", "v", "d")
    body = f"""\
  var total = f32(in0[p.x_offset + at_x]);
  for (var j = 0; j < p.count; j++) {{
    let k = i32({_index(index, "in1[p.i_offset + at_i + j * p.i_step]")});
    if (k == at_d) {{
      let value = f32(in2[p.v_offset + at_v + j * p.v_step]);
      total = {_FLOAT[update].format(a="total", b="value")};
    }}
  }}
  out0[i] = {stored}(total);
"""
    params = (*walk_params(names, rank), *SCAN_PARAMS)
    return Kernel(
        walk_source(names, rank, body), (stored, index, stored), (stored,), params, index_errors=op
    )


def index_keys(op: str, index: str, rank: int) -> Kernel:
    """Checked indices, counted from the front, as keys to sort."""
    body = f"  out0[i] = {_index(index, 'in0[p.i_offset + at_i]')};\n"
    params = (*walk_params(("i",), rank), *KEY_PARAMS)
    return Kernel(walk_source(("i",), rank, body), (index,), ("u32",), params, index_errors=op)


def runs(update: str, stored: str, vector: bool, rank: int) -> Kernel:
    """Each destination adds the run of sorted (index, place) pairs that name it.

    Inputs x, pairs, values. Four values are loaded at a time, since the sum itself has to wait for
    each.
    """
    names = ("x", "l", "v", "d")
    kind = "vec4<f32>" if vector else "f32"
    element = f"vec4<{stored}>" if vector else stored
    value = f"{kind}(in2[value_base + i32(in1[at_l + at{{}}].y) * p.v_step])"
    four = "\n".join(f"    let v{j} = {value.format(f' + {j}')};" for j in range(4))
    add = _FLOAT[update]
    sums = "\n".join(f"    total = {add.format(a='total', b=f'v{j}')};" for j in range(4))
    body = f"""\
  let wanted = u32(at_d);
  let value_base = p.v_offset + at_v;
  var at = first_pair(at_l, wanted);
  let end = first_pair(at_l, wanted + 1u);
  var total = {kind}(in0[p.x_offset + at_x]);
  for (; at + 4 <= end; at += 4) {{
{four}
{sums}
  }}
  for (; at < end; at += 1) {{
    total = {add.format(a="total", b=value.format(""))};
  }}
  out0[i] = {element}(total);
"""
    bisect = """\
fn first_pair(base: i32, key: u32) -> i32 {
  var low = 0;
  var high = p.count;
  while (low < high) {
    let middle = (low + high) / 2;
    if (in1[base + middle].x < key) { low = middle + 1; } else { high = middle; }
  }
  return low;
}
"""
    params = (*walk_params(names, rank), *RUN_PARAMS)
    inputs = (element, "vec2<u32>", element)
    return Kernel(bisect + walk_source(names, rank, body), inputs, (element,), params)
