"""Random programs on every backend, beside the reference and beside themselves."""

from __future__ import annotations

import numpy as np
from hypothesis import given

from phlox import Autodiff, Cpu, Wgpu
from phlox_tensor import DTYPES, REGISTRY, Backend, use_device
from tests.backends import judge
from tests.backends import programs as p
from tests.backends.program import Program

NARROW = ("bool", "float32", "int32", "uint32")
EVERY = tuple(sorted(DTYPES))


def execute(program: Program, backend: Backend) -> None:
    with use_device(backend):
        done = judge.run(program, backend)
        judge.judge(program, done, backend)
        # Once more, keeping nothing: buffers are used again, and the bits must be the same.
        (last, *_) = judge.run(program, backend)[-1]
        first = done[-1][0].numpy()
        assert np.array_equal(last.numpy(), first, equal_nan=first.dtype.kind == "f"), program


@given(p.programs(EVERY))
def test_on_the_cpu(program: Program) -> None:
    execute(program, Cpu(int="int32"))


@given(p.programs(NARROW))
def test_on_webgpu(program: Program) -> None:
    execute(program, Wgpu())


@given(p.programs(EVERY))
def test_through_autodiff(program: Program) -> None:
    execute(program, Autodiff(Cpu(int="int32")))


def test_every_op_is_drawn_or_left_out_with_a_reason() -> None:
    # Images and kernels: the conformance suite has their cases.
    windows = {name for name, op in REGISTRY.items() if op.op_class.windows}
    drawn = {name for name, op in REGISTRY.items() if p.builder(op) is not None}
    made_of_others = {name for name, op in REGISTRY.items() if op.expand is not None}
    # Matrices have to be well conditioned: as windows.
    hosted = {name for name, op in REGISTRY.items() if op.op_class.hosted}
    assert drawn | windows | made_of_others | hosted | set(p.LEFT_OUT) == set(REGISTRY)
    assert not drawn & set(p.LEFT_OUT)
    assert set(p.BY_NAME) <= set(REGISTRY)
