"""The emitter of reduction kernels: one row per op, one text for rows, columns and all between."""

from __future__ import annotations

from dataclasses import dataclass

from .._kernel import Kernel
from .walk import WORKGROUP, Params, coordinates, lengths, strides

UNROLL = 4  # accumulators per lane: more loads in flight, shorter chains of roundings

VECTORS = 4  # vec4 in flight per lane


@dataclass(frozen=True, slots=True)
class Fold:
    """How an op reduces: start value and combination by letter of the accumulator: f, i, u.

    ``place``: the result is a position; ``combine`` is the sort key of an element then.
    ``extreme``: the WGSL function that picks, which loses nan, so nan is followed beside it.
    ``truth``: elements count as true or false. ``divide``: the result is divided by the divisor.
    """

    identity: dict[str, str]
    combine: dict[str, str]
    place: bool = False
    extreme: str = ""
    truth: bool = False
    divide: bool = False


_ZERO = {"f": "0.0", "i": "0", "u": "0u"}
_ONE = {"f": "1.0", "i": "1", "u": "1u"}
_LOWEST = {"f": "-inf_f32()", "i": "-2147483647 - 1", "u": "0u"}
_HIGHEST = {"f": "inf_f32()", "i": "2147483647", "u": "4294967295u"}
_KEY = {"f": "order_key_f(x)", "i": "x", "u": "bitcast<i32>(x ^ 0x80000000u)"}

REDUCTIONS: dict[str, Fold] = {
    "all": Fold({"u": "1u"}, {"u": "a & b"}, truth=True),
    "any": Fold({"u": "0u"}, {"u": "a | b"}, truth=True),
    "argmax": Fold({}, _KEY, place=True),
    "argmin": Fold({}, {letter: f"~{key}" for letter, key in _KEY.items()}, place=True),
    "max": Fold(_LOWEST, dict.fromkeys("fiu", "max(a, b)"), extreme="max"),
    "mean": Fold(_ZERO, dict.fromkeys("fiu", "a + b"), divide=True),
    "min": Fold(_HIGHEST, dict.fromkeys("fiu", "min(a, b)"), extreme="min"),
    "prod": Fold(_ONE, dict.fromkeys("fiu", "a * b")),
    "sum": Fold(_ZERO, dict.fromkeys("fiu", "a + b")),
}

_VALUES = {"f": "f32", "i": "i32", "u": "u32"}


@dataclass(frozen=True, slots=True)
class Reduction:
    """What the text of a reduction kernel depends on.

    ``source``: stored element type (f32, f16, i32, u32); ``letter``: accumulator; ``target``:
    stored result type, or "" for a partial pass, which stores accumulators. ``kept`` and
    ``reduced`` count the axes after merging. ``lanes`` threads share one result; neighbors walk
    along a row if it ``reduces_last_axis``, else along the results (columns). ``vector``: rows are
    read four elements at a time. ``partial`` input holds the accumulators of a pass before.
    ``made``: elements are read nowhere, the function ``element_at`` makes them.
    """

    op: str
    source: str
    letter: str
    target: str
    kept: int
    reduced: int
    lanes: int
    reduces_last_axis: bool
    vector: bool
    partial: bool
    made: bool = False

    @property
    def indexed(self) -> bool:
        """Whether the result is a position; then accumulators are a sort key and a place."""
        return REDUCTIONS[self.op].place

    @property
    def accumulator(self) -> str:
        """The stored type of a partial result."""
        return "i32" if self.indexed else _VALUES[self.letter]


def reduction_source(r: Reduction) -> Kernel:
    """Emit the kernel of a reduction.

    Parameters: x offset; number of results; reduced length; elements per part; results x parts;
    the divisor of a mean; the lengths of the kept axes but the first, of the reduced axes but the
    first; their strides. A vector kernel counts offset, length, part and kept strides in vec4.
    """
    inputs = [f"vec4<{r.source}>" if r.vector else r.source]
    if r.partial and r.indexed:
        inputs.append("u32")
    outputs = [r.target or r.accumulator]
    if r.indexed and not r.target:
        outputs.append("u32")
    return Kernel(reduction_body(r), tuple(inputs), tuple(outputs), reduction_params(r))


