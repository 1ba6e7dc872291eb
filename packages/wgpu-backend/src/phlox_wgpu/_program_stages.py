"""The stages of fused programs: what they compute before, between and after their folds."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from phlox_tensor import REGISTRY
from phlox_tensor.capture import Instr, Program

from ._elementwise import chain_of
from .wgsl.chain import reporting_op
from .wgsl.stages import Part, Stage, Stages


def folds_of(program: Program) -> list[int]:
    """The values of a program that are folds."""
    made = enumerate(program.instrs, program.start)
    return [value for value, instr in made if REGISTRY[instr.op].traits.folds]


def part_of(
    program: Program, wanted: Sequence[int], given: Collection[int]
) -> tuple[Program, tuple[int, ...]]:
    """The program that makes some values out of given ones, and the values that it takes."""
    needed: dict[int, Instr] = {}
    taken: set[int] = set()
    work = [*wanted]
    while work:
        value = work.pop()
        if value < program.start or value in given:
            taken.add(value)
        elif value not in needed:
            needed[value] = program.instrs[value - program.start]
            work += needed[value].args
    first, last = len(program.inputs), program.start
    numbers = sorted(value for value in taken if first <= value < last)
    arrays = sorted(value for value in taken if not first <= value < last)
    takes = (*arrays, *numbers)
    place = {value: at for at, value in enumerate((*takes, *sorted(needed)))}
    instrs = tuple(
        needed[value]._replace(args=tuple(place[arg] for arg in needed[value].args))
        for value in sorted(needed)
    )
    inputs, given_numbers = (tuple(map(program.dtype, group)) for group in (arrays, numbers))
    outputs = tuple(place[value] for value in wanted)
    return Program(inputs, given_numbers, instrs, outputs), takes


def staged(program: Program, *, keeps: bool) -> Stages:
    """A program as stages, which keep what later ones need or, not `keeps`, compute it again.

    All of its ops have rows in WGSL.
    """
    rows, levels, folds = program.of_rows(), _levels(program), folds_of(program)
    of_rows = {v for v in range(program.start, len(rows)) if rows[v]}
    results = [v for v in program.outputs if not rows[v]]
    last = max(levels)
    folded = [[v for v in folds if levels[v] == level] for level in range(1, last + 1)]
    instrs = [[program.instrs[v - program.start] for v in each] for each in folded]
    wanted = [[instr.args[0] for instr in each] for each in instrs]
    each = _parts(program, [*wanted, results], of_rows, keeps=keeps)

    def after(level: int) -> Part | None:
        own = [v for v in of_rows if levels[v] == level and v not in folds]
        before = {v for v in of_rows if levels[v] < level or v in folds}
        return _part(program, sorted(own), before)

    stages = []
    for level, (values, made) in enumerate(zip(folded, instrs, strict=True)):
        named = tuple((v, i.op, i.args[0]) for v, i in zip(values, made, strict=True))
        stages.append(Stage(each[level], named, after(level + 1)))
    if results:
        stages.append(Stage(each[last], (), None))
    return Stages(
        program.inputs,
        program.numbers,
        after(0),
        (*stages,),
        tuple((v, program.dtype(v)) for v in results),
        tuple((v, program.dtype(v)) for v in program.outputs if rows[v]),
    )


def has_rows(program: Program) -> bool:
    """Whether all ops of a program but its folds have a row, and none may report an error."""
    folds = folds_of(program)
    own = [v for v, _ in enumerate(program.instrs, program.start) if v not in folds]
    chain = chain_of(part_of(program, own, folds)[0])
    return chain is not None and not reporting_op(chain)


def _levels(program: Program) -> list[int]:
    """How many folds follow each other on the way to each value."""
    levels = [0] * program.start
    for instr in program.instrs:
        above = max(levels[arg] for arg in instr.args)
        levels.append(above + REGISTRY[instr.op].traits.folds)
    return levels


def _parts(
    program: Program, wanted: Sequence[Sequence[int]], of_rows: set[int], *, keeps: bool
) -> list[Part | None]:
    """For each stage the part that makes the values of elements that it, or a later one, needs."""
    made_in: dict[int, int] = {}
    gives: list[set[int]] = []
    known: list[set[int]] = []
    for stage, values in enumerate(wanted):
        known.append({*made_in} if keeps else set())
        gives.append({v for v in values if v >= program.start and v not in known[stage]})
        work, new = [*values], set[int]()
        while work:
            value = work.pop()
            if value < program.start or value in of_rows or value in new:
                continue
            if value in known[stage]:
                gives[made_in[value]].add(value)
                continue
            new.add(value)
            work += program.instrs[value - program.start].args
        if keeps:
            made_in.update(dict.fromkeys(new, stage))
    return [
        _part(program, sorted(own), of_rows | before)
        for own, before in zip(gives, known, strict=True)
    ]


def _part(program: Program, gives: Sequence[int], given: Collection[int]) -> Part | None:
    if not gives:
        return None
    mapped, takes = part_of(program, gives, given)
    chain = chain_of(mapped)
    assert chain is not None
    return Part(chain, takes, (*gives,))
