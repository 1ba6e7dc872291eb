"""Functions of elements as one kernel on all backends: values, derivatives, lanes, recordings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import phlox as px
from phlox import Backend, Cpu, Numpy, Tensor, Wgpu
from phlox_fusion.replay.replay import MISS
from phlox_kernels import _native
from phlox_tensor import REGISTRY, Op
from phlox_tensor.capture import ElementFormula, Instr, Program, ProgramLimits
from phlox_tensor.testing import LAYOUTS

NAMES = ("cpu", "numpy", "wgpu")
ADD = Program(("float32", "float32"), (), (Instr("add", (0, 1), "float32"),), (2,))
needs_programs = pytest.mark.skipif(
    Cpu().kernel(ADD) is None, reason="the kernels have no register code for this processor"
)


def device_of(name: str) -> Backend:
    if name != "wgpu":
        return Cpu() if name == "cpu" else Numpy()
    try:
        device = Wgpu()
        assert device.dtypes  # opens the adapter
        return device
    except px.BackendUnavailableError as error:
        pytest.skip(f"no adapter: {error}")


def plain(x: Tensor, beta: Any) -> Tensor:
    return x / (1 + (-beta * x).exp()) + x.clip(min=-0.5).tanh()


swish = px.kernel(plain)


def close(device: Backend, got: Tensor, wanted: Tensor) -> None:
    """Equal bits; on GPUs, whose drivers may round a product and a sum once, nearly equal."""
    assert (got.shape, got.dtype, got.device) == (wanted.shape, wanted.dtype, wanted.device)
    if device.strict:
        assert got.numpy().tobytes() == wanted.numpy().tobytes()
    else:
        np.testing.assert_allclose(got.numpy(), wanted.numpy(), 2e-5, 2e-6)


def arrays(device: Backend, *shapes: tuple[int, ...], layout: str = "contiguous") -> list[Tensor]:
    rng = np.random.default_rng(3)
    return [
        LAYOUTS[layout](rng.normal(size=s).astype(np.float32), px.float32, device) for s in shapes
    ]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("layout", sorted(LAYOUTS))
def test_a_kernel_gives_what_its_ops_do(name: str, layout: str) -> None:
    device = device_of(name)
    for shapes in (((6, 5), (5,)), ((4, 1, 3), (2, 1)), ((0, 3), (3,)), ((), ()), ((600, 41),) * 2):
        x, beta = arrays(device, *shapes, layout=layout)
        close(device, swish(x, beta), plain(x, beta))
        close(device, swish(x, 0.75), plain(x, 0.75))


@pytest.mark.parametrize("name", NAMES)
def test_derivatives_of_kernels_are_those_of_their_ops(name: str) -> None:
    device = device_of(name)
    x, beta = arrays(device, (6, 5), (5,))

    def first(f: Any) -> Any:
        return px.grad(lambda x, beta: (f(x, beta) * 1.5).sum(), (0, 1))(x, beta)

    def second(f: Any) -> Any:
        slope = px.grad(lambda x, beta: f(x, beta).sum(), 0)
        return px.grad(lambda x, beta: (slope(x, beta) * 0.5).sum(), (0, 1))(x, beta)

    def forward(f: Any) -> Any:
        return px.jvp(f, (x, beta), (x * 0.5, beta + 1.0))

    def by_number(f: Any) -> Any:
        return (px.grad(lambda x: f(x, 2.0).sum())(x),)

    for derivative in (first, second, forward, by_number):
        for got, wanted in zip(derivative(swish), derivative(plain), strict=True):
            # The order in which cotangents of one operand are added may be another one.
            np.testing.assert_allclose(got.numpy(), wanted.numpy(), 3e-5, 3e-6)
    if px.float64 in device.dtypes:
        assert px.gradcheck(
            lambda x, beta: swish(x, beta).sum(),
            (x.astype(px.float64), beta.astype(px.float64)),
            order=2,
        )


@pytest.mark.parametrize("name", NAMES)
def test_kernels_run_over_lanes(name: str) -> None:
    device = device_of(name)
    x, beta = arrays(device, (4, 6), (6,))
    close(device, px.vmap(swish, in_axes=(0, None))(x, beta), plain(x, beta))

    def slope(f: Any) -> Any:
        return px.vmap(px.grad(lambda x, beta: f(x, beta).sum(), 1), in_axes=(0, None))(x, beta)

    np.testing.assert_allclose(slope(swish).numpy(), slope(plain).numpy(), 3e-5, 3e-6)


@pytest.mark.parametrize("name", NAMES)
def test_kernels_train_inside_of_compiled_functions(name: str) -> None:
    device = px.Autodiff(device_of(name))
    (start,) = arrays(device, (5,))

    def step(w: Tensor, x: Tensor, beta: float) -> tuple[Tensor, Tensor]:
        loss, slope = px.value_and_grad(lambda w: swish(w * x, beta).square().mean())(w)
        return w - 0.1 * slope, loss

    fast = px.compile(step)
    (x,) = arrays(device, (7, 5))
    a = b = start
    for turn in range(6):
        a, mine = fast(a, x, 0.5 + turn)
        b, own = step(b, x, 0.5 + turn)
        np.testing.assert_allclose(mine.numpy(), own.numpy(), 1e-5, 1e-6)
    np.testing.assert_allclose(a.numpy(), b.numpy(), 1e-4, 1e-5)
    assert (fast.versions, fast.fallbacks) == (1, 0)


def test_a_kernel_keeps_its_operands_alone_for_the_backward_pass() -> None:
    device = px.Autodiff(Cpu())
    x = px.ones((256, 1024), device=device).require_grad()

    def held(f: Any) -> int:
        before = _native._memory()[0]
        out = f(x, 2.0)
        after = _native._memory()[0]
        assert out.size == x.size
        return after - before

    if Cpu().kernel(swish.program(x, 2.0)) is None:
        pytest.skip("no code for this machine: programs run op by op")
    assert held(swish) + held(plain) > 0  # what is made once is made
    assert held(swish) < 1.1 * (4 << 18) < 3 * (4 << 18) <= held(plain)


def test_a_limit_of_the_device_is_told() -> None:
    def long(x: Tensor) -> Tensor:
        for at in range(40):
            x = x * 1.5 + at
        return x

    with pytest.raises(px.CompileError, match=r"kernel long\] Cpu\(\) has no kernel for all of it"):
        px.kernel(long)(px.ones(2, device=Cpu()))
    assert px.kernel(long)(px.ones(2, device=Numpy())).shape == (2,)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        *((name, name) for name in ("int8", "int16", "uint8", "uint16", "uint32", "int64")),
        ("float64", "float32"),
        ("bfloat16", "float64"),
        ("float16", "float32"),
    ],
)
def test_element_types_without_programs_run_op_by_op(first: str, second: str) -> None:
    def formula(x: Tensor, y: Tensor, n: int) -> Tensor:
        return (x * n + y) * y

    fast = px.kernel(formula)
    for n in (2, 3):
        x, y = (px.asarray([1, 2, 3], dtype=dtype, device=Cpu()) for dtype in (first, second))
        out, expected = fast(x, y, n), formula(x, y, n)
        assert (out.dtype, out.tolist()) == (expected.dtype, expected.tolist())
        if first == "float64":
            slope = px.grad(lambda x, y=y, n=n: fast(x, y, n).sum())(x)
            plain = px.grad(lambda x, y=y, n=n: formula(x, y, n).sum())(x)
            assert (slope.dtype, slope.tolist()) == (plain.dtype, plain.tolist())


def test_a_derivative_that_is_too_long_runs_op_by_op(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Cpu, "limits", ProgramLimits(bindings=24, instrs=8, mixed=False))
    f = px.kernel(lambda x: x.sin().cos().tanh().exp() * x)
    x = px.asarray([0.5, -2.0], device=Cpu())
    wanted = px.grad(lambda x: (x.sin().cos().tanh().exp() * x).sum())(x)
    assert px.grad(lambda x: f(x).sum())(x).tolist() == wanted.tolist()


def test_devices_that_look_on_see_the_kernel() -> None:
    x = px.asarray([1.0, 2.0], device=px.Checked(Cpu(), Numpy()))
    assert swish(x, 0.5).device is x.device
    cpu = px.Profile(Cpu())
    x = px.ones(3, device=cpu)
    with cpu:
        swish(x, 1.0)
    assert [call.op for call in cpu.calls] == ["kernel plain"]


def test_detect_nan_names_the_kernel() -> None:
    bad = px.kernel(lambda x: (x - 1).log())
    x = px.asarray([0.5, 2.0], device=px.Autodiff(Numpy())).require_grad()
    assert bad(x).shape == (2,)
    with px.detect_nan(), pytest.raises(px.PhloxError, match="kernel <lambda>"):
        bad(x)


def _cases() -> list[Op]:
    """The elementwise ops of one and two Float tensors without attributes."""
    found = []
    for op in REGISTRY.values():
        operands = op.signature.operands
        kinds = {o.kind for o in operands} <= {"Any", "Float", "Num"} and not op.signature.several
        if op.op_class.diagonal and op.op_class.broadcasts and kinds and not op.attribute_names:
            found.append(op)
    return found


@pytest.mark.parametrize("name", ["cpu", "numpy"])
def test_every_elementwise_op_is_the_same_inside_of_a_kernel(name: str) -> None:
    device = device_of(name)
    ran, refused = 0, []
    for op in _cases():
        given = arrays(device, *((4, 3),) * len(op.signature.operands))
        given = [x.abs() + 0.25 if op.tested.interval(o.name)[0] >= 0 else x.tanh() * 0.9
                 for x, o in zip(given, op.signature.operands, strict=True)]  # fmt: skip
        try:
            out = ElementFormula(op.name, op, strict=True)(*given)
        except px.CompileError as error:
            refused.append(str(error))
            continue
        ran += 1
        assert out.numpy().tobytes() == op(*given).numpy().tobytes(), op.name
    assert ran > 60
    assert all("in the way" in why or "has no kernel" in why for why in refused)


@needs_programs
def test_calls_alike_to_the_one_before_take_one_look() -> None:
    chain = px.kernel(lambda x, n, up: (x * (n * 2) + 1).exp() if up else (x * n).exp())
    x = px.asarray([[0.5, -1.0]], device=Cpu())
    for n in (0.5, 1.0, -2.0, 4.0):
        assert chain(x, n, True).tolist() == (x * (n * 2) + 1).exp().tolist()
    assert chain._quick is not None
    chain._kept.clear()  # nothing but the quick way
    assert chain(x.T, 3.0, True).tolist() == (x.T * 6.0 + 1).exp().tolist()
    assert not chain._kept
    # Whatever is other goes the long way.
    assert chain(x, 3.0, False).tolist() == (x * 3.0).exp().tolist()
    assert chain(x, 3, True).tolist() == (x * 6 + 1).exp().tolist()
    assert chain(x.astype("float64"), 3.0, True).dtype is px.float64
    assert chain(x.to_device(px.Numpy()), 3.0, True).device == px.Numpy()
    both = px.kernel(lambda x, y: x + y)
    for _ in range(3):
        assert both(x, x).tolist() == (x + x).tolist()
        with pytest.raises(px.ShapeError, match="kernel"):
            both(x, px.ones(3, device=Cpu()))
    for _ in range(20):
        assert both(x, x).tolist() == (x + x).tolist()
        assert both(x.astype("float64"), x.astype("float64")).dtype is px.float64
    assert len(both._kept[0].quick) == 2


@needs_programs
def test_calls_of_several_forms_and_states_are_known_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rate = 1.0
    fast = px.kernel(lambda x: x * rate)
    single, double = px.ones(1, device=Cpu()), px.ones(1, dtype=px.float64, device=Cpu())
    rates = 1.0, 2.0  # the very same numbers each time
    for rate in rates:
        for x in (single, double) * 20:
            assert (fast(x).tolist(), fast(x).dtype) == ([rate], x.dtype)
    with monkeypatch.context() as patched:
        patched.setattr(fast, "_known", None)  # what other calls begin with
        for rate in (*rates, *rates):
            for x in (single, double, single):
                assert (fast(x).tolist(), fast(x).dtype) == ([rate], x.dtype)


@needs_programs
def test_quick_calls_follow_what_stands_outside_and_join_recordings() -> None:
    factor = 2.0
    times = px.kernel(lambda x: x * factor + 1)
    x = px.ones(2, device=Cpu())
    for value in (2.0, 3.0, 2.0, 4.0):
        factor = value
        assert times(x).tolist() == times(x).tolist() == [value + 1] * 2
    assert "program of 3: multiply, add, exp" in px.compile(lambda x: times(x).exp()).explain(x)
    assert times(x).device is Cpu()
    with px.Profile(Cpu()) as device:
        times(px.ones(2, device=device))
    assert "kernel <lambda>" in str(device.report())


def test_a_kernel_may_be_made_of_functions_with_rules_of_their_own() -> None:
    def doubling(x: Any) -> Any:
        return x * 2, lambda g: g * 10

    doubled: Any = px.custom_gradient(doubling)

    def halved(x: Any) -> Any:
        return (x * 0.5).exp()

    kept: Any = px.checkpoint(halved)
    rows = px.vmap(lambda row: row * 2)
    cases: list[Any] = [
        lambda x: doubled(x).exp(),
        lambda x: rows(x) + 1,
        lambda x: kept(x) * 2,
    ]
    for function in cases:
        fast = px.kernel(function)
        for x in (px.ones(2), px.ones((2, 3))):
            assert fast(x).tolist() == function(x).tolist()
            expected = px.grad(lambda x: function(x).sum())(x)  # noqa: B023
            assert px.grad(lambda x: fast(x).sum())(x).tolist() == expected.tolist()  # noqa: B023


@needs_programs
def test_a_form_that_comes_late_is_known_at_once_before_long() -> None:
    fast, x = px.kernel(lambda x, name: x * len(name)), px.ones(1, device=Cpu())
    for size in range(20):
        assert fast(x, "a" * size).item() == size
    for _ in range(300):
        assert fast(x, "late").item() == 4.0
    assert fast._quick is not None
    assert fast._quick((x, "late")) is not MISS
    assert len(fast._kept[0].quick) <= 4
