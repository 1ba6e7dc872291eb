"""Bitonic sort of pairs (key, place).

The place breaks ties, so the sort is stable, and padding comes last. A workgroup sorts a block in
its memory; rows longer than a block take further passes over pairs in a buffer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .._kernel import Kernel
from .tile import SIGNATURE

Emit = Literal["pairs", "places", "sorted", "values"]


@dataclass(frozen=True, slots=True)
class Sort:
    """One pass over the blocks of all rows.

    ``stored``: the element type of x, or "key" for keys that are ready. ``load``: from x, else
    from pairs. ``emit``: "pairs" in the order of the blocks, for another pass; else the sorted
    rows without padding: as "sorted" pairs, their "places", or the "values" of x there.
    """

    stored: str
    descending: bool
    block: int
    threads: int
    load: bool
    emit: Emit


SORT_PARAMS = (
    *(("offset", "u32"), ("rows", "u32"), ("length", "u32"), ("width", "u32"), ("groups", "u32")),
    *(("stage_first", "u32"), ("stage_last", "u32"), ("out_offset", "u32")),
)
STEP_PARAMS = (("size", "u32"), ("width", "u32"), ("stage", "u32"), ("reach", "u32"))

# How x is bound: floats by their bits, so that no load changes them.
BOUND = {"f32": "u32", "f16": "f16", "i32": "i32", "u32": "u32", "key": "u32"}

# Zeros of both signs are equal; every nan is the largest key.
_FLOAT_KEY = """\
fn float_key(bits: u32) -> u32 {
  let size = bits & 0x7fffffffu;
  if (size > 0x7f800000u) { return 0xffffffffu; }
  let key = select(bits | 0x80000000u, ~bits, bits != size && size != 0u);
  return select(key, 0x80000000u, size == 0u);
}
"""


def _upward(stored: str, place: str) -> str:
    """A u32 that orders as the element does."""
    texts = {
        "f32": f"float_key({place})",
        "f16": f"float_key(bitcast<u32>(f32({place})))",
        "i32": f"(bitcast<u32>({place}) ^ 0x80000000u)",
    }
    return texts.get(stored, place)


def _key(spec: Sort, place: str) -> str:
    key = _upward(spec.stored, place)
    if not spec.descending:
        return key
    return f"reversed({key})"


# Descending, nan stays last.
_REVERSED = {
    True: "fn reversed(key: u32) -> u32 { return select(~key, key, key == 0xffffffffu); }\n",
    False: "fn reversed(key: u32) -> u32 { return ~key; }\n",
}
_EXCHANGE = """\
fn after(a: vec2<u32>, b: vec2<u32>) -> bool {
  return a.x > b.x || (a.x == b.x && a.y > b.y);
}
"""


def sort_source(spec: Sort) -> Kernel:
    """The kernel.

    Input x (while `load` or the values are wanted), then pairs in place or the result.
    """
    is_float = spec.stored in ("f32", "f16")
    text = _EXCHANGE + f"var<workgroup> pairs: array<vec2<u32>, {spec.block}>;\n"
    if spec.load:
        text += _FLOAT_KEY * is_float + _REVERSED[is_float] * spec.descending
    lines = [
        SIGNATURE.format(threads=spec.threads).rstrip(),
        "  let id = linear_group(group, groups);",
        "  if (id >= p.groups) { return; }",
        f"  let first = id * {spec.block}u;",
        f"  for (var i = lane_index; i < {spec.block}u; i += {spec.threads}u) {{",
        *_load(spec),
        "  }",
        "  workgroupBarrier();",
        "  for (var stage = p.stage_first; stage <= p.stage_last; stage *= 2u) {",
        f"    for (var reach = min(stage, {spec.block}u) / 2u; reach > 0u; reach /= 2u) {{",
        f"      for (var t = lane_index; t < {spec.block // 2}u; t += {spec.threads}u) {{",
        "        let i = t / reach * reach * 2u + t % reach;",
        "        let up = ((first + i) & (p.width - 1u) & stage) == 0u;",
        "        let a = pairs[i];",
        "        let b = pairs[i + reach];",
        "        if (after(a, b) == up) {",
        "          pairs[i] = b;",
        "          pairs[i + reach] = a;",
        "        }",
        "      }",
        "      workgroupBarrier();",
        "    }",
        "  }",
        f"  for (var i = lane_index; i < {spec.block}u; i += {spec.threads}u) {{",
        *_emit(spec),
        "  }",
        "}\n",
    ]
    bound = BOUND[spec.stored]
    inputs, outputs = _bindings(spec, bound)
    return Kernel(text + "\n".join(lines), inputs, outputs, SORT_PARAMS)


def _bindings(spec: Sort, bound: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    result = {"places": "i32", "values": bound}.get(spec.emit, "vec2<u32>")
    x = (bound,) if spec.load or spec.emit == "values" else ()
    if spec.load:
        return x, (result,)
    return x, ("vec2<u32>",) if spec.emit == "pairs" else ("vec2<u32>", result)


_ROW = [
    "    let row = (first + i) / p.width;",
    "    let column = (first + i) % p.width;",
]


def _load(spec: Sort) -> list[str]:
    if not spec.load:
        return ["    pairs[i] = out0[first + i];"]
    place = "in0[p.offset + row * p.length + column]"
    return [
        *_ROW,
        "    var pair = vec2<u32>(0xffffffffu, column);",
        f"    if (row < p.rows && column < p.length) {{ pair.x = {_key(spec, place)}; }}",
        "    pairs[i] = pair;",
    ]


def _emit(spec: Sort) -> list[str]:
    if spec.emit == "pairs":
        return ["    out0[first + i] = pairs[i];"]
    target = "out0" if spec.load else "out1"
    value = {
        "places": "i32(pairs[i].y)",
        "values": "in0[p.offset + row * p.length + pairs[i].y]",
    }.get(spec.emit, "pairs[i]")
    store = f"{target}[p.out_offset + row * p.length + column] = {value};"
    return [*_ROW, f"    if (row < p.rows && column < p.length) {{ {store} }}"]


def step_source() -> Kernel:
    """One step that reaches over blocks; pairs in place.

    Parameters `STEP_PARAMS`, size in exchanges.
    """
    body = f"""\
{_EXCHANGE}{SIGNATURE.format(threads=256)}\
  let t = linear_group(group, groups) * 256u + lane_index;
  if (t >= p.size) {{ return; }}
  let i = t / p.reach * p.reach * 2u + t % p.reach;
  let up = (i & (p.width - 1u) & p.stage) == 0u;
  let a = out0[i];
  let b = out0[i + p.reach];
  if (after(a, b) == up) {{
    out0[i] = b;
    out0[i + p.reach] = a;
  }}
}}
"""
    return Kernel(body, (), ("vec2<u32>",), STEP_PARAMS)


SEARCH_PARAMS = (
    *(("size", "u32"), ("length", "u32"), ("offset", "i32"), ("step", "i32")),
    ("wanted_offset", "u32"),
)


def search_source(stored: str, behind: bool) -> Kernel:
    """Where elements go into a sorted line: in front of equals or `behind`. A thread for each."""
    found = _upward(stored, "in0[p.offset + i32(middle) * p.step]")
    text = f"""\
{_FLOAT_KEY * (stored in ("f32", "f16"))}{SIGNATURE.format(threads=256)}\
  let i = linear_group(group, groups) * 256u + lane_index;
  if (i >= p.size) {{ return; }}
  let wanted = {_upward(stored, "in1[p.wanted_offset + i]")};
  var low = 0u;
  var high = p.length;
  while (low < high) {{
    let middle = (low + high) / 2u;
    if ({found} {"<=" if behind else "<"} wanted) {{ low = middle + 1u; }} else {{ high = middle; }}
  }}
  out0[i] = i32(low);
}}
"""
    return Kernel(text, (BOUND[stored],) * 2, ("i32",), SEARCH_PARAMS)
