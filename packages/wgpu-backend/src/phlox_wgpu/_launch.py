"""What ops remember of a launch, for operands of one layout."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from phlox_tensor import DeviceError

from ._array import GpuArray
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
        outputs: Sequence[GpuArray],
        changing: Sequence[float] = (),
    ) -> None:
        """Record the dispatch."""
        params = list(self.head)
        for (unit, behind), x in zip(self.operands, inputs, strict=False):
            offset = x.offset
            params.append(offset // unit if offset else 0)
            if behind:
                params += behind
        params += self.tail
        if changing:
            params += changing
        device.record(self.pipeline, inputs, outputs, params, *self.grid)
