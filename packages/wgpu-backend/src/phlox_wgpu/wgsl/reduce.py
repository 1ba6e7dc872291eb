"""The emitter of reduction kernels: one row per op, one text for rows, columns and all between."""

from __future__ import annotations

from dataclasses import dataclass

from .._kernel import Kernel

WORKGROUP = 256
UNROLL = 4  # independent accumulators per lane: more loads in flight, shorter chains of roundings


@dataclass(frozen=True, slots=True)
class Row:
    """How an op reduces: start value and combination by letter of the accumulator: f, i, u."""

    identity: dict[str, str]
    combine: dict[str, str]


_LOWEST = {"f": "-inf_f32()", "i": "-2147483647 - 1", "u": "0u"}
_HIGHEST = {"f": "inf_f32()", "i": "2147483647", "u": "4294967295u"}
_MAX = {"f": "max_f(a, b)", "i": "max(a, b)", "u": "max(a, b)"}
_MIN = {"f": "min_f(a, b)", "i": "min(a, b)", "u": "min(a, b)"}
_PLUS = dict.fromkeys("fiu", "a + b")
_TIMES = dict.fromkeys("fiu", "a * b")
_ZERO = {"f": "0.0", "i": "0", "u": "0u"}
_ONE = {"f": "1.0", "i": "1", "u": "1u"}

REDUCTIONS: dict[str, Row] = {
    "all": Row({"u": "1u"}, {"u": "a & b"}),
    "any": Row({"u": "0u"}, {"u": "a | b"}),
    "argmax": Row(
        _LOWEST,
        {"f": "less_f(b.value, a.value)", "i": "a.value > b.value", "u": "a.value > b.value"},
    ),
    "argmin": Row(
        _HIGHEST,
        {"f": "less_f(a.value, b.value)", "i": "a.value < b.value", "u": "a.value < b.value"},
    ),
    "max": Row(_LOWEST, _MAX),
    "mean": Row(_ZERO, _PLUS),
    "min": Row(_HIGHEST, _MIN),
    "prod": Row(_ONE, _TIMES),
    "sum": Row(_ZERO, _PLUS),
}

_VALUES = {"f": "f32", "i": "i32", "u": "u32"}


@dataclass(frozen=True, slots=True)
class Reduction:
    """What the text of a reduction kernel depends on.

    ``source``: stored element type (f32, f16, i32, u32); ``letter``: accumulator; ``target``:
    stored result type, or "" for a partial pass, which stores accumulators. ``kept`` and
    ``reduced`` count the axes after merging. ``lanes`` threads share one result; ``along`` says
    that neighbouring threads walk along the reduced axis (rows), else along the results (columns).
    ``partial`` input holds accumulators of a pass before.
    """

    op: str
    source: str
    letter: str
    target: str
    kept: int
    reduced: int
    lanes: int
    along: bool
    partial: bool

    @property
    def indexed(self) -> bool:
        """Whether the result is a position."""
        return self.op in ("argmax", "argmin")


def reduction_source(r: Reduction) -> Kernel:
    """Emit the kernel of a reduction.

    Parameters: x offset; number of results; reduced length; elements per part; results x parts;
    the divisor of a mean; the lengths of the kept axes but the first, of the reduced axes but the
    first; their strides.
    """
    value = _VALUES[r.letter]
    inputs = [r.source]
    if r.partial and r.indexed:
        inputs.append("u32")
    outputs = [r.target or value]
    if r.indexed and not r.target:
        outputs.append("u32")
    params = (
        ("offset", "i32"),
        ("results", "u32"),
        ("length", "u32"),
        ("chunk", "u32"),
        ("total", "u32"),
        ("divisor", "f32"),
        *((f"kn{axis}", "u32") for axis in range(1, r.kept)),
        *((f"rn{axis}", "u32") for axis in range(1, r.reduced)),
        *((f"ks{axis}", "i32") for axis in range(r.kept)),
        *((f"rs{axis}", "i32") for axis in range(r.reduced)),
    )
    body = _accumulator(r, value) + _walks(r) + _main(r)
    return Kernel(body, tuple(inputs), tuple(outputs), params)


