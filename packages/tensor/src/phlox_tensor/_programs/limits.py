"""What fits in one kernel of a device."""

from __future__ import annotations

from typing import Final

from .._device.backend import Backend
from .._device.program import Instr, Program
from .._values.dtype import as_dtype

_WIDE: Final = 8
MIXED: Final = "element types of 8 bytes beside smaller ones"


def has_programs(device: Backend) -> bool:
    """Whether a device runs programs on this machine."""
    if not device.limits.bindings:
        return False
    dtype = device.default_float.name
    probe = Program((dtype, dtype), (), (Instr("add", (0, 1), dtype),), (2,))
    return device.kernel(probe) is not None


def too_much(device: Backend, program: Program) -> str | None:
    """Return which limit of a device a program does not hold, in words."""
    limits = device.limits
    if len(program.instrs) > limits.instrs:
        return f"{len(program.instrs)} ops"
    bound = len(program.inputs) + len(program.outputs)
    if bound > limits.bindings:
        return f"{bound} inputs and outputs"
    dtypes = {*program.inputs, *(instr.dtype for instr in program.instrs)} - {"bool"}
    if len({as_dtype(name).itemsize == _WIDE for name in dtypes}) > 1 and not limits.mixed:
        return MIXED
    return None


def lacks_types(device: Backend, program: Program) -> bool:
    """Whether a device has no programs at all for the element types of one, whatever its ops."""
    if too_much(device, program) == MIXED:
        return True
    names = {*program.inputs, *(instr.dtype for instr in program.instrs)} - {"bool"}
    alone = [Program((n, n), (), (Instr("add", (0, 1), n),), (2,)) for n in names]
    return any(device.kernel(each) is None for each in alone)