def reduction_params(r: Reduction) -> Params:
    """The parameters of ``reduction_source``."""
    return (
        ("offset", "i32"),
        ("results", "u32"),
        ("length", "u32"),
        ("chunk", "u32"),
        ("total", "u32"),
        ("divisor", "f32"),
        *lengths(r.kept, name="kn"),
        *lengths(r.reduced, name="rn"),
        *strides("ks", range(r.kept)),
        *strides("rs", range(r.reduced)),
    )


def reduction_body(r: Reduction) -> str:
    """The functions and the entry point of a reduction."""
    return accumulator(r) + _walk("kept_at", "p.offset", r.kept, "k") + _elements(r) + _main(r)


def accumulator(r: Reduction) -> str:
    """Type Acc and the functions identity, combine, lift (of an element) and result."""
    fold = REDUCTIONS[r.op]
    value = _VALUES[r.letter]
    if r.indexed:
        # Keys order as the op does, NaN above all; of equals the lower place wins.
        key = "raw" if r.partial else f"key({_raw(r, value)})"
        return f"""\
struct Acc {{ value: i32, place: u32 }}
fn key(x: {value}) -> i32 {{ return {_with_nan(fold.combine[r.letter], r.letter)}; }}
fn identity() -> Acc {{ return Acc(-2147483647 - 1, 0xffffffffu); }}
fn combine(a: Acc, b: Acc) -> Acc {{
  let better = b.value > a.value || (b.value == a.value && b.place < a.place);
  return Acc(select(a.value, b.value, better), select(a.place, b.place, better));
}}
fn lift(raw: {r.source}, place: u32) -> Acc {{ return Acc({key}, place); }}
"""
    if fold.extreme and r.letter == "f":
        # Three instructions an element: whether a NaN was seen shows in the largest magnitude.
        return f"""\
struct Acc {{ value: f32, magnitude: u32 }}
fn identity() -> Acc {{ return Acc({fold.identity["f"]}, 0u); }}
fn combine(a: Acc, b: Acc) -> Acc {{
  return Acc({fold.extreme}(a.value, b.value), max(a.magnitude, b.magnitude));
}}
fn lift(raw: {r.source}, place: u32) -> Acc {{
  let x = {_raw(r, "f32")};
  return Acc(x, bitcast<u32>(x) & 0x7fffffffu);
}}
"""
    lifted = "select(0u, 1u, raw != 0u)" if fold.truth else _raw(r, value)
    return f"""\
alias Acc = {value};
fn identity() -> Acc {{ return {fold.identity[r.letter]}; }}
fn combine(a: Acc, b: Acc) -> Acc {{ return {fold.combine[r.letter]}; }}
fn lift(raw: {r.source}, place: u32) -> Acc {{ return {lifted}; }}
"""


def _raw(r: Reduction, value: str) -> str:
    return "raw" if r.source == value else f"{value}(raw)"


def _with_nan(key: str, letter: str) -> str:
    return f"select({key}, 2147483647, is_nan_f32(x))" if letter == "f" else key


def _walk(name: str, start: str, rank: int, letter: str) -> str:
    lines = [f"fn {name}(i: u32) -> i32 {{", f"  var at = {start};", "  var rest = i;"]
    lines += coordinates(rank, {"at": f"{letter}s"}, length=f"{letter}n")
    return "\n".join([*lines, "  return at;", "}", ""])