def _accumulator(r: Reduction, value: str) -> str:
    row = REDUCTIONS[r.op]
    combine, identity = row.combine[r.letter], row.identity[r.letter]
    lift = "in0[at]"
    if r.op in ("all", "any"):
        lift = "select(0u, 1u, in0[at] != 0u)"
    elif value != r.source:
        lift = f"{value}(in0[at])"
    if not r.indexed:
        return f"""\
alias Acc = {value};
fn identity() -> Acc {{ return {identity}; }}
fn combine(a: Acc, b: Acc) -> Acc {{ return {combine}; }}
fn lift(at: i32, k: u32) -> Acc {{ return {lift}; }}
"""
    place = "in1[at]" if r.partial else "k"
    nan = "is_nan_f32(a.value)" if r.letter == "f" else "false"
    other = "is_nan_f32(b.value)" if r.letter == "f" else "false"
    # The first NaN wins, then the better value, then the lower place.
    return f"""\
struct Acc {{ value: {value}, place: u32 }}
fn identity() -> Acc {{ return Acc({identity}, 0xffffffffu); }}
fn better(a: Acc, b: Acc) -> bool {{ return {combine}; }}
fn combine(a: Acc, b: Acc) -> Acc {{
  let a_nan = {nan};
  let b_nan = {other};
  if (a_nan != b_nan) {{
    if (a_nan) {{ return a; }}
    return b;
  }}
  if (!a_nan) {{
    if (better(a, b)) {{ return a; }}
    if (better(b, a)) {{ return b; }}
  }}
  if (a.place < b.place) {{ return a; }}
  return b;
}}
fn lift(at: i32, k: u32) -> Acc {{ return Acc({lift}, {place}); }}
"""


def _walk(name: str, start: str, rank: int, letter: str) -> str:
    lines = [f"fn {name}(i: u32) -> i32 {{", f"  var at = {start};", "  var rest = i;"]
    for axis in range(rank - 1, -1, -1):
        index = f"(rest % p.{letter}n{axis})" if axis else "rest"
        lines.append(f"  at += i32({index}) * p.{letter}s{axis};")
        if axis:
            lines.append(f"  rest /= p.{letter}n{axis};")
    return "\n".join([*lines, "  return at;", "}", ""])


def _walks(r: Reduction) -> str:
    element = "fn element(base: i32, k: u32) -> Acc { return lift(base + reduced_at(k), k); }\n"
    kept = _walk("kept_at", "p.offset", r.kept, "k")
    return kept + _walk("reduced_at", "0", r.reduced, "r") + element


def _finish(r: Reduction) -> str:
    if not r.target:
        if r.indexed:
            return "out0[result] = acc.value;\n    out1[result] = acc.place;"
        return "out0[result] = acc;"
    if r.indexed:
        return "out0[result] = i32(acc.place);"
    text = "acc / p.divisor" if r.op == "mean" else "acc"
    return f"out0[result] = {text if _VALUES[r.letter] == r.target else f'{r.target}({text})'};"


def _main(r: Reduction) -> str:
    """Each result is the tree of its lanes; each lane takes every lanes-th element of its part."""
    groups_of = WORKGROUP // r.lanes
    row, lane = f"tid / {r.lanes}u", f"tid % {r.lanes}u"
    own, step = f"{r.lanes}u * row + lane", "1u"
    if not r.along:
        row, lane = f"tid % {groups_of}u", f"tid / {groups_of}u"
        own, step = "tid", f"{groups_of}u"
    stride = r.lanes
    loads = "\n".join(
        f"    acc{n} = combine(acc{n}, element(base, k + {n * stride}u));" for n in range(UNROLL)
    )
    starts = "\n".join(f"  var acc{n} = identity();" for n in range(UNROLL))
    tree = ""
    if r.lanes > 1:
        tree = f"""\
  shared_acc[{own}] = acc;
  workgroupBarrier();
  for (var half = {r.lanes // 2}u; half > 0u; half >>= 1u) {{
    if (lane < half) {{
      shared_acc[{own}] = combine(shared_acc[{own}], shared_acc[{own} + half * {step}]);
    }}
    workgroupBarrier();
  }}
  acc = shared_acc[{own}];
"""
    shared = f"var<workgroup> shared_acc: array<Acc, {WORKGROUP}>;\n" if r.lanes > 1 else ""
    return f"""\
{shared}\
@compute @workgroup_size({WORKGROUP})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) tid: u32) {{
  let row = {row};
  let lane = {lane};
  let result = linear_group(group, groups) * {groups_of}u + row;
  let live = result < p.total;
  let part = result / p.results;
  let base = kept_at(result % p.results);
  var k = part * p.chunk + lane;
  let end = select(0u, min(part * p.chunk + p.chunk, p.length), live);
{starts}
  while (k + {(UNROLL - 1) * stride}u < end) {{
{loads}
    k += {UNROLL * stride}u;
  }}
  while (k < end) {{
    acc0 = combine(acc0, element(base, k));
    k += {stride}u;
  }}
  var acc = combine(combine(acc0, acc1), combine(acc2, acc3));
{tree}\
  if (live && lane == 0u) {{
    {_finish(r)}
  }}
}}
"""
