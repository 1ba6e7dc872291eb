"""The emitter of row kernels.

Softmax, norms and their cotangents as data, for three ways to deal out the work.

- cached: a workgroup per row, whose threads hold its elements in registers; memory is read once;
- looped: a workgroup per row, which reads the row once per pass;
- single: a thread per row, for short rows and for rows across memory.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from .._kernel import Kernel
from .tile import SIGNATURE

_LANES = "xyzw"
_BLOCK = 32  # elements, about the root of the longest row of one thread
_WORD = re.compile(r"(?<![.\w])[A-Za-z_]\w*")
Reduction = Literal["max", "sum"]


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a program: values per element, then reductions of them, then values per row.

    Each is a name and a WGSL expression over f32 scalars, which may use all names before it.
    """

    each: tuple[tuple[str, str], ...] = ()
    reduce: tuple[tuple[str, Reduction, str], ...] = ()
    row: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class RowProgram:
    """What happens to a row.

    ``rows``: inputs of the shape of x; ``columns``: vectors over a row; ``results``: an expression
    per element for each output of the shape of x, ``totals``: per row. Expressions may use
    ``p.count``, the length of a row as f32, the parameters ``scalars``, and the first element of
    a row as ``x_first``.
    """

    name: str
    rows: tuple[str, ...]
    steps: tuple[Step, ...]
    results: tuple[str, ...] = ()
    totals: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    scalars: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RowKernel:
    """A program for one stored type and one way to run it.

    ``threads`` per workgroup; ``cached`` elements per thread, in fours when ``vector``, or 0 for a
    loop; ``single``: a thread per row. ``wide``: totals are stored as f32. ``subgroups``: threads
    that run in step combine their values without memory.
    """

    program: RowProgram
    stored: str
    threads: int
    cached: int = 0
    vector: bool = False
    single: bool = False
    wide: bool = False
    subgroups: bool = False


def row_params(program: RowProgram) -> tuple[tuple[str, str], ...]:
    """Rows, their length (twice), the distance of neighbours, then offsets of all inputs."""
    return (
        *(("rows", "u32"), ("length", "i32"), ("count", "f32"), ("inner", "i32")),
        *((f"{name}_offset", "i32") for name in program.rows),
        *((f"{name}_{part}", "i32") for name in program.columns for part in ("offset", "step")),
        *((name, "f32") for name in program.scalars),
    )


def row_source(spec: RowKernel) -> Kernel:
    """The kernel: inputs rows, then columns; outputs results, then totals."""
    program = spec.program
    if spec.single:
        text = _single(spec)
    else:
        shared = _by_subgroups(spec) if spec.subgroups else _by_rounds(spec)
        text = shared + (_cached(spec) if spec.cached else _looped(spec))
    element = f"vec4<{spec.stored}>" if spec.vector else spec.stored
    inputs = (*[element] * len(program.rows), *[spec.stored] * len(program.columns))
    total = "f32" if spec.wide else spec.stored
    outputs = (*[element] * len(program.results), *[total] * len(program.totals))
    enables = ("subgroups",) if spec.subgroups else ()
    return Kernel(text, inputs, outputs, row_params(program), enables=enables)


_LANE_INDEX = "@builtin(local_invocation_index) lane_index: u32"
_SUBGROUP_INDICES = """,
        @builtin(subgroup_id) subgroup: u32, @builtin(num_subgroups) subgroups: u32,
        @builtin(subgroup_invocation_id) invocation: u32"""
_IDENTITY = {"max": "-inf_f32()", "sum": "0.0"}
_COMBINE = {"max": "max_f({a}, {b})", "sum": "{a} + {b}"}
_SUBGROUP = {"max": "subgroupMax", "sum": "subgroupAdd"}


def _reductions(spec: RowKernel) -> list[Reduction]:
    return sorted({kind for step in spec.program.steps for _, kind, _ in step.reduce})


def _by_subgroups(spec: RowKernel) -> str:
    """Functions that combine one value of each thread: of a subgroup at once, then of them all.

    What a subgroup makes of a NaN as the largest is left open; the sums that follow have it.
    """
    text = f"var<workgroup> parts: array<f32, {spec.threads}>;\n"
    text += "var<private> part: u32;\nvar<private> part_count: u32;\nvar<private> part_lane: u32;\n"
    for kind in _reductions(spec):
        combined = _COMBINE[kind].format(a="all", b="parts[i]")
        text += f"""\
fn group_{kind}(value: f32, lane: i32) -> f32 {{
  let mine = {_SUBGROUP[kind]}(value);
  workgroupBarrier();
  if (part_lane == 0u) {{ parts[part] = mine; }}
  workgroupBarrier();
  var all = parts[0];
  for (var i = 1u; i < part_count; i++) {{ all = {combined}; }}
  return all;
}}
"""
    return text