def _elements(r: Reduction) -> str:
    if r.vector:
        return ""
    place = "in1[at]" if r.partial and r.indexed else "k"
    return _walk("reduced_at", "0", r.reduced, "r") + (
        "fn element(base: i32, k: u32) -> Acc {\n"
        "  let at = base + reduced_at(k);\n"
        f"  return lift({_read(r, 'at')}, {place});\n}}\n"
    )


def _read(r: Reduction, at: str) -> str:
    return f"element_at(u32({at}))" if r.made else f"in0[{at}]"


def _finish(r: Reduction) -> str:
    if r.indexed:
        if r.target:
            return "out0[result] = i32(acc.place);"
        return "out0[result] = acc.value;\n    out1[result] = acc.place;"
    text = total(r)
    if r.target not in ("", _VALUES[r.letter]):
        text = f"{r.target}({text})"
    return f"out0[result] = {text};"


def total(r: Reduction) -> str:
    """What ``acc`` comes to, of an op that gives no position."""
    if REDUCTIONS[r.op].divide and r.target:
        return "acc / p.divisor"
    if REDUCTIONS[r.op].extreme and r.letter == "f":
        return "select(acc.value, nan_f32(), acc.magnitude > 0x7f800000u)"
    return "acc"


def _loop(r: Reduction) -> str:
    """Every lanes-th element of the part, into four accumulators."""
    stride = r.lanes
    if r.vector:
        return _vector_loop(r, stride)
    loads = "\n".join(
        f"    acc{n} = combine(acc{n}, element(base, k + {n * stride}u));" for n in range(UNROLL)
    )
    return f"""\
  while (k + {(UNROLL - 1) * stride}u < end) {{
{loads}
    k += {UNROLL * stride}u;
  }}
  while (k < end) {{
    acc0 = combine(acc0, element(base, k));
    k += {stride}u;
  }}
"""


def _vector_loop(r: Reduction, stride: int) -> str:
    def step(turns: int) -> str:
        reads = [_read(r, f"base + i32(k + {t * stride}u)") for t in range(turns)]
        lines = [f"    let v{t} = {read};" for t, read in enumerate(reads)]
        lines += [
            f"    acc{n} = combine(acc{n}, lift(v{t}.{part}, 4u * (k + {t * stride}u) + {n}u));"
            for t in range(turns)
            for n, part in enumerate("xyzw")
        ]
        return "\n".join([*lines, f"    k += {turns * stride}u;"])

    return f"""\
  while (k + {(VECTORS - 1) * stride}u < end) {{
{step(VECTORS)}
  }}
  while (k < end) {{
{step(1)}
  }}
"""


def _tree(r: Reduction, own: str, step: str) -> str:
    """Bring the lanes of each result together."""
    if r.lanes == 1:
        return ""
    return f"""\
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


def _main(r: Reduction) -> str:
    rows = WORKGROUP // r.lanes
    row, lane = f"tid / {r.lanes}u", f"tid % {r.lanes}u"
    own, step = f"{r.lanes}u * row + lane", "1u"
    if not r.reduces_last_axis:
        row, lane = f"tid % {rows}u", f"tid / {rows}u"
        own, step = "tid", f"{rows}u"
    starts = "\n".join(f"  var acc{n} = identity();" for n in range(UNROLL))
    shared = f"var<workgroup> shared_acc: array<Acc, {WORKGROUP}>;\n" if r.lanes > 1 else ""
    return f"""\
{shared}\
@compute @workgroup_size({WORKGROUP})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) tid: u32) {{
  let row = {row};
  let lane = {lane};
  let result = linear_group(group, groups) * {rows}u + row;
  let live = result < p.total;
  let part = result / p.results;
  let base = kept_at(result % p.results);
  var k = part * p.chunk + lane;
  let end = select(0u, min(part * p.chunk + p.chunk, p.length), live);
{starts}
{_loop(r)}\
  var acc = combine(combine(acc0, acc1), combine(acc2, acc3));
{_tree(r, own, step)}\
  if (live && lane == 0u) {{
    {_finish(r)}
  }}
}}
"""
