"""The emitter of kernels that fold rows and go on with all of their elements, as softmax does.

Some threads share a row. A part of the program is a function of scalars: what has one value for
each row is computed once by every thread, the rest for each element. Short rows are read once and
stay in registers, longer ones are read once for each fold and for the results. Folds take elements
in the order of reductions, so their bits are the same.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from .._kernel import Kernel
from .chain import Chain, function, kept, load, store, stored_type, value_type
from .reduce import UNROLL, Reduction, accumulator, total
from .tile import SIGNATURE
from .walk import WORKGROUP, Params, coordinates, lengths, strides

_NAMES: Final = re.compile(r"\b(Acc|identity|combine|lift)\b")


@dataclass(frozen=True, slots=True)
class Formula:
    """Names and WGSL expressions of f32, one after the other, over what it takes by name."""

    takes: tuple[str, ...]
    lines: tuple[tuple[str, str], ...]

    def function(self, called: str, struct: str) -> str:
        """The formula as a function of scalars, which gives all that it names."""
        arguments = ", ".join(f"{name}: f32" for name in self.takes)
        body = "\n".join(f"  let {name} = {text};" for name, text in self.lines)
        result, value = "f32", self.lines[0][0]
        above = ""
        if len(self.lines) > 1:
            fields = ", ".join(f"r{i}: f32" for i in range(len(self.lines)))
            above, result = f"struct {struct} {{ {fields} }}\n", struct
            value = f"{struct}({', '.join(name for name, _ in self.lines)})"
        return f"{above}fn {called}({arguments}) -> {result} {{\n{body}\n  return {value};\n}}\n"


@dataclass(frozen=True, slots=True)
class Part:
    """A function, the values of the program that it takes, and those that it gives."""

    body: Chain | Formula
    takes: tuple[int, ...]
    gives: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Stage:
    """A pass over a row: values of each element, folds of some, then values of the row.

    A fold is its value, its op and the value that it folds; the last stage has none.
    """

    each: Part | None
    folds: tuple[tuple[int, str, int], ...]
    row: Part | None


@dataclass(frozen=True, slots=True)
class Stages:
    """A program over rows; values count its inputs, its numbers, firsts, then what it makes.

    Attributes:
        inputs: the element types of the arrays.
        numbers: the element types of the numbers.
        first: what is known of a row before the first stage.
        stages: in order.
        results: the outputs with a value for each element, and their types.
        totals: the outputs with a value for each row, and their types.
        firsts: inputs whose first element of a row is a value too.
    """

    inputs: tuple[str, ...]
    numbers: tuple[str, ...]
    first: Part | None
    stages: tuple[Stage, ...]
    results: tuple[tuple[int, str], ...]
    totals: tuple[tuple[int, str], ...]
    firsts: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Rows:
    """How a kernel goes through its rows.

    Attributes:
        access: a letter for each input: v a vec4 for each step, e an element at a time, s one for a
            row.
        rank: axes of rows, after merging.
        lanes: threads for each row.
        vector: four elements a step.
        slots: steps of a thread, whose elements stay in registers; 0: a loop.
        threads: the threads of a workgroup.
        subgroups: threads that run in step combine their values without memory; a workgroup has one
            row then.
        apart: elements of a row lie apart, in the results as in the first input.
    """

    access: str
    rank: int
    lanes: int
    vector: bool
    slots: int
    threads: int = WORKGROUP
    subgroups: bool = False
    apart: bool = False


def stages_source(program: Stages, rows: Rows) -> Kernel:
    """The kernel: inputs, then results, then totals.

    Parameters: the offset of each input (in vec4 for v); the number of rows, steps of a row, and
    its length as a divisor; the lengths of all axes of rows but the first; for each input its
    strides along them (in vec4 for v), and for e the one along the row; the numbers.
    """
    inputs = [
        stored_type(dtype, kind == "v")
        for dtype, kind in zip(program.inputs, rows.access, strict=True)
    ]
    outputs = [stored_type(dtype, rows.vector) for _, dtype in program.results]
    outputs += [stored_type(dtype, vector=False) for _, dtype in program.totals]
    text, enables = _Emitter(program, rows).text(), ("subgroups",) if rows.subgroups else ()
    return Kernel(text, (*inputs,), (*outputs,), _params(program, rows), enables=enables)


def _params(program: Stages, rows: Rows) -> Params:
    arrays = range(len(program.inputs))
    tail = [*lengths(rows.rank)]
    for i in arrays:
        tail += strides(f"s{i}_", range(rows.rank))
        if rows.access[i] == "e":
            tail.append((f"step{i}", "i32"))
    for i, dtype in enumerate(program.numbers, len(program.inputs)):
        kind = value_type(dtype)
        tail.append((f"c{i}", "u32" if kind == "bool" else kind))
    head = (("rows", "u32"), ("steps", "u32"), ("divisor", "f32"))
    return (*((f"o{i}", "i32") for i in arrays), *head, *tail)


class _Emitter:
    """Statements; a value is ``v`` and its number, of an element its slot and component too."""

    def __init__(self, program: Stages, rows: Rows) -> None:
        self._program, self._rows = program, rows
        self._lines: list[str] = []
        self._functions: list[str] = []
        self._elements = {i for i, kind in enumerate(rows.access) if kind != "s"}
        self._loaded: set[tuple[int, int]] = set()
        self._components = "xyzw" if rows.vector else "x"

    def text(self) -> str:
        self._head()
        if self._program.first:
            self._row_part(self._program.first, "first")
        for number, stage in enumerate(self._program.stages):
            self._stage(stage, number)
        ops = sorted({op for stage in self._program.stages for _, op, _ in stage.folds})
        folds = "".join(_fold_function(op, self._rows) for op in ops)
        opening = "  if (live && own == 0u) {"
        first = len(self._program.results)
        stores = [
            f"    out{at}[row] = {store(dtype, f'v{value}')};"
            for at, (value, dtype) in enumerate(self._program.totals, first)
        ]
        self._lines += [opening, *stores, "  }"] if stores else []
        shared = _SUBGROUPS if ops and self._rows.subgroups else ""
        text = "".join([shared, *self._functions, folds, "\n".join([*self._lines, "}\n"])])
        return kept(text, "rows")

    def _head(self) -> None:
        rows, inputs = self._rows, self._program.inputs
        signature = SIGNATURE.format(threads=rows.threads).rstrip()
        if rows.subgroups:
            signature = signature.replace(_LANE_INDEX, _LANE_INDEX + _SUBGROUP_INDICES)
            signature += "\n  part = subgroup;\n  parts = subgroups;\n  part_lane = invocation;"
        self._lines += [
            signature,
            f"  let own = lane_index % {rows.lanes}u;",
            f"  let row_first = linear_group(group, groups) * {rows.threads // rows.lanes}u;",
            f"  let row = row_first + lane_index / {rows.lanes}u;",
            "  let live = row < p.rows;",
            "  let end = select(0u, p.steps, live);",
            *(f"  var at{i} = p.o{i};" for i in range(len(inputs))),
            *(["  var rest = select(0u, row, live);"] if rows.rank else []),
            *coordinates(rows.rank, {f"at{i}": f"s{i}_" for i in range(len(inputs))}),
        ]
        for i, dtype in enumerate(inputs):
            if i not in self._elements:
                self._lines.append(f"  let v{i} = {load(dtype, f'in{i}[at{i}]')};")
        for i, dtype in enumerate(self._program.numbers, len(inputs)):
            self._lines.append(f"  let v{i} = {load(dtype, f'p.c{i}')};")
        for value, i in enumerate(self._program.firsts, len(inputs) + len(self._program.numbers)):
            raw = f"in{i}[at{i}]{'.x' * (rows.access[i] == 'v')}"
            self._lines.append(f"  let v{value} = {load(inputs[i], raw)};")

    def _row_part(self, part: Part, name: str) -> None:
        self._define(part, name)
        self._lines += self._call(part, name, -1, "")

    def _define(self, part: Part, name: str) -> None:
        struct = f"{name.capitalize()}Results"
        body = part.body
        if isinstance(body, Formula):
            self._functions.append(body.function(name, struct))
        else:
            self._functions.append(function(body, name, struct, inner=True))

    def _call(self, part: Part, name: str, slot: int, c: str) -> list[str]:
        """Statements for what a part gives, of an element where there is a component."""
        end = f"_{slot}{c}" if c else ""
        args = ", ".join(self._name(value, end) for value in part.takes)
        lines = [f"  let {name}_r{end} = {name}({args});"]
        for at, value in enumerate(part.gives):
            field = "" if len(part.gives) == 1 else f".r{at}"
            lines.append(f"  let v{value}{end} = {name}_r{end}{field};")
        return lines

    def _name(self, value: int, end: str) -> str:
        return f"v{value}{end if value in self._elements else ''}"

    def _stage(self, stage: Stage, number: int) -> None:
        name = f"each{number}"
        if stage.each:
            self._define(stage.each, name)
            self._elements.update(stage.each.gives)
        for value, op, _ in stage.folds:
            self._lines += [f"  var acc{value}_{n} = identity_{op}();" for n in range(UNROLL)]
        if self._rows.slots:
            self._cached(stage, name, number)
        else:
            self._looped(stage, name)
        for value, op, _ in stage.folds:
            a, b, c, d = (f"acc{value}_{n}" for n in range(UNROLL))
            pairs = f"combine_{op}(combine_{op}({a}, {b}), combine_{op}({c}, {d}))"
            self._lines.append(f"  let v{value} = fold_{op}({pairs}, lane_index);")
        if stage.row:
            self._row_part(stage.row, f"row{number}")

    def _cached(self, stage: Stage, name: str, number: int) -> None:
        slots = range(self._rows.slots)
        for slot in slots:
            if not number:
                ahead = f" + {slot * self._rows.lanes}u" * (slot > 0)
                self._lines.append(f"  let k{slot} = own{ahead};")
                self._lines.append(f"  let in_{slot} = k{slot} < end;")
            self._lines += self._element(stage, name, slot, guarded=True)
        if stage.folds and self._rows.vector:
            for slot in slots:
                self._lines.append(f"  if (in_{slot}) {{")
                self._lines += [*self._all(stage, slot), "  }"]
        elif stage.folds:
            for first in range(0, len(slots), UNROLL):
                self._lines += self._four(stage, slots[first : first + UNROLL])
        else:
            for slot in slots:
                lines = self._stores(slot)
                self._lines += [f"  if (in_{slot}) {{", *lines, "  }"]

    def _four(self, stage: Stage, slots: range) -> list[str]:
        """Four steps go to an accumulator each; fewer than four to the first one."""
        lines = []
        if len(slots) == UNROLL:
            lines += [f"  if (in_{slots[-1]}) {{"]
            lines += [self._add(stage, n, slot, "x") for n, slot in enumerate(slots)]
            lines += ["  } else {"]
        else:
            lines += ["  {"]
        for slot in slots[: UNROLL - 1]:
            lines.append(f"    if (in_{slot}) {{ {self._add(stage, 0, slot, 'x')} }}")
        return [*lines, "  }"]

    def _looped(self, stage: Stage, name: str) -> None:
        lanes = self._rows.lanes
        self._lines += ["  {", "  var k = own;"]
        turns = 1
        if stage.folds and not self._rows.vector:
            turns = UNROLL
            self._lines.append(f"  while (k + {(turns - 1) * lanes}u < end) {{")
            for slot in range(turns):
                self._lines.append(f"  let k{slot} = k{f' + {slot * lanes}u' * (slot > 0)};")
                self._lines += self._element(stage, name, slot, guarded=False)
            self._lines += [self._add(stage, slot, slot, "x") for slot in range(turns)]
            self._lines += [f"  k += {turns * lanes}u;", "  }"]
        self._lines += ["  while (k < end) {", "  let k0 = k;"]
        self._lines += self._element(stage, name, 0, guarded=False)
        self._lines += self._all(stage, 0) if stage.folds else self._stores(0)
        self._lines += [f"  k += {lanes}u;", "  }", "  }"]

    def _element(self, stage: Stage, name: str, slot: int, *, guarded: bool) -> list[str]:
        """Statements for the values of a step."""
        taken = {*(stage.each.takes if stage.each else ()), *(of for _, _, of in stage.folds)}
        if not stage.folds:
            taken |= {value for value, _ in self._program.results}
        lines = []
        for i in sorted(taken & {*range(len(self._program.inputs))} & self._elements):
            if not guarded or (i, slot) not in self._loaded:
                lines += self._loads(i, slot, guarded=guarded)
                self._loaded.add((i, slot))
        if stage.each:
            for c in self._components:
                lines += self._call(stage.each, name, slot, c)
        return lines

    def _loads(self, i: int, slot: int, *, guarded: bool) -> list[str]:
        dtype, kind = self._program.inputs[i], self._rows.access[i]
        stored = stored_type(dtype, kind == "v")
        lines = []
        for n, c in enumerate("x" if kind == "v" else self._components):
            place = f"at{i} + i32(k{slot})"
            if kind == "e":
                step = f"4u * k{slot} + {n}u" if self._rows.vector else f"k{slot}"
                place = f"at{i} + i32({step}) * p.step{i}"
            raw = f"b{i}_{slot}{c}"
            if guarded:
                lines.append(f"  var {raw} = {stored}();")
                lines.append(f"  if (in_{slot}) {{ {raw} = in{i}[{place}]; }}")
            else:
                lines.append(f"  let {raw} = in{i}[{place}];")
        for c in self._components:
            raw = f"b{i}_{slot}x.{c}" if kind == "v" else f"b{i}_{slot}{c}"
            lines.append(f"  let v{i}_{slot}{c} = {load(dtype, raw)};")
        return lines

    def _all(self, stage: Stage, slot: int) -> list[str]:
        return [self._add(stage, n, slot, c) for n, c in enumerate(self._components)]

    def _add(self, stage: Stage, n: int, slot: int, c: str) -> str:
        """Statements that add an element to one of the accumulators of each fold."""
        lines = []
        for value, op, of in stage.folds:
            acc, lifted = f"acc{value}_{n}", f"lift_{op}({self._name(of, f'_{slot}{c}')}, 0u)"
            lines.append(f"{acc} = combine_{op}({acc}, {lifted});")
        return "    " + " ".join(lines)

    def _stores(self, slot: int) -> list[str]:
        lines = []
        for at, (value, dtype) in enumerate(self._program.results):
            each = [store(dtype, self._name(value, f"_{slot}{c}")) for c in self._components]
            kind = stored_type(dtype, self._rows.vector)
            packed = f"{kind}({', '.join(each)})" if self._rows.vector else each[0]
            place = f"row * p.steps + k{slot}"
            if self._rows.apart:
                place = f"at0 - p.o0 + i32(k{slot}) * p.step0"
            lines.append(f"    out{at}[{place}] = {packed};")
        return lines


_LANE_INDEX = "@builtin(local_invocation_index) lane_index: u32"
_SUBGROUP_INDICES = """,
        @builtin(subgroup_id) subgroup: u32, @builtin(num_subgroups) subgroups: u32,
        @builtin(subgroup_invocation_id) invocation: u32"""
_SUBGROUPS = """\
var<private> part: u32;
var<private> parts: u32;
var<private> part_lane: u32;
"""
# What a subgroup has together.
_TOGETHER = {
    "max": "Acc_max(subgroupMax(acc.value), subgroupMax(acc.magnitude))",
    "sum": "subgroupAdd(acc)",
}


def _fold_function(op: str, rows: Rows) -> str:
    """What the threads of a row have, as one value that all of them get.

    Halves are combined as reductions do: each thread combines those of some that way, and then what
    these gave. Subgroups combine in an order of their own.
    """
    lanes = rows.lanes
    given = Reduction(
        op, "f32", "f", "f32", 1, 1, lanes, reduces_last_axis=True, vector=False, partial=False
    )
    text = _NAMES.sub(rf"\1_{op}", accumulator(given))
    lines = [f"fn fold_{op}(value: Acc_{op}, index: u32) -> f32 {{", "  var acc = value;"]
    if lanes > 1:
        text += f"var<workgroup> shared_{op}: array<Acc_{op}, {rows.threads}>;\n"
    if rows.subgroups:
        lines += [
            f"  acc = {_TOGETHER[op]};",
            "  workgroupBarrier();",
            f"  if (part_lane == 0u) {{ shared_{op}[part] = acc; }}",
            "  workgroupBarrier();",
            f"  acc = shared_{op}[0];",
            f"  for (var i = 1u; i < parts; i++) {{ acc = combine_{op}(acc, shared_{op}[i]); }}",
        ]
    elif lanes > 1:
        many = lanes if lanes <= 16 else 8 if lanes <= 64 else 16
        rest = lanes // many
        lines += [
            f"  let own = index % {lanes}u;",
            "  let first = index - own;",
            f"  shared_{op}[index] = acc;",
            "  workgroupBarrier();",
            *_tree(op, "a", [f"first + own % {rest}u + {rest * n}u" for n in range(many)]),
            "  workgroupBarrier();",
        ]
        if rest > 1:
            lines += [
                f"  if (own < {rest}u) {{ shared_{op}[index] = acc; }}",
                "  workgroupBarrier();",
                *_tree(op, "b", [f"first + {n}u" for n in range(rest)]),
                "  workgroupBarrier();",
            ]
    return text + "\n".join([*lines, f"  return {total(given)};", "}", ""])


def _tree(op: str, letter: str, places: list[str]) -> list[str]:
    """Statements that combine shared values as the halves of a row are."""
    names = [f"{letter}{n}" for n in range(len(places))]
    lines = [f"  let {n} = shared_{op}[{at}];" for n, at in zip(names, places, strict=True)]
    while len(names) > 1:
        half = len(names) // 2
        pairs = [*zip(names[:half], names[half:], strict=True)]
        names = [f"{a}_" for a, _ in pairs]
        lines += [
            f"  let {n} = combine_{op}({a}, {b});" for n, (a, b) in zip(names, pairs, strict=True)
        ]
    return [*lines, f"  acc = {names[0]};"]
