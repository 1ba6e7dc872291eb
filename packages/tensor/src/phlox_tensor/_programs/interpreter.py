"""The reference of programs: op by op."""

from __future__ import annotations

from typing import Any

from .._device.backend import Backend
from .._device.numpy_backend import Numpy
from .._device.program import Instr, Kernel, Program
from .._errors.classes import Rejected
from .._functions.composite import broadcast_shapes
from .._op.declaration import REGISTRY
from .._values.dtype import as_dtype


def interpreted(program: Program, device: Backend | None = None) -> Kernel:
    """Return a kernel that runs the ops one by one.

    Args:
        program: the ops.
        device: a base device, which runs them on its primitives; else NumPy does, on arrays.

    Raises:
        CompileError: for a program that does not hold together.

    Example:
        >>> import numpy as np
        >>> chain = Program(("float32",), ("float32",), (Instr("add", (0, 1), "float32"),), (2,))
        >>> interpreted(chain)(np.ones(2, np.float32), 0.5)
        (array([1.5, 1.5], dtype=float32),)
    """
    program.check()
    own = Numpy() if device is None else device
    entries = own.ops
    of_rows, inner = program.of_rows(), program.inner

    def run(*args: Any) -> tuple[Any, ...]:
        values = list(args)
        shape = broadcast_shapes(*map(own.shape_of, args[: len(program.inputs)]))
        if inner > len(shape) or (inner and 0 in shape):
            raise Rejected("no axes to fold, or nothing to fold")
        for instr in program.instrs:
            given = [values[arg] for arg in instr.args]
            if REGISTRY[instr.op].traits.source:
                values.append(entries[instr.op](*_drawn(instr, given, shape)))
                continue
            if REGISTRY[instr.op].traits.folds:
                given = [entries["broadcast_to"](given[0], shape)]
            values.append(entries[instr.op](*given, *_asked(instr, len(shape), inner)))
        for value in program.outputs:
            if of_rows[value] and not program.keepdims:
                values[value] = entries["reshape"](values[value], shape[: len(shape) - inner])
        return tuple(values[value] for value in program.outputs)

    return run


def _drawn(instr: Instr, given: list[Any], shape: tuple[int, ...]) -> list[Any]:
    """The attributes of a source: its shape, the element type, and the numbers in their order."""
    known: dict[str, Any] = {"DType": as_dtype(instr.dtype), "Shape": shape}
    numbers = iter(given)
    kinds = [item.type for item in REGISTRY[instr.op].signature.attributes]
    return [known[kind] if kind in known else next(numbers) for kind in kinds]


def _asked(instr: Instr, rank: int, inner: int) -> list[Any]:
    """The attributes that are no numbers: the element type of the result; how rows are folded."""
    op = REGISTRY[instr.op]
    known: dict[str, Any] = {"DType": as_dtype(instr.dtype)}
    if op.traits.folds:
        known |= {"Axes": tuple(range(rank - inner, rank)), "bool": True}
    kinds = [item.type.removesuffix("?") for item in op.signature.attributes]
    return [known[kind] for kind in kinds if kind in known]
