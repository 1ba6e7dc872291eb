"""Folds of what a map gives: the map and the reduction of its last axes in one kernel."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from phlox_tensor import REGISTRY, DType, Rejected, float32
from phlox_tensor.capture import Program

from . import _elementwise, _reduce
from ._array import GpuArray
from ._launch import Launch
from ._layout import Shape, broadcast_strides, merge_axes
from ._program_stages import folds_of, part_of
from ._runtime import GpuDevice
from .wgsl.chain import Chain, fold_source
from .wgsl.reduce import Reduction

_TOKENS = count()


def fold_of(device: GpuDevice, program: Program, made: int) -> Fold:
    """What makes a fold of a program from its inputs, numbers and the folds before it.

    All ops in front of it have a row in WGSL.
    """
    given = {value for value in folds_of(program) if value != made}
    mapped, takes = part_of(program, program.instrs[made - program.start].args, given)
    chain = _elementwise.chain_of(mapped)
    assert chain is not None
    op = program.instrs[made - program.start].op
    return Fold(device, op, program.inner, chain, takes)


@dataclass(frozen=True, slots=True)
class _Plan:
    """The passes of a fold for operands of one layout; with two, what lies between them."""

    shape: Shape
    first: Launch
    last: Launch | None
    partial: Shape
    between: DType


class Fold:
    """A map and the reduction of its last axes, over the values of the program that it takes."""

    def __init__(
        self,
        device: GpuDevice,
        op: str,
        inner: int,
        chain: Chain,
        takes: tuple[int, ...],
    ) -> None:
        self._device, self._op = device, op
        self._inner = inner
        self._chain, self.takes = chain, takes
        self._token = next(_TOKENS)

    def run(self, operands: tuple[Any, ...], shape: Shape) -> GpuArray:
        """Run it over arrays and numbers that broadcast to a shape which has rows."""
        arrays = [x for x in operands if type(x) is GpuArray]
        inner = self._inner
        if not self._chain.nodes:
            axes = tuple(range(len(shape) - inner, len(shape)))
            typed = "dtype" in REGISTRY[self._op].attribute_names
            whole = arrays[0].view(
                shape,
                broadcast_strides(arrays[0].shape, arrays[0].strides, shape),
                arrays[0].offset,
            )
            given = self._device, self._op, whole, axes, True
            return _reduce.reduce(*given, (float32,) if typed else ())
        device = self._device
        key = ("fold", self._token, shape, *[x.layout for x in arrays])
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
        inner = self._inner
        kept, length = shape[:-inner], math.prod(shape[-inner:])
        results = math.prod(kept)
        if results * length >= 2**31:
            raise Rejected("more elements than 32 bits count")
        deal = dealt(results, length)
        kernel = Reduction(
            op=self._op,
            source="f32",
            letter="f",
            target="f32",
            kept=len(deal.kept),
            reduced=len(deal.reduced),
            lanes=deal.lanes,
            reduces_last_axis=deal.reduces_last_axis,
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
        shown = kept + (1,) * inner
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
        inputs, steps = _elementwise.walked(walk, lengths, merged)
        groups, params = _reduce.pass_groups(deal), _reduce.pass_params(deal, length)
        make = fold_source, chain, walk, kernel
        return Launch.of(device, make, groups, (), inputs, (0, *params, *steps))


def dealt(results: int, length: int) -> _reduce.Dealt:
    """How a reduction of dense rows is dealt out."""
    return _reduce.deal_out(merge_axes((results,), [(length,)]), merge_axes((length,), [(1,)]), 0)
