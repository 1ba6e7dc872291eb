"""What a program over rows is, and the stages that are made of one."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from .stages import Formula, Part, Stage, Stages

_WORD = re.compile(r"(?<![.\w])[A-Za-z_]\w*")
Lines = tuple[tuple[str, str], ...]
Reduction = Literal["max", "sum"]


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a program: values per element, then reductions of them, then values per row.

    Each is a name and a WGSL expression over f32 scalars, which may use all names before it.
    """

    each: Lines = ()
    reduce: tuple[tuple[str, Reduction, str], ...] = ()
    row: Lines = ()


@dataclass(frozen=True, slots=True)
class RowProgram:
    """What is computed for each row.

    ``rows``: inputs of the shape of x; ``columns``: vectors over a row; ``results``: an expression
    of elements for each output of the shape of x; ``totals``: of rows. Expressions may use
    ``p.divisor``, the length of a row as f32, the parameters ``scalars``, and the first element of
    a row as ``x_first``.
    """

    name: str
    rows: tuple[str, ...]
    steps: tuple[Step, ...]
    results: tuple[str, ...] = ()
    totals: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    scalars: tuple[str, ...] = ()


def row_stages(program: RowProgram, dtype: str, totals: str, *, keeps: bool) -> Stages:
    """A program as stages, which keep what later ones need or, not `keeps`, compute it again.

    Arrays are of type `dtype`, what a row gives is of type `totals`.
    """
    return _Maker(program, keeps=keeps).stages(dtype, totals)


class _Maker:
    def __init__(self, program: RowProgram, *, keeps: bool) -> None:
        self._program, self._keeps = program, keeps
        inputs = (*program.rows, *program.columns)
        self._firsts = [i for i, name in enumerate(inputs) if f"{name}_first" in _words(program)]
        known = (*inputs, *program.scalars, *(f"{inputs[i]}_first" for i in self._firsts))
        self._values = {name: value for value, name in enumerate(known)}
        self._each: dict[str, str] = {}  # values of elements that no stage keeps yet
        self._made = len(known)

    def stages(self, dtype: str, totals: str) -> Stages:
        program, made = self._program, []
        for number, step in enumerate(program.steps):
            self._each |= dict(step.each)
            terms = [self._term(f"{name}_term", text) for name, _, text in step.reduce]
            each = self._elements(terms)
            folds = tuple(
                (self._new(name), kind, self._values[term])
                for (name, kind, _), term in zip(step.reduce, terms, strict=True)
            )
            row = step.row
            if number == len(program.steps) - 1:
                row += tuple((f"total{i}", text) for i, text in enumerate(program.totals))
            made.append(Stage(each, folds, self._part(row)))
        wanted = [self._term(f"result{i}", text) for i, text in enumerate(program.results)]
        if wanted:
            made.append(Stage(self._elements(wanted), (), None))
        return Stages(
            (dtype,) * (len(program.rows) + len(program.columns)),
            ("float32",) * len(program.scalars),
            None,
            (*made,),
            tuple((self._values[name], dtype) for name in wanted),
            tuple((self._values[f"total{i}"], totals) for i in range(len(program.totals))),
            (*self._firsts,),
        )

    def _new(self, name: str) -> int:
        self._values[name] = self._made
        self._made += 1
        return self._values[name]

    def _term(self, name: str, text: str) -> str:
        """The name of an expression of elements, which may be no more than that name."""
        if text in self._values or text in self._each:
            return text
        self._each[name] = text
        return name

    def _elements(self, wanted: list[str]) -> Part | None:
        """The part that makes these values of elements, and all that they need."""
        lines: dict[str, str] = {}
        work = [*wanted]
        while work:
            name = work.pop()
            if name in self._each and name not in lines:
                lines[name] = self._each[name]
                work += _WORD.findall(lines[name])
        part = self._part(tuple((name, lines[name]) for name in self._each if name in lines))
        if self._keeps:
            self._each = {name: text for name, text in self._each.items() if name not in lines}
        return part

    def _part(self, lines: Lines) -> Part | None:
        if not lines:
            return None
        own = {name for name, _ in lines}
        used = dict.fromkeys(word for _, text in lines for word in _WORD.findall(text))
        takes = tuple(name for name in used if name in self._values and name not in own)
        values = tuple(self._values[name] for name in takes)
        return Part(Formula(takes, lines), values, tuple(self._new(name) for name, _ in lines))


def _words(program: RowProgram) -> set[str]:
    texts = [*program.results, *program.totals]
    for step in program.steps:
        texts += [text for _, text in (*step.each, *step.row)]
        texts += [text for _, _, text in step.reduce]
    return {word for text in texts for word in _WORD.findall(text)}
