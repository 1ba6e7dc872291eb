"""Kernels of programs: a chain; with folds, one kernel that goes over each row in stages.

Few rows that are long have a kernel for each fold, whose threads come from all over the GPU.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from typing import Any, Final

import numpy as np

from phlox_tensor import REGISTRY, Rejected, as_dtype
from phlox_tensor.capture import Kernel, Program

from . import _elementwise
from ._array import GpuArray, dense_strides
from ._fold import dealt, fold_of
from ._launch import Launch
from ._layout import Shape, broadcast_strides, merge_axes
from ._program_stages import folds_of, has_rows, part_of, staged
from ._rows import launch_rows
from ._runtime import GpuDevice
from .wgsl.reduce import REDUCTIONS
from .wgsl.stages import Rows, Stages

_TOKENS = count()
_MOST_KEPT: Final = 1024  # kernels, of which each has the layouts that it met
_CACHED: Final = 16  # elements of a row that a thread keeps in registers
_MOST_CACHED: Final = 128  # of all arrays, and of what stages keep for each other


@lru_cache(_MOST_KEPT)
def kernel(device: GpuDevice, program: Program) -> Kernel | None:
    """The kernel of a program, one for equal programs; None for what WGSL has no row for.

    Folds are those of float32, and programs with them have no sources.
    """
    program.check()
    folds = folds_of(program)
    if not folds:
        return _elementwise.kernel(device, program)
    if any(REGISTRY[instr.op].traits.source for instr in program.instrs) or not has_rows(program):
        return None
    for instr in (program.instrs[value - program.start] for value in folds):
        given = program.dtype(instr.args[0])
        if instr.op not in REDUCTIONS or not instr.dtype == given == "float32":
            return None
    return _Folded(device, program).run


@dataclass(frozen=True, slots=True)
class _Map:
    """What makes outputs of one shape from inputs, numbers and folds."""

    kernel: Kernel
    takes: tuple[int, ...]
    gives: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Plan:
    """The shapes of results and of totals; without a launch each fold has a kernel of its own."""

    shape: Shape
    kept: Shape
    launch: Launch | None = None


class _Folded:
    """The kernel of one program with folds."""

    def __init__(self, device: GpuDevice, program: Program) -> None:
        self._device, self._program = device, program
        self._token = next(_TOKENS)
        self._rows = program.of_rows()
        folds = folds_of(program)
        self._folds = [(value, fold_of(device, program, value)) for value in folds]
        self._maps = self._mapped(folds)
        self._only = len(folds) == 1 and (*folds,) == program.outputs

    def _mapped(self, folds: Sequence[int]) -> list[_Map]:
        maps = []
        for of_rows in (True, False):
            own = [v for v in self._program.outputs if self._rows[v] is of_rows and v not in folds]
            if own:
                mapped, takes = part_of(self._program, own, folds)
                run = _elementwise.kernel(self._device, mapped)
                assert run is not None
                maps.append(_Map(run, takes, (*own,)))
        return maps

    def run(self, *operands: Any) -> tuple[GpuArray, ...]:
        """Run it over arrays and numbers.

        Raises:
            Rejected: the shapes do not broadcast, or are not those of rows.
        """
        device, program = self._device, self._program
        arrays = operands[: len(program.inputs)]
        key = ("folds", self._token, *[x.layout for x in arrays])
        plan: _Plan = device.plans.get(key) or device.plans.find(key, lambda: self._plan(arrays))
        if plan.launch is None:
            return self._one_by_one(operands, plan)
        kinds = program.numbers
        given = operands[len(program.inputs) :]
        numbers = [_elementwise.scalar(x, kind) for x, kind in zip(given, kinds, strict=True)]
        each = sorted(program.outputs, key=self._rows.__getitem__)  # results, then totals
        made = {
            v: device.empty(plan.kept if self._rows[v] else plan.shape, as_dtype(program.dtype(v)))
            for v in each
        }
        plan.launch.run(device, arrays, [*made.values()], numbers)
        return tuple(made[value] for value in program.outputs)

    def _one_by_one(self, operands: tuple[Any, ...], plan: _Plan) -> tuple[GpuArray, ...]:
        values: dict[int, Any] = dict(enumerate(operands))
        for value, fold in self._folds:
            values[value] = fold.run(tuple(values[v] for v in fold.takes), plan.shape)
        for part in self._maps:
            made = part.kernel(*(values[v] for v in part.takes))
            values.update(zip(part.gives, made, strict=True))
        return tuple(
            values[v].view(plan.kept, dense_strides(plan.kept), values[v].offset)
            if self._rows[v] and values[v].shape != plan.kept
            else values[v]
            for v in self._program.outputs
        )

    def _plan(self, arrays: Sequence[GpuArray]) -> _Plan:
        program = self._program
        try:
            shape = np.broadcast_shapes(*[x.shape for x in arrays])
        except ValueError:
            raise Rejected from None
        inner = program.inner
        if len(shape) < inner or 0 in shape:
            raise Rejected("no rows to fold")
        outer, length = shape[:-inner], math.prod(shape[-inner:])
        results = math.prod(outer)
        if results * length >= 2**31:
            raise Rejected("more elements than 32 bits count")
        kept = outer + (1,) * inner if program.keepdims else outer
        deal = dealt(results, length)
        own = [broadcast_strides(x.shape, x.strides, shape) for x in arrays]
        rows = [merge_axes(shape[-inner:], [each[-inner:]]) for each in own]
        if self._only or deal.parts > 1 or any(len(merged) > 1 for merged, _ in rows):
            return _Plan(shape, kept)
        lengths, merged = merge_axes(outer, [each[:-inner] for each in own])
        width = 4 if deal.vector else 1
        access, steps = "", [step for _, ((step,),) in rows]
        for x, step, outside in zip(arrays, steps, merged, strict=True):
            fours = width == 4 and step == 1 and not any(at % 4 for at in (x.offset, *outside))
            access += "s" if not step else "v" if fours else "e"
        slots = -(-length // (width * deal.lanes))
        stages = staged(program, keeps=True)
        if slots * width > _CACHED or slots * width * _held(stages, access) > _MOST_CACHED:
            slots, stages = 0, staged(program, keeps=False)
        way = Rows(access, len(lengths), deal.lanes, deal.vector, slots)
        return _Plan(
            shape, kept, launch_rows(self._device, stages, way, lengths, merged, steps, length)
        )


def _held(stages: Stages, access: str) -> int:
    """For how many arrays a thread holds elements."""
    kept = {v for stage in stages.stages if stage.each for v in stage.each.gives}
    return len(kept) + len(access) - access.count("s")
