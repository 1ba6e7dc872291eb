"""Programs that draw random numbers: the bits of the ops, on every backend that has programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import phlox as px
from phlox import Autodiff, Cpu, Numpy, Wgpu, nn
from phlox_tensor import Backend, CompileError, as_dtype
from phlox_tensor.capture import Instr, Kernel, Program, interpreted

SOURCES = ("random_normal", "random_uniform")
KEY, COUNTER = 0xFEDCBA9876543210, 2**64 - 3
TYPES = ("float64", "float64", "uint64", "uint64")
NUMBERS = (-0.25, 1.5, KEY, COUNTER, 0.5)


def dropping(op: str, dtype: str) -> Program:
    """Give ``abs(where(drawn < n, x, n))``, and which elements it keeps."""
    instrs = (
        Instr(op, (1, 2, 3, 4), dtype),
        Instr("less", (6, 5), "bool"),
        Instr("where", (7, 0, 5), dtype),
        Instr("abs", (8,), dtype),
    )
    return Program((dtype,), (*TYPES, dtype), instrs, (9, 7))


def by_ops(device: Backend, op: str, dtype: str, x: Any) -> list[np.ndarray[Any, Any]]:
    """What the ops give one by one."""
    ops = device.ops
    drawn = getattr(ops, op)(device.shape_of(x), *NUMBERS[:2], as_dtype(dtype), *NUMBERS[2:4])
    keep = ops.less(drawn, NUMBERS[4])
    return [*map(device.read, (ops.abs(ops.where(keep, x, NUMBERS[4])), keep))]


def kernel_of(device: Backend, program: Program) -> Kernel | None:
    """A kernel of the device; the reference is run by the interpreter."""
    return interpreted(program) if isinstance(device, Numpy) else device.kernel(program)


def same(device: Backend, op: str, dtype: str, x: Any) -> None:
    kernel = kernel_of(device, dropping(op, dtype))
    assert kernel is not None
    got = [*map(device.read, kernel(x, *NUMBERS))]
    for mine, wanted in zip(got, by_ops(device, op, dtype, x), strict=True):
        assert mine.shape == wanted.shape
        assert mine.tobytes() == wanted.tobytes(), (device, op, dtype, mine.shape)


def uploaded(device: Backend, shape: Sequence[int], dtype: str) -> Any:
    values = np.random.default_rng(0).standard_normal(shape)
    return device.upload(values.astype(as_dtype(dtype).numpy), as_dtype(dtype))


def has_programs(device: Backend) -> bool:
    """Whether there is code for this machine: Cpu has none without AVX2."""
    add = Program(("float32",), (), (Instr("add", (0, 0), "float32"),), (1,))
    return kernel_of(device, add) is not None


WITH_TYPES = (
    (Numpy, ("bfloat16", "float16", "float32", "float64")),
    (Cpu, ("bfloat16", "float16", "float32", "float64")),
    (Wgpu, ("float16", "float32")),
)
CASES = [(make, dtype) for make, dtypes in WITH_TYPES for dtype in dtypes]


@pytest.mark.parametrize("op", SOURCES)
@pytest.mark.parametrize(("make", "dtype"), CASES)
def test_what_a_program_draws_has_the_bits_of_the_op(
    make: Callable[[], Backend], dtype: str, op: str
) -> None:
    device = make()
    if not has_programs(device) or as_dtype(dtype) not in device.dtypes:
        pytest.skip("no programs of this type on this machine")
    for shape in ((1,), (2, 3), (33, 31), (4, 64), (1025,), (3, 4, 5, 8)):
        same(device, op, dtype, uploaded(device, shape, dtype))


@pytest.mark.parametrize("make", [Numpy, Cpu, Wgpu])
def test_places_are_counted_row_by_row_whatever_the_layout(make: Callable[[], Backend]) -> None:
    device = make()
    if not has_programs(device):
        pytest.skip("no programs on this machine")
    x = uploaded(device, (40, 12), "float32")
    turned = device.ops.permute_dims(x, (1, 0))
    spread = device.ops.broadcast_to(uploaded(device, (40, 1), "float32"), (40, 12))
    for each in (turned, spread):
        same(device, "random_uniform", "float32", each)


def test_a_source_takes_numbers_alone() -> None:
    draw = Instr("random_uniform", (0, 1, 2, 3), "float32")
    program = Program(("float32",), TYPES[:3], (draw, Instr("add", (0, 4), "float32")), (5,))
    with pytest.raises(CompileError, match="a source takes what is no number"):
        program.check()


def dropped(device: Backend, shape: tuple[int, ...]) -> tuple[Any, Any]:
    """Make a step whose result is the gradient of a loss behind dropout and noise."""
    layer = nn.Dropout(0.3, device=device)

    def step(w: Any, x: Any) -> Any:
        def loss(w: Any) -> Any:
            noise = px.random.normal(x.shape, device=device) * 0.1
            return ((layer(x * w) + noise).tanh() * 2).square().mean()

        return px.grad(loss)(w)

    return step, (px.full(shape[1:], 0.75, device=device), px.ones(shape, device=device))


@pytest.mark.parametrize("make", [Cpu, Wgpu])
def test_compiled_dropout_draws_inside_a_program(
    make: Callable[[], Backend], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Cpu, "limits", Cpu.limits._replace(draws_from=0))
    if not has_programs(make()):
        pytest.skip("no programs on this machine")
    step, args = dropped(Autodiff(make()), (64, 48))
    px.seed(5)
    eager = [step(*args).numpy() for _ in range(5)]
    px.seed(5)
    fast = px.compile(step)
    got = [fast(*args).numpy() for _ in range(5)]
    checked = px.compile(step, check=True)
    for _ in range(4):
        checked(*args)
    line = next(line for line in fast.explain(*args).splitlines() if "random_uniform" in line)
    assert "program of" in line
    assert "random_normal" in line
    assert len({each.tobytes() for each in eager}) == 5
    assert fast.fallbacks == 0
    for mine, wanted in zip(got, eager, strict=True):
        if make is Cpu:
            assert mine.tobytes() == wanted.tobytes()
        else:
            np.testing.assert_allclose(mine, wanted, rtol=1e-5, atol=1e-7)


def test_what_others_read_too_or_no_operand_spans_is_drawn_by_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    device = Cpu()

    def twice(x: Any) -> Any:
        drawn = px.random.uniform(x.shape, device=device)
        return (x * drawn + 1).tanh(), drawn

    def unspanned(x: Any) -> Any:
        return (px.random.uniform((4, 64), device=device) * x + 1).tanh()

    monkeypatch.setattr(Cpu, "limits", Cpu.limits._replace(draws_from=0))
    for function, x in ((twice, px.ones((4, 64))), (unspanned, px.ones(64))):
        px.seed(7)
        eager = [np.asarray(px.stack(_all(function(x)))) for _ in range(4)]
        px.seed(7)
        fast = px.compile(function)
        got = [np.asarray(px.stack(_all(fast(x)))) for _ in range(4)]
        assert [a.tobytes() for a in got] == [a.tobytes() for a in eager]
        assert "1 random_uniform: random is not elementwise" in fast.explain(x)


def _all(found: Any) -> list[Any]:
    return list(found) if isinstance(found, tuple) else [found]


def test_few_numbers_are_drawn_by_their_op_where_a_backend_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if not has_programs(Cpu()):
        pytest.skip("no programs on this machine")
    monkeypatch.setattr(Cpu, "limits", Cpu.limits._replace(draws_from=1024))

    def noisy(x: Any) -> Any:
        return ((x + px.random.uniform(x.shape, device=x.device)) * 2).relu()

    fast = px.compile(noisy)
    assert "few numbers are drawn faster by their op" in fast.explain(px.ones(255))
    assert "program of 4: random_uniform" in fast.explain(px.ones(256))
