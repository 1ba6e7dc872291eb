"""The reference of programs: op by op on NumPy."""

from __future__ import annotations

from typing import Any

from ._dtype import as_dtype
from ._numpy_backend import Numpy
from ._op import REGISTRY
from ._program import Instr, Kernel, Program


def interpreted(program: Program) -> Kernel:
    """Return a kernel on NumPy arrays that runs the ops one by one.

    Raises:
        CompileError: for a program that does not hold together.

    Example:
        >>> import numpy as np
        >>> chain = Program(("float32",), ("float32",), (Instr("add", (0, 1), "float32"),), (2,))
        >>> interpreted(chain)(np.ones(2, np.float32), 0.5)
        (array([1.5, 1.5], dtype=float32),)
    """
    program.check()
    entries = Numpy().ops

    def run(*args: Any) -> tuple[Any, ...]:
        values = list(args)
        for instr in program.instrs:
            given = [values[arg] for arg in instr.args]
            values.append(entries[instr.op](*given, *_asked(instr)))
        return tuple(values[value] for value in program.outputs)

    return run


def _asked(instr: Instr) -> list[Any]:
    """The element type of the result, where the op takes it as an attribute."""
    attributes = REGISTRY[instr.op].signature.attributes
    return [as_dtype(instr.dtype) for attribute in attributes if attribute.type == "DType"]
