"""Handlers of register code against the row kernels: every float32 there is, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import phlox as px
from phlox_tensor import REGISTRY
from phlox_tensor.capture import Instr, Program

CPU = px.Cpu()
_BLOCK = 2**24
# Beside all exponents and signs: ends of the mantissa and what lies between.
_FEW = np.arange(2**32 // 509, dtype=np.uint64) * 509


def program_of(name: str) -> Program:
    return Program(("float32",), (), (Instr(name, (0,), "float32"),), (1,))


def unary() -> list[str]:
    """The ops of one float alone of which the CPU makes register code."""
    found = []
    for op in REGISTRY.values():
        kinds = [operand.kind for operand in op.signature.operands]
        single = op.op_class.diagonal and len(kinds) == 1 and not op.signature.several
        if not single or op.attribute_names or kinds[0] not in ("Any", "Float", "Num"):
            continue
        if CPU.kernel(program_of(op.name)) is not None:
            found.append(op.name)
    return found


def compared(name: str, patterns: np.ndarray[Any, Any]) -> None:
    values = patterns.astype(np.uint32).view(np.float32)
    x = CPU.upload(values, px.float32)
    entry, kernel = getattr(CPU.ops, name), CPU.kernel(program_of(name))
    assert kernel is not None
    (got,) = kernel(x)
    ours, own = CPU.read(got).view(np.uint32), CPU.read(entry(x)).view(np.uint32)
    if (ours == own).all():
        return
    at = int(np.flatnonzero(ours != own)[0])
    raise AssertionError(
        f"{name}({values[at]!r} = {patterns[at]:#010x}) is {ours[at]:#010x}, not {own[at]:#010x}"
    )


UNARY = unary()


def test_there_is_register_code_for_the_unary_ops() -> None:
    assert len(UNARY) > 30


@pytest.mark.parametrize("name", UNARY)
def test_a_handler_has_the_bits_of_the_row_kernel(name: str) -> None:
    compared(name, _FEW[:: 1 + len(_FEW) // 2**19])


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", UNARY)
def test_a_handler_has_the_bits_of_the_row_kernel_for_all_floats(name: str) -> None:
    for start in range(0, 2**32, _BLOCK):
        compared(name, np.arange(start, start + _BLOCK, dtype=np.uint64))
