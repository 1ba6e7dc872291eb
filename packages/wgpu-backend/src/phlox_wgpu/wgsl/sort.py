"""Bitonic sort of pairs (key, place), which also finds the first k of a row.

The place breaks ties, so the sort is stable, and padding comes last. A workgroup sorts a block:
each thread takes some pairs into registers, those whose places differ in a few neighboring bits,
exchanges them by all of these bits, and puts them back for others into workgroup memory. Rows
longer than a block take further passes over pairs in a buffer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .._kernel import Kernel
from .tile import SIGNATURE

Load = Literal["x", "block", "pairs"]
Emit = Literal["block", "pairs", "places", "values", "top"]


@dataclass(frozen=True, slots=True)
class Sort:
    """One pass over the blocks of all rows, each of which may be cut into chunks.

    ``stored``: the element type of x, or "key" for keys that are ready. ``block``: pairs of a
    workgroup. ``each``: those of a thread. ``load``: from x, from the "block" in place that another
    pass left, or from rows of "pairs". ``emit``: the "block" for another pass; else the first of
    each sorted chunk: "pairs", their "places", the "values" of x there, or both in "top".
    """

    stored: str
    descending: bool
    block: int
    each: int
    load: Load
    emit: Emit

    @property
    def threads(self) -> int:
        """Threads of a workgroup."""
        return self.block // self.each

    @property
    def bits(self) -> int:
        """Bits of a place by which a thread exchanges at once."""
        return self.each.bit_length() - 1


SORT_PARAMS = (
    *(("offset", "u32"), ("rows", "u32"), ("chunks", "u32"), ("length", "u32"), ("width", "u32")),
    *(("kept", "u32"), ("groups", "u32"), ("stage_first", "u32"), ("stage_last", "u32")),
    *(("out_offset", "u32"), ("x_length", "u32")),
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


def _exchange(i: int, bit: int, up: str) -> str:
    """Exchange the pair number i of a thread and the one whose number differs in a bit."""
    a, b = f"x{i}", f"x{i | 1 << bit}"
    return f"if (after({a}, {b}) == {up}) {{ let x = {a}; {a} = {b}; {b} = x; }}"


def _exchanges(each: int, bit: int) -> list[str]:
    return [_exchange(i, bit, "up") for i in range(each) if not i >> bit & 1]


def sort_source(spec: Sort) -> Kernel:
    """The kernel.

    Input x (while it is loaded or its values are wanted), pairs that are loaded; then a block in
    place or the results.
    """
    is_float, bits, numbers = spec.stored in ("f32", "f16"), spec.bits, range(spec.each)
    text = _EXCHANGE + f"var<workgroup> pairs: array<vec2<u32>, {spec.block}>;\n"
    if spec.load == "x":
        text += _FLOAT_KEY * is_float + _REVERSED[is_float] * spec.descending
    lines = [
        SIGNATURE.format(threads=spec.threads).rstrip(),
        "  let id = linear_group(group, groups);",
        "  if (id >= p.groups) { return; }",
        f"  let first = id * {spec.block}u;",
        "  let places = p.width - 1u;",
        "  let width_bits = countTrailingZeros(p.width);",
        *[f"  var x{r}: vec2<u32>;" for r in numbers],
        *_load(spec),
        "  for (var stage = p.stage_first; stage <= p.stage_last; stage++) {",
        f"    var top = min(stage, {spec.block.bit_length() - 1}u);",
        "    while (top > 0u) {",
        "      workgroupBarrier();",
        f"      let low = max(top, {bits}u) - {bits}u;",
        "      let below = lane_index & ((1u << low) - 1u);",
        f"      let i = ((lane_index - below) << {bits}u) | below;",
        "      let up = ((((first + i) & places) >> stage) & 1u) == 0u;",
        # Threads of a subgroup meet no bank of the memory twice, whatever the bits are.
        f"      let at = i ^ (i >> {bits}u);",
    ]
    for r in numbers:
        lines.append(f"      let at{r} = at ^ ({r}u << low) ^ (({r}u << low) >> {bits}u);")
        lines.append(f"      x{r} = pairs[at{r}];")
    for bit in reversed(range(bits)):
        lines += [
            f"      if (top - low > {bit}u) {{",
            *[f"        {line}" for line in _exchanges(spec.each, bit)],
            "      }",
        ]
    lines += [
        *[f"      pairs[at{r}] = x{r};" for r in numbers],
        "      top = low;",
        "    }",
        "  }",
        "  workgroupBarrier();",
        f"  for (var i = lane_index; i < {spec.block}u; i += {spec.threads}u) {{",
        f"    let pair = pairs[i ^ (i >> {bits}u)];",
        *_emit(spec),
        "  }",
        "}\n",
    ]
    inputs, outputs = _bindings(spec)
    return Kernel(text + "\n".join(lines), inputs, outputs, SORT_PARAMS)


def _bindings(spec: Sort) -> tuple[tuple[str, ...], tuple[str, ...]]:
    bound, pair = BOUND[spec.stored], "vec2<u32>"
    inputs: tuple[str, ...] = (bound,) if spec.load == "x" or spec.emit in ("values", "top") else ()
    results = {"places": ("i32",), "values": (bound,), "top": (bound, "i32")}
    outputs = results.get(spec.emit, (pair,))
    if spec.load == "pairs":
        inputs += (pair,)
    elif spec.load == "block" and spec.emit != "block":
        outputs = (pair, *outputs)
    return inputs, outputs


def _load(spec: Sort) -> list[str]:
    """Bring pairs to workgroup memory; in any order, those of a thread sorted, but for blocks."""
    each, bits = spec.each, spec.bits
    if spec.load == "block":
        return [
            f"  for (var i = lane_index; i < {spec.block}u; i += {spec.threads}u) {{",
            f"    pairs[i ^ (i >> {bits}u)] = out0[first + i];",
            "  }",
        ]
    place = "row * p.length + column"
    pair = f"vec2<u32>({_key(spec, f'in0[p.offset + {place}]')}, column)"
    if spec.load == "pairs":
        pair = f"in{int(spec.emit == 'top')}[{place}]"
    lines = [
        f"  let across = min(p.width, {spec.block}u) / {each}u;",
        "  let within = lane_index & (across - 1u);",
        f"  let start = first + (lane_index - within) * {each}u + within;",
        "  let chunk = start >> width_bits;",
        "  let row = chunk / p.chunks;",
        "  var column = chunk % p.chunks * p.width + (start & places);",
    ]
    for r in range(each):
        lines += [
            f"  x{r} = vec2<u32>(0xffffffffu, column);",
            f"  if (row < p.rows && column < p.length) {{ x{r} = {pair}; }}",
            "  column += across;",
        ]
    lines += [
        f"  let own = lane_index * {each}u;",
        f"  let upward = ((first + own) & places & {each}u) == 0u;",
    ]
    for stage in range(1, bits + 1):
        for bit in reversed(range(stage)):
            for i in range(each):
                if not i >> bit & 1:
                    up = "upward" if stage == bits else ("false" if i >> stage & 1 else "true")
                    lines.append("  " + _exchange(i, bit, up))
    lines += [f"  pairs[(own + {r}u) ^ ((own + {r}u) >> {bits}u)] = x{r};" for r in range(each)]
    return lines


def _emit(spec: Sort) -> list[str]:
    if spec.emit == "block":
        return ["    out0[first + i] = pair;"]
    value = "in0[p.offset + chunk * p.x_length + pair.y]"
    found = {"places": ["i32(pair.y)"], "values": [value], "top": [value, "i32(pair.y)"]}
    results = [
        f"      out{number}[at] = {text};"
        for number, text in enumerate(found.get(spec.emit, ["pair"]), int(spec.load == "block"))
    ]
    return [
        "    let chunk = (first + i) >> width_bits;",
        "    let column = (first + i) & places;",
        "    if (chunk < p.rows * p.chunks && column < p.kept) {",
        "      let at = p.out_offset + chunk * p.kept + column;",
        *results,
        "    }",
    ]


def step_source(bits: int) -> Kernel:
    """The steps of a stage that reach over blocks, some at once; pairs in place.

    Parameters `STEP_PARAMS`: size in threads, the stage as a power, the shortest reach.
    """
    each = 1 << bits
    steps = [line for bit in reversed(range(bits)) for line in _exchanges(each, bit)]
    lines = [
        "  let t = linear_group(group, groups) * 256u + lane_index;",
        "  if (t >= p.size) { return; }",
        f"  let i = t / p.reach * p.reach * {each}u + t % p.reach;",
        "  let up = (((i & (p.width - 1u)) >> p.stage) & 1u) == 0u;",
        *[f"  var x{r} = out0[i + {r}u * p.reach];" for r in range(each)],
        *[f"  {step}" for step in steps],
        *[f"  out0[i + {r}u * p.reach] = x{r};" for r in range(each)],
        "}\n",
    ]
    body = _EXCHANGE + SIGNATURE.format(threads=256) + "\n".join(lines)
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
