"""Launches that ops keep, for operands of one layout."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from phlox_tensor import DeviceError

from ._array import GpuArray, Result
from ._engine import Pipeline
from ._runtime import GpuDevice, grid

LONGEST_LOOP: Final = 1 << 15
"""Turns of a loop on a software adapter. Mesa ends all loops of a thread after 65,535 together."""


def check_turns(device: GpuDevice, op: str, turns: int) -> None:
    """Refuse what a software adapter would leave half done.

    Raises:
        DeviceError: a thread would take more turns than its loops may.
    """
    if device.software and turns > LONGEST_LOOP:
        what = "software adapters cut loops short, and with them sums this long"
        expected = f"at most {LONGEST_LOOP}"
        hint = "x.to_device(px.Cpu()), or a GPU"
        raise DeviceError(op, what, got=f"{turns} terms", expected=expected, hint=hint)


Operand = tuple[int, tuple[float, ...]]
"""In which unit the offset of an input counts (4: it is read by fours), and what follows it."""


@dataclass(frozen=True, slots=True)
class Launch:
    """A dispatch but for its buffers and offsets, and for numbers that change from call to call.

    The parameters of its kernel are `head`; for each of the first inputs its offset and what
    `operands` puts behind; `tail`; then what changes.
    """

    pipeline: Pipeline
    grid: tuple[int, int, int]
    head: tuple[float, ...] = ()
    operands: tuple[Operand, ...] = ()
    tail: tuple[float, ...] = ()
    unmoved: tuple[float, ...] = field(init=False)  # the parameters where no input has an offset

    def __post_init__(self) -> None:
        """Prepare what most calls need."""
        object.__setattr__(self, "unmoved", self._params([0] * len(self.operands)))

    @staticmethod
    def of(
        device: GpuDevice,
        kernel: tuple[Any, ...],
        groups: int | tuple[int, int, int],
        head: tuple[float, ...] = (),
        operands: tuple[Operand, ...] = (),
        tail: tuple[float, ...] = (),
    ) -> Launch:
        """The launch of a kernel, which is a function and its arguments."""
        return Launch(device.pipeline(*kernel), grid(groups), head, operands, tail)

    def run(
        self,
        device: GpuDevice,
        inputs: Sequence[GpuArray],
        outputs: list[GpuArray],
        changing: Sequence[float] = (),
        results: Sequence[Result] = (),
    ) -> list[GpuArray]:
        """Record the dispatch; returns the outputs, to which arrays for `results` are added."""
        params: Sequence[float] = self.unmoved
        for x in inputs:
            if x.offset:
                params = self._params([x.offset for x in inputs])
                break
        if changing:
            params = (*params, *changing)
        device.record(self.pipeline, inputs, outputs, params, self.grid, results)
        return outputs

    def _params(self, offsets: Sequence[int]) -> tuple[float, ...]:
        params = list(self.head)
        for (unit, behind), offset in zip(self.operands, offsets, strict=False):
            params += offset // unit, *behind
        return (*params, *self.tail)