def _by_rounds(spec: RowKernel) -> str:
    """Functions that combine one value of each thread, in two rounds of about their root."""
    first = 8 if spec.threads == 64 else 16
    second = spec.threads // first
    text = f"var<workgroup> parts: array<f32, {spec.threads}>;\n"
    text += f"var<workgroup> sums: array<f32, {second}>;\n"
    for kind in _reductions(spec):
        one = _COMBINE[kind].format(a="all", b=f"parts[lane * {first} + (i + lane) % {first}]")
        two = _COMBINE[kind].format(a="all", b="sums[i]")
        text += f"""\
fn group_{kind}(value: f32, lane: i32) -> f32 {{
  parts[lane] = value;
  workgroupBarrier();
  var all = {_IDENTITY[kind]};
  if (lane < {second}) {{
    for (var i = 0; i < {first}; i++) {{ all = {one}; }}
    sums[lane] = all;
  }}
  workgroupBarrier();
  all = {_IDENTITY[kind]};
  for (var i = 0; i < {second}; i++) {{ all = {two}; }}
  return all;
}}
"""
    return text


def _inputs(program: RowProgram) -> list[tuple[str, str]]:
    return [(name, f"in{position}") for position, name in enumerate(program.rows)]


def _column_loads(program: RowProgram, place: str) -> list[str]:
    first = len(program.rows)
    return [
        f"let {name} = f32(in{first + i}[p.{name}_offset + {place} * p.{name}_step]);"
        for i, name in enumerate(program.columns)
    ]


def _group_head(spec: RowKernel) -> list[str]:
    signature = SIGNATURE.format(threads=spec.threads).rstrip()
    if spec.subgroups:
        signature = signature.replace(_LANE_INDEX, _LANE_INDEX + _SUBGROUP_INDICES)
        signature += "\n  part = subgroup;\n  part_count = subgroups;\n  part_lane = invocation;"
    return [
        signature,
        "  let row_index = linear_group(group, groups);",
        "  if (row_index >= p.rows) { return; }",
        "  let row = i32(row_index);",
    ]


def _row_values(spec: RowKernel) -> list[str]:
    """The parameters, and for each input x the row's first element as `x_first`."""
    lines = [f"  let {name} = p.{name};" for name in spec.program.scalars]
    part = ".x" if spec.vector else ""
    for name, buffer in _inputs(spec.program):
        lines.append(f"  let {name}_first = f32({buffer}[{name}_base]{part});")
    return lines


def _looped(spec: RowKernel) -> str:
    program = spec.program
    lines = _group_head(spec)
    lines += [f"  let {name}_base = p.{name}_offset + row * p.length;" for name in program.rows]
    loop = f"  for (var at = lane; at < p.length; at += {spec.threads}) {{"
    lines += _row_values(spec) + _passes(spec, loop, "at")
    lines += ["  let out_base = row * p.length;", *_outputs(spec, loop, "at")]
    lines += _totals(spec, "  if (lane == 0) {")
    return "\n".join([*lines, "}\n"])


def _single(spec: RowKernel) -> str:
    program = spec.program
    lines = [
        SIGNATURE.format(threads=spec.threads).rstrip(),
        f"  let row_index = linear_group(group, groups) * {spec.threads}u + lane_index;",
        "  if (row_index >= p.rows) { return; }",
        "  let row = i32(row_index);",
        "  let out_base = row / p.inner * p.inner * p.length + row % p.inner;",
        *[f"  let {name}_base = p.{name}_offset + out_base;" for name in program.rows],
    ]
    loop = "  for (var at = 0; at < p.length; at++) {"
    lines += _row_values(spec) + _passes(spec, loop, "at * p.inner")
    lines += [*_outputs(spec, loop, "at * p.inner"), *_totals(spec, "  {")]
    return "\n".join([*lines, "}\n"])


def _element(spec: RowKernel, place: str, steps: tuple[Step, ...]) -> list[str]:
    """The inputs and the values per element of some steps."""
    program = spec.program
    lines = [
        f"    let {name} = f32({buffer}[{name}_base + {place}]);"
        for name, buffer in _inputs(program)
    ]
    lines += [f"    {line}" for line in _column_loads(program, "at")]
    return lines + [f"    let {name} = {value};" for step in steps for name, value in step.each]


