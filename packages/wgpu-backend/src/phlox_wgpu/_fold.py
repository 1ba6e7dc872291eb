"""Programs that end in a fold: a map and the reduction of its last axes in one kernel."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import numpy as np

from phlox_tensor import REGISTRY, DType, Rejected, float32
from phlox_tensor.capture import Instr, Kernel, Program

from . import _elementwise, _reduce
from ._array import GpuArray
from ._launch import Launch
from ._layout import broadcast_strides, merge_axes
from ._runtime import GpuDevice
from .wgsl.chain import Chain, fold_source, reporting_op, stride_axes
from .wgsl.reduce import REDUCTIONS, Reduction

Shape = tuple[int, ...]
_TOKENS = count()


def kernel(device: GpuDevice, program: Program) -> Kernel | None:
    """The kernel of a program; None for what WGSL has no row for.

    Of folds there may be one, of float32, behind which only its rows are gone on with, and then
    no sources.
    """
    program.check()
    folds = [at for at, instr in enumerate(program.instrs) if REGISTRY[instr.op].folds]
    drawn = any(REGISTRY[instr.op].source for instr in program.instrs)
    if not folds:
        return _elementwise.kernel(device, program)
    fold = _parts(device, program, folds[0]) if len(folds) == 1 and not drawn else None
    return None if fold is None else fold.run


def _parts(device: GpuDevice, program: Program, at: int) -> _Folded | None:
    instr, rows = program.instrs[at], program.of_rows()
    made = program.start + at
    if instr.dtype != "float32" or program.dtype(instr.args[0]) != "float32":
        return None
    if instr.op not in REDUCTIONS or not all(rows[value] for value in program.outputs):
        return None
    mapped, takes = _part(program, instr.args, ())
    chain = _elementwise.chain_of(mapped)
    after, behind = _part(program, [v for v in program.outputs if v != made], (made,))
    end = _elementwise.kernel(device, after) if after.instrs else None
    if chain is None or reporting_op(chain) or (after.instrs and end is None):
        return None
    return _Folded(device, program, made, (chain, takes), (end, behind))


def _part(
    program: Program, wanted: Sequence[int], given: Sequence[int]
) -> tuple[Program, tuple[int, ...]]:
    """What makes some values, from what is given besides, and the values that it takes."""
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


@dataclass(frozen=True, slots=True)
class _Plan:
    """The passes of a fold for operands of one layout; with two, what lies between them."""

    shape: Shape
    first: Launch
    last: Launch | None
    partial: Shape
    between: DType


class _Folded:
    """The kernel of one program."""

    def __init__(
        self,
        device: GpuDevice,
        program: Program,
        fold: int,
        chain: tuple[Chain, tuple[int, ...]],
        after: tuple[Kernel | None, tuple[int, ...]],
    ) -> None:
        self._device, self._program, self._fold = device, program, fold
        self._chain, self._takes = chain
        self._after, self._behind = after
        self._op = program.instrs[fold - program.start].op
        self._token = next(_TOKENS)

    def run(self, *operands: Any) -> tuple[GpuArray, ...]:
        """Run it over arrays and numbers.

        Raises:
            Rejected: the shapes do not broadcast, or are not those of rows.
        """
        values: dict[int, Any] = dict(enumerate(operands))
        values[self._fold] = self._folded(tuple(values[value] for value in self._takes))
        if self._after is not None:
            wanted = [value for value in self._program.outputs if value != self._fold]
            rows = self._after(*(values[value] for value in self._behind))
            values.update(zip(wanted, rows, strict=True))
        return tuple(values[value] for value in self._program.outputs)

    def _folded(self, operands: tuple[Any, ...]) -> GpuArray:
        arrays = [x for x in operands if type(x) is GpuArray]
        shape = _broadcast(arrays)
        inner = self._program.inner
        axes = tuple(range(len(shape) - inner, len(shape)))
        if len(shape) < inner or 0 in shape:
            raise Rejected("no rows to fold")
        if not self._chain.nodes:
            typed = "dtype" in REGISTRY[self._op].attribute_names
            given = self._device, self._op, arrays[0], axes, self._program.keepdims
            return _reduce.reduce(*given, (float32,) if typed else ())
        device = self._device
        layouts = [(x.shape, x.strides, x.offset & 3) for x in arrays]
        key = ("fold", self._token, *layouts)
        plan: _Plan = device.plans.get(key) or device.plans.find(
            key, lambda: self._plan(operands, arrays, shape)
        )
        numbers = [
            _elementwise.scalar(x, dtype)
            for x, dtype in zip(operands, self._chain.inputs, strict=True)
            if type(x) is not GpuArray
        ]
        out = device.empty(plan.shape, float32)
        if plan.last is None:
            plan.first.run(device, arrays, [out], numbers)
        else:
            between = device.empty(plan.partial, plan.between)
            plan.first.run(device, arrays, [between], numbers)
            plan.last.run(device, [between], [out])
        return out

    def _plan(self, operands: tuple[Any, ...], arrays: list[GpuArray], shape: Shape) -> _Plan:
        """Deal out as the reduction of an array that holds what the map gives."""
        inner = self._program.inner
        kept, length = shape[:-inner], math.prod(shape[-inner:])
        results = math.prod(kept)
        if results * length >= 2**31:
            raise Rejected("more elements than 32 bits count")
        deal = _reduce.deal_out(
            merge_axes((results,), [(length,)]), merge_axes((length,), [(1,)]), 0
        )
        kernel = Reduction(
            op=self._op,
            source="f32",
            letter="f",
            target="f32",
            kept=len(deal.kept),
            reduced=len(deal.reduced),
            lanes=deal.lanes,
            along=deal.along,
            vector=deal.vector,
            partial=False,
            made=True,
        )
        last: Launch | None = None
        between: DType = float32
        partial: Shape = ()
        if deal.parts > 1:
            last, between = _reduce.final_pass(self._device, kernel, results, deal.parts, length)
            kernel, partial = replace(kernel, target=""), (deal.parts, results)
        first = self._first(operands, arrays, shape, kernel, deal, length)
        shown = kept + (1,) * inner if self._program.keepdims else kept
        return _Plan(shown, first, last, partial, between)

    def _first(
        self,
        operands: tuple[Any, ...],
        arrays: list[GpuArray],
        shape: Shape,
        kernel: Reduction,
        deal: _reduce.Dealt,
        length: int,
    ) -> Launch:
        """The pass that makes its elements."""
        chain, device = self._chain, self._device
        lengths, merged = merge_axes(
            shape, [broadcast_strides(x.shape, x.strides, shape) for x in arrays]
        )
        walk = _elementwise.choose(operands, arrays, lengths, merged, allowed=kernel.vector)
        axes = list(lengths)
        if walk.vector and len(axes) > 1:
            axes[-1] //= 4
        kinds = [kind for kind in walk.access if kind != "c"]
        steps: list[float] = [*axes[1:]]
        for kind, own in zip(kinds, merged, strict=True):
            steps += [own[axis] // 4 if kind == "v" else own[axis] for axis in stride_axes(walk)]
        make: Callable[[], Any] = lambda: fold_source(chain, walk, kernel)  # noqa: E731
        return Launch(
            device.pipeline(("fold", chain, walk, kernel), make),
            _reduce.pass_grid(deal),
            operands=tuple((4 if kind == "v" else 1, ()) for kind in kinds),
            tail=(0, *_reduce.pass_params(deal, length), *steps),
        )


def _broadcast(arrays: Sequence[GpuArray]) -> Shape:
    try:
        return np.broadcast_shapes(*[x.shape for x in arrays])
    except ValueError:
        raise Rejected from None
