"""Programs hold together, print, and mean what their ops mean."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import phlox_tensor as pt
from phlox_tensor import Numpy, Tensor, capture
from phlox_tensor.capture import Graph, Instr, Program, interpreted, lowered

CHAIN = Program(
    ("float32", "float32"),
    ("float32",),
    (Instr("multiply", (0, 2), "float32"), Instr("less", (3, 1), "bool")),
    (4, 3),
)


def graph_of(function: Callable[..., Any], *given: Tensor[Any]) -> Graph:
    """What a function does with inputs."""
    made = capture.Recording(lambda cell, made: cell.current())
    handles = [made.handle(x.device, x.primitive) for x in given]
    for x, handle in zip(given, handles, strict=True):
        made.input(x.device, handle)
    with capture.recorded(made):
        out = function(*[Tensor(h, x.device) for x, h in zip(given, handles, strict=True)])
        outs = out if isinstance(out, tuple) else (out,)
        return made.graph(tuple(made.value_of(t.device, t.primitive) for t in outs))


def program_of(function: Callable[..., Any], *given: Tensor[Any]) -> Program:
    """A function of elements as a program."""
    graph = graph_of(function, *given)
    return lowered(graph.live(), graph.specs, graph.outputs).program


def test_a_program_prints_line_by_line() -> None:
    assert str(CHAIN) == (
        "program(float32 x0, float32 x1, float32 n2)\n"
        "  v3: float32 = multiply(x0, n2)\n"
        "  v4: bool = less(v3, x1)\n"
        "  gives v4, v3"
    )
    assert [CHAIN.dtype(value) for value in range(5)] == ["float32"] * 4 + ["bool"]


def test_equal_programs_are_one_key() -> None:
    again = CHAIN._replace(instrs=tuple(Instr(*instr) for instr in CHAIN.instrs))
    assert {CHAIN: 1}[again] == 1


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (CHAIN._replace(outputs=()), "nothing to do"),
        (CHAIN._replace(outputs=(0,)), "no instructions"),
        (CHAIN._replace(outputs=(4, 4)), "no instructions"),
        (CHAIN._replace(outputs=(5,)), "no instructions"),
        (CHAIN._replace(inputs=(), instrs=(), outputs=()), "nothing to do"),
        (CHAIN._replace(instrs=(Instr("exp", (3,), "float32"),)), "not there"),
        (CHAIN._replace(instrs=(Instr("exp", (-1,), "float32"),)), "not there"),
        (CHAIN._replace(instrs=(Instr("exp", (), "float32"),)), "not there"),
    ],
)
def test_what_no_kernel_could_run_is_refused(program: Program, message: str) -> None:
    with pytest.raises(pt.CompileError, match=message):
        program.check()
    with pytest.raises(pt.CompileError, match=message):
        interpreted(program)


def test_the_interpreter_does_what_numpy_does() -> None:
    x, y = np.array([1, 2, 3], np.float32), np.array([3, 3, 3], np.float32)
    less, product = interpreted(CHAIN)(x, y, 1.5)
    assert (less.tolist(), product.tolist()) == ([True, False, False], [1.5, 3.0, 4.5])
    assert (less.dtype, product.dtype) == (np.bool_, np.float32)


def test_a_graph_of_elementwise_ops_is_a_program() -> None:
    x, y = pt.arange(6, dtype=pt.float32).reshape(2, 3), pt.ones(3)

    def function(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        z = (x * 2 + y).clip(0, 5)
        return z.astype(pt.float16), pt.where(z > 1, z, 0.5 * y)

    with pt.use_device(Numpy()):
        program = program_of(function, x, y)
        assert program.inputs == ("float32", "float32")
        assert program.numbers == ("float32",) * 5
        assert [i.op for i in program.instrs][:4] == ["multiply", "add", "clip", "cast"]
        given = x.numpy(), y.numpy(), 2, 0, 5, 1, 0.5
        half, chosen = interpreted(program)(*given)
        wanted = function(x, y)
    assert half.tobytes() == wanted[0].numpy().tobytes()
    assert chosen.tobytes() == wanted[1].numpy().tobytes()


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: (x + 1).sum(axis=0) * 2, "sum is in the way of one kernel"),
        (lambda x: (x @ x).exp(), "matmul is in the way of one kernel"),
        (lambda x: ((x + 1).reshape(-1)) * 2, "reshape is in the way of one kernel"),
    ],
)
def test_the_op_in_the_way_is_named(function: Callable[..., Any], message: str) -> None:
    with pt.use_device(Numpy()), pytest.raises(pt.CompileError, match=message):
        program_of(function, pt.ones((3, 3)))


def test_a_backend_has_no_programs_unless_it_says_so() -> None:
    assert (Numpy().limits.bindings, Numpy().kernel(CHAIN)) == (0, None)
