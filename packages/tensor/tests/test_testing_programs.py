"""Programs beside their ops, on values that lie as they are asked to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import phlox_tensor as pt
from phlox_tensor._device.numpy_backend import Arrays
from phlox_tensor.capture import Instr, Program, interpreted
from phlox_tensor.testing import assert_program, strided

CHAIN = Program(
    ("float32",),
    ("float32",),
    (Instr("multiply", (0, 1), "float32"), Instr("tanh", (2,), "float32")),
    (3,),
)


class Programs(Arrays):
    """NumPy with programs, in which an op may be another one."""

    name = "programs"

    def __init__(self, tanh: str = "tanh") -> None:
        self.settings = (tanh,)
        self._tanh = tanh

    def entry(self, name: str) -> Any:
        """The reference of the op."""
        return pt.Numpy().entry(name)

    def kernel(self, program: Program, /) -> Any:
        """The interpreter, with another op in the place of tanh."""
        own = [i._replace(op=self._tanh) if i.op == "tanh" else i for i in program.instrs]
        return interpreted(program._replace(instrs=tuple(own)))


def test_a_program_that_parts_from_its_ops_is_seen() -> None:
    assert_program(CHAIN, [pt.asarray([0.5, -1.0], device=Programs())], [2.0])
    with pytest.raises(AssertionError, match=r"output 0: 2 of 2 differ; at \(0,\): got"):
        assert_program(CHAIN, [pt.asarray([0.5, -1.0], device=Programs("sin"))], [2.0])
    with pytest.raises(AssertionError, match="has no kernel"):
        assert_program(CHAIN, [pt.ones(2, device=pt.Numpy())], [2.0])


def test_the_reference_runs_on_any_device() -> None:
    folded = Program(("float32",), (), (Instr("sum", (0,), "float32"),), (1,), inner=1)
    x = np.arange(6, dtype="f4").reshape(2, 3)
    for program in (folded, folded._replace(keepdims=False)):
        (here,), (there,) = interpreted(program)(x), interpreted(program, pt.Numpy())(x)
        assert here.shape == there.shape
        assert here.tolist() == there.tolist()


@pytest.mark.parametrize(
    ("shape", "strides"),
    [
        ((), ()),
        ((0, 3), (3, 1)),
        ((1, 1), (1, 1)),
        ((2, 3), (1, 2)),
        ((2, 3), (3, 1)),
        ((2, 3), (14, 2)),
        ((2, 3), (-3, -1)),
        ((2, 3), (0, 1)),
        ((2, 3), (0, 0)),
        ((2, 3), (8, -2)),
        ((2, 1, 4), (4, 7, 1)),
        ((2, 3, 4), (1, 2, 6)),
        ((2, 3, 4), (40, 1, -4)),
        ((5,), (3,)),
    ],
)
def test_values_lie_as_they_are_asked_to(shape: Any, strides: Any) -> None:
    values = np.arange(float(np.prod(shape)), dtype="f4").reshape(shape)
    x = strided(values, "float32", strides, pt.Numpy())
    first = tuple(slice(0, 1) if step == 0 else slice(None) for step in strides)
    assert x.tolist() == np.broadcast_to(values[first], shape).tolist()
    if values.size:
        own = pt.Numpy().strides_of(x.primitive)
        assert [a for a, n in zip(own, shape, strict=True) if n > 1] == [
            b for b, n in zip(strides, shape, strict=True) if n > 1
        ]


def test_elements_that_overlap_are_refused() -> None:
    with pytest.raises(pt.ArgumentError, match=r"strides \(1, 1\) for shape \(2, 3\)"):
        strided([[1.0, 2.0, 3.0]] * 2, "float32", (1, 1), pt.Numpy())