def _passes(spec: RowKernel, loop: str, place: str) -> list[str]:
    """One pass over the row for each step with reductions.

    A thread that has a row of its own sums blocks: one by one, many small elements behind a large
    one are lost.
    """
    lines = []
    steps = spec.program.steps
    for number, step in enumerate(steps):
        for name, kind, _ in step.reduce:
            lines.append(f"  var {name} = {_IDENTITY[kind]};")
            lines += [f"  var {name}_before = 0.0;"] if kind == "sum" and spec.single else []
        lines += [loop, *_element(spec, place, steps[: number + 1])]
        for name, kind, value in step.reduce:
            lines.append(f"    {name} = {_COMBINE[kind].format(a=name, b=f'({value})')};")
        sums = [name for name, kind, _ in step.reduce if kind == "sum" and spec.single]
        moves = " ".join(f"{name}_before += {name}; {name} = 0.0;" for name in sums)
        lines += [f"    if (at % {_BLOCK} == {_BLOCK - 1}) {{ {moves} }}"] if sums else []
        lines += ["  }", *(f"  {name} += {name}_before;" for name in sums)]
        if not spec.single:
            for name, kind, _ in step.reduce:
                lines.append(f"  {name} = group_{kind}({name}, lane);")
        lines += [f"  let {name} = {value};" for name, value in step.row]
    return lines


def _outputs(spec: RowKernel, loop: str, place: str) -> list[str]:
    program = spec.program
    if not program.results:
        return []
    lines = [loop, *_element(spec, place, program.steps)]
    for i, value in enumerate(program.results):
        lines.append(f"    out{i}[out_base + {place}] = {spec.stored}({value});")
    return [*lines, "  }"]


def _totals(spec: RowKernel, opening: str) -> list[str]:
    program = spec.program
    if not program.totals:
        return []
    first, kind = len(program.results), "f32" if spec.wide else spec.stored
    stores = [
        f"    out{first + i}[row] = {kind}({value});" for i, value in enumerate(program.totals)
    ]
    return [opening, *stores, "  }"]


def _cached(spec: RowKernel) -> str:
    """Straight-line code; the names of element k end in `_k`."""
    program = spec.program
    four = 4 if spec.vector else 1
    loads = spec.cached // four
    lines = _group_head(spec)
    for name in program.rows:
        base = f"p.{name}_offset / {four} + row * (p.length / {four})"
        lines.append(f"  let {name}_base = {base};")
    lines += _row_values(spec)
    for j in range(loads):
        place = f"({j * spec.threads} + lane)"
        lines.append(f"  let in{j}_row = {four} * {place} < p.length;")
        lines += _cached_loads(spec, j, place)
    names = {*program.rows, *program.columns}
    for step in program.steps:
        names |= {name for name, _ in step.each}
        for k in range(spec.cached):
            lines += [f"  let {name}_{k} = {_at(value, names, k)};" for name, value in step.each]
        for name, kind, value in step.reduce:
            lines.append(f"  var {name} = {_IDENTITY[kind]};")
            for k in range(spec.cached):
                combined = _COMBINE[kind].format(a=name, b=f"({_at(value, names, k)})")
                lines.append(f"  if (in{k // four}_row) {{ {name} = {combined}; }}")
            lines.append(f"  {name} = group_{kind}({name}, lane);")
        lines += [f"  let {name} = {value};" for name, value in step.row]
    for i, value in enumerate(program.results):
        for j in range(loads):
            place = f"row * (p.length / {four}) + {j * spec.threads} + lane"
            parts = [f"{spec.stored}({_at(value, names, j * four + c)})" for c in range(four)]
            packed = f"vec4<{spec.stored}>({', '.join(parts)})" if spec.vector else parts[0]
            lines.append(f"  if (in{j}_row) {{ out{i}[{place}] = {packed}; }}")
    lines += _totals(spec, "  if (lane == 0) {")
    return "\n".join([*lines, "}\n"])


def _cached_loads(spec: RowKernel, j: int, place: str) -> list[str]:
    four = 4 if spec.vector else 1
    element = f"vec4<{spec.stored}>" if spec.vector else spec.stored
    lines = []
    for name, buffer in _inputs(spec.program):
        lines.append(f"  var {name}_load{j} = {element}();")
        load = f"{name}_load{j} = {buffer}[{name}_base + {place}];"
        lines.append(f"  if (in{j}_row) {{ {load} }}")
        for c in range(four):
            part = f".{_LANES[c]}" if spec.vector else ""
            lines.append(f"  let {name}_{j * four + c} = f32({name}_load{j}{part});")
    for c in range(four):
        column = f"min({four} * {place} + {c}, p.length - 1)"
        for line in _column_loads(spec.program, column):
            name = line.split()[1]
            lines.append(f"  {line.replace(f'let {name} ', f'let {name}_{j * four + c} ', 1)}")
    return lines


def _at(expression: str, names: set[str], k: int) -> str:
    """The expression with element k's names."""
    return _WORD.sub(lambda m: f"{m[0]}_{k}" if m[0] in names else m[0], expression)
