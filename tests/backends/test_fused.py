"""Compiled functions on the backends with programs: the values of the ops, and no more memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import phlox as px
from phlox import Backend, Cpu, Tensor, Wgpu
from phlox_kernels import _native
from phlox_tensor.capture import Instr, Program, ProgramLimits
from phlox_tensor.testing import LAYOUTS

_ONE = (
    "abs",
    "ceil",
    "exp",
    "floor",
    "gelu",
    "log1p",
    "negative",
    "relu",
    "sigmoid",
    "sin",
    "square",
)
ADD = Program(("float32", "float32"), (), (Instr("add", (0, 1), "float32"),), (2,))
_FOLDS = ("max", "mean", "min", "prod", "sum")
_TWO = ("add", "atan2", "floor_divide", "greater", "maximum", "minimum", "multiply", "subtract")


def device_of(name: str) -> Backend:
    if name == "cpu":
        return Cpu()
    try:
        device = Wgpu()
        assert device.dtypes  # opens the adapter
        return device
    except px.BackendUnavailableError as error:
        pytest.skip(f"no adapter: {error}")


def function(steps: list[Any], args: tuple[Tensor, ...], number: float) -> tuple[Tensor, ...]:
    """The last three values of a chain of random steps."""
    values = [*args]
    for kind, name, a, b in steps:
        x, y = values[a % len(values)], values[b % len(values)]
        if kind == "one":
            out = getattr(px, name)(x.astype(px.float32))
        elif kind == "two":
            out = getattr(px, name)(x.astype(px.float32), y.astype(px.float32))
        elif kind == "number":
            out = (x.astype(px.float32) * number).clip(-2.0, 3.5)
        elif kind == "where":
            out = px.where(x.astype(px.float32) > 0.25, y.astype(px.float32), -number)
        elif kind == "int":
            out = (x.astype(px.float32).clip(-100, 100).astype(px.int32) + 3) & 6
        elif kind == "fold":
            fold = getattr(px, _FOLDS[a % len(_FOLDS)])
            out = fold(x.astype(px.float32), axis=-1 if x.ndim else (), keepdims=True)
        elif kind == "total":
            out = x.astype(px.float32).sum()
        else:
            out = x.astype(px.float16).astype(px.float32) if px.float16 in x.device.dtypes else x
        values.append(out)
    return tuple(values[-3:])


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["one", "two", "number", "where", "int", "half", "fold", "total"]),
        st.integers(0, 99),
        st.integers(0, 30),
        st.integers(0, 30),
    ),
    min_size=1,
    max_size=16,
).map(
    lambda steps: [
        (kind, (_TWO if kind == "two" else _ONE)[at % len(_TWO if kind == "two" else _ONE)], a, b)
        for kind, at, a, b in steps
    ]
)
SHAPES = st.sampled_from(
    [((3, 5), (5,), ()), ((70, 33), (70, 1), (70, 33)), ((0, 4), (4,), (0, 4))]
)


CHAINS = {
    "steps": STEPS,
    "shapes": SHAPES,
    "layout": st.sampled_from(sorted(LAYOUTS)),
    "seed": st.integers(0, 99),
}


def run_beside_ops(
    device: Backend, steps: Any, shapes: Any, layout: str, seed: int
) -> Iterator[tuple[Any, Any]]:
    """What a compiled chain gives, recorded and replayed, and what its ops give."""
    rng = np.random.default_rng(seed)
    fast = px.compile(lambda number, *args: function(steps, args, number))
    # Recorded twice, replayed; then with operands that lie in other ways, and as before.
    for turn, lies in enumerate([layout] * 3 + [*sorted(LAYOUTS)[:3], layout]):
        arrays = [rng.normal(size=shape).astype(np.float32) for shape in shapes]
        args = tuple(LAYOUTS[lies](a, px.float32, device) for a in arrays)
        number = 0.5 + turn
        for got, wanted in zip(fast(number, *args), function(steps, args, number), strict=True):
            yield got.numpy(), wanted.numpy()
    assert fast.fallbacks == 0


@settings(max_examples=40, deadline=None)
@given(**CHAINS)
def test_random_chains_have_the_bits_of_their_ops(
    steps: Any, shapes: Any, layout: str, seed: int
) -> None:
    for got, wanted in run_beside_ops(Cpu(), steps, shapes, layout, seed):
        assert got.tobytes() == wanted.tobytes()


# A driver may round a product and a sum of one kernel once. Steps such as floor then send single
# elements another way, so most of them are compared, and always those of the same chains.
@settings(max_examples=30, deadline=None, derandomize=True, database=None)
@given(**CHAINS)
def test_random_chains_on_the_gpu_are_near_their_ops(
    steps: Any, shapes: Any, layout: str, seed: int
) -> None:
    for got, wanted in run_beside_ops(device_of("wgpu"), steps, shapes, layout, seed):
        assert (got.shape, got.dtype) == (wanted.shape, wanted.dtype)
        near = np.isclose(got.astype("f8"), wanted.astype("f8"), 1e-3, 1e-3, equal_nan=True)
        assert got.size == 0 or near.mean() >= 0.9


@settings(max_examples=15, deadline=None)
@given(steps=STEPS)
def test_a_replay_never_holds_more_than_the_ops(steps: Any) -> None:
    device = Cpu()
    fast = px.compile(lambda number, *args: function(steps, args, number))
    plain = px.compile(lambda number, *args: function(steps, args, number))
    args = tuple(px.ones((256, 512), device=device) for _ in range(3))

    def peak(run: Any) -> int:
        for _ in range(3):
            run(0.5, *args)
        before = device.memory().current
        _native._reset_peak()
        run(0.5, *args)
        return device.memory().peak - before

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Cpu, "limits", ProgramLimits())
        wanted = peak(plain)
    assert peak(fast) <= wanted
    assert (fast.fallbacks, plain.fallbacks) == (0, 0)


def test_a_recorded_run_holds_no_more_than_the_function() -> None:
    device = Cpu()

    def chain(x: Tensor) -> Tensor:
        for _ in range(12):
            x = (x * 1.5).sin()
        return x

    def peak(run: Any) -> int:
        before = device.memory().current
        _native._reset_peak()
        run(x)
        return device.memory().peak - before

    x = px.ones((256, 512), device=device)
    fast = px.compile(chain)
    assert [peak(fast) <= peak(chain) for _ in range(3)] == [True] * 3


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_a_large_product_ends_in_its_activation(dtype: str) -> None:
    def function(x: Tensor, w: Tensor, b: Tensor | None) -> Any:
        hidden = px.linear(x, w, b)
        return px.linear(hidden.relu(), w.T)

    device = Cpu()
    w = px.random.normal((64, 2048), device=device).astype(dtype)
    b = px.random.normal((2048,), device=device).astype(dtype)
    for rows, bias in ((2, b), (300, b), (300, None)):
        x = px.random.normal((rows, 64), device=device).astype(dtype)
        x = px.where(x.abs() < 0.01, float("nan"), x)
        fast = px.compile(function)
        wanted = function(x, w, bias)
        for _ in range(4):
            got = fast(x, w, bias)
            assert np.asarray(got).tobytes() == np.asarray(wanted).tobytes()
        assert fast.fallbacks == 0
        ends = "fused_linear" in fast.sources[0]
        assert ends is (rows == 300 and dtype != "float16")
        assert ("1 relu: by the product before" in fast.explain(x, w, bias)) is ends


def test_a_product_that_is_read_twice_has_no_activation() -> None:
    def twice(x: Tensor, w: Tensor) -> Any:
        hidden = px.linear(x, w)
        return hidden.relu(), hidden

    def other(x: Tensor, w: Tensor) -> Any:
        hidden = px.linear(x, w)
        return hidden.relu() + hidden

    x, w = (px.random.normal(shape, device=Cpu()) for shape in ((512, 8), (8, 1024)))
    for function in (twice, other):
        assert "by the product before" not in px.compile(function).explain(x, w)


def test_a_chain_is_one_program_on_the_cpu() -> None:
    if Cpu().kernel(ADD) is None:
        pytest.skip("the kernels have no register code for this processor")
    text = px.compile(lambda x: (x * 2 + 1).relu().exp()).explain(px.ones(5, device=Cpu()))
    assert "program of 4: multiply, add, relu, exp; 1 input, 1 output" in text


def test_a_kernel_at_fault_on_the_cpu_is_shown_with_what_it_ran_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if Cpu().kernel(ADD) is None:
        pytest.skip("the kernels have no register code for this processor")
    right = Cpu.kernel

    def broken(device: Cpu, program: Program) -> Any:
        wrong = [i._replace(op="sin") if i.op == "tanh" else i for i in program.instrs]
        return right(device, program._replace(instrs=tuple(wrong)))

    monkeypatch.setattr(Cpu, "kernel", broken)
    x = px.random.normal((512, 40), device=Cpu()).T
    fast = px.compile(lambda x, n: ((x * n).tanh() + 1).exp().sum(axis=-1), check=True)
    fast(x, 2.0)
    fast(x, 2.0)
    with pytest.raises(px.DisagreementError) as caught:
        fast(x, 2.0)
    text = str(caught.value)
    assert "tanh, op 2 of a program of " in text
    assert "float32 (40, 512), strides (1, 40): [[" in text
    assert "numbers [2.0]" in text
