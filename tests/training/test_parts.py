"""Compiled functions as parts of larger graphs: the gradients of the functions as written."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

import phlox as px
from phlox import Autodiff, Backend, BalancedCheckpointing, Cpu, Numpy, Tensor, Wgpu, nn, optim
from tests.training.models import NetConfig, batches

CPU, NUMPY = Cpu(), Numpy()


def bits(values: Any) -> Any:
    return px.tree.map(lambda x: x.numpy().tobytes() if isinstance(x, Tensor) else x, values)


def chain(x: Tensor) -> Tensor:
    return ((x * 2 + 1).relu().exp() * x).tanh()


def points(seed: int, *shape: int, device: Backend = CPU) -> Tensor:
    values = np.random.default_rng(seed).normal(size=shape).astype(np.float32)
    return px.asarray(values, device=device)


@pytest.mark.filterwarnings("ignore:.*changes runs at each call")
@pytest.mark.parametrize("device", [CPU, NUMPY, Autodiff(CPU)])
def test_gradients_pass_a_compiled_function_between_other_ops(device: Backend) -> None:
    runs: list[int] = []

    def note() -> None:
        runs.append(1)

    def counted(x: Tensor) -> Tensor:
        note()
        return chain(x)

    fast = px.compile(counted)
    run = px.value_and_grad(lambda x: (fast(x * 3).sin() * x).sum())
    plain = px.value_and_grad(lambda x: (chain(x * 3).sin() * x).sum())
    for i in range(6):
        x = points(i, 4, 3, device=device)
        assert bits(run(x)) == bits(plain(x))
    assert len(runs) == 6  # two calls and two passes back; the fourth call with its pass
    assert fast.versions == 1


def test_backward_goes_through_leaves_constants_and_several_arguments() -> None:
    device = Autodiff(CPU)

    def mixed(pair: dict[str, Tensor], factor: float, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return pair["w"] @ y * factor, (pair["b"] * factor).exp(), y * 2

    fast = px.compile(mixed)
    for i in range(5):
        w, b = (points(i + k, 3, 3, device=device).require_grad() for k in (0, 10))
        y = points(i, 3, 3, device=device)

        def loss(f: Callable[..., Any], w: Tensor, b: Tensor, y: Tensor, i: int) -> Tensor:
            first, second, third = f({"w": w, "b": b * 2}, 0.5 + i, y)
            assert [t.requires_grad for t in (first, second, third)] == [True, True, False]
            return (first * second + third).sum()

        found, expected = (loss(f, w, b, y, i).backward() for f in (fast, mixed))
        for leaf in (w, b):
            assert bits(leaf.grad(found)) == bits(leaf.grad(expected))
    assert fast.versions == 1


def test_a_result_without_a_cotangent_adds_nothing_not_even_nan() -> None:
    def two(x: Tensor) -> tuple[Tensor, Tensor]:
        return x * x, x.log()

    def total(function: Any, used: list[int]) -> Any:
        return lambda x: sum(function(x)[k].sum() for k in used)

    fast = px.compile(two)
    x = px.asarray([0.0, 2.0], device=CPU)
    for used in ([0], [1], [0, 1], [0], [0, 1], [1], [0], [0]) * 2:
        run, plain = (px.grad(total(f, used)) for f in (fast, two))
        assert bits(run(x)) == bits(plain(x))


def mlp(device: Backend) -> Any:
    return nn.Sequential(
        nn.Linear(6, 8, device=device),
        nn.Activation("gelu"),
        nn.LayerNorm(8, device=device),
        nn.Linear(8, 3, device=device),
    )


def cnn(device: Backend) -> Any:
    return NetConfig().init(device)


def trained(make: Any, data: Any, device: Backend, *, compiled: bool) -> Any:
    px.seed(3)
    model = make(device)
    rule = optim.AdamConfig().init()
    loss_of = nn.CrossEntropyLossConfig().init()
    body: Any = lambda model, x: (model(x), x.mean())  # noqa: E731 - one of two
    if compiled:
        body = px.compile(body)
    losses = []
    for x, y in data:
        logits, middle = body(model, px.asarray(x, device=device))
        loss = loss_of(logits, px.asarray(y, device=device)) + middle.square() * 1e-3
        model = rule.step(1e-2, model, loss.backward())
        losses.append(loss.item())
    values = {path: bits(p.value) for path, p in model.params().items()}
    return losses, values, px.random.generator().state()


def rows(count: int) -> Any:
    rng = np.random.default_rng(1)
    return [
        (rng.normal(size=(8, 6)).astype(np.float32), rng.integers(0, 3, 8)) for _ in range(count)
    ]


@pytest.mark.parametrize(
    ("make", "data"),
    [(mlp, rows(12)), (cnn, [(x.numpy(), y.numpy()) for x, y in batches(8, NUMPY, 8)])],
    ids=["mlp", "cnn"],  # the second one with dropout and running statistics
)
@pytest.mark.parametrize(
    "device", [Autodiff(CPU), Autodiff(CPU, BalancedCheckpointing()), Autodiff(px.Fusion(CPU))]
)
def test_training_with_a_compiled_body_has_the_bits_of_eager(
    make: Any, data: Any, device: Backend
) -> None:
    fast, slow = (trained(make, data, device, compiled=c) for c in (True, False))
    assert fast == slow


def test_a_compiled_body_trains_on_the_gpu() -> None:
    try:
        device = Autodiff(Wgpu())
    except px.BackendUnavailableError as error:
        pytest.skip(f"no adapter: {error}")
    fast, slow = (trained(mlp, rows(6), device, compiled=c) for c in (True, False))
    np.testing.assert_allclose(fast[0], slow[0], rtol=1e-4)


def test_proposals_of_several_calls_are_averaged_and_sums_are_grouped_by_calls() -> None:
    def step(f: Any, norm: Any, x: Tensor) -> Any:
        loss = (f(norm, x) * f(norm, x * 2)).sum()
        return optim.SgdConfig().init().step(0.1, norm, loss.backward())

    def body(norm: Any, x: Tensor) -> Any:
        return norm(norm(x) * 3)

    fast = px.compile(body)
    device = Autodiff(CPU)
    left = right = nn.BatchNorm(3, device=device)
    for i in range(5):
        x = points(i, 4, 3, device=device)
        left, right = step(fast, left, x), step(body, right, x)
        for path, own in right.params().items():
            np.testing.assert_allclose(left.params()[path].value, own.value, rtol=1e-5, atol=1e-7)


def noisy(x: Tensor) -> Tensor:
    return x.square() * px.random.uniform(x.shape, device=x.device) + x


@pytest.mark.parametrize("function", [chain, noisy])
def test_second_derivatives_are_those_of_the_function(function: Callable[[Tensor], Tensor]) -> None:
    fast = px.compile(function)

    def twice(f: Callable[[Tensor], Tensor]) -> Any:
        slope = px.grad(lambda x: (f(x * 2) * x).sum())
        return px.grad(lambda x: (slope(x) * x).sum())

    for i in range(5):
        x = points(i, 5)
        found = []
        for f in (fast, function):
            px.seed(i)
            found.append((twice(f)(x).numpy(), px.random.generator().state()))
        np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-6)
        assert found[0][1] == found[1][1]


def doubled(f: Any) -> Any:
    return lambda x: f(x * 2)


def total(f: Any) -> Any:
    return lambda x: f(x * 2).sum()


TRANSFORMS: dict[str, Callable[[Any], Any]] = {
    "grad over lanes": lambda f: lambda x: px.vmap(px.grad(total(f)))(x.reshape(3, 1)),
    "hessian": lambda f: px.hessian(total(f)),
    "jacobian": lambda f: px.jacobian(doubled(f)),
    "jvp": lambda f: lambda x: px.jvp(doubled(f), (x,), (x,)),
    "jvp of grad": lambda f: lambda x: px.jvp(px.grad(total(f)), (x,), (x,)),
    "vmap": px.vmap,
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms_take_compiled_functions(name: str) -> None:
    fast, transform = px.compile(chain), TRANSFORMS[name]
    for i in range(4):
        x = points(i, 3)
        assert bits(transform(fast)(x)) == bits(transform(chain)(x))


def test_leaves_of_two_levels_get_both_gradients() -> None:
    outer = Autodiff(Autodiff(CPU))
    slow: Callable[[Tensor, Tensor], Tensor] = lambda w, x: (w * x).exp() * w  # noqa: E731
    fast = px.compile(slow)
    inside = points(0, 4, device=Autodiff(CPU)).require_grad()
    for _ in range(4):
        found = []
        for f in (fast, slow):
            w = inside.to_device(outer).require_grad()
            slope = w.grad(f(w, w.detach() * 0.5).sum().backward())
            assert slope is not None
            found.append((bits(slope), bits(inside.grad((slope * slope).sum().backward()))))
        assert found[0] == found[1]


def test_a_pass_may_come_again_and_leaves_nothing_when_it_is_the_last() -> None:
    device = Autodiff(CPU)
    fast = px.compile(chain)
    for i in range(5):
        x = points(i, 4, device=device).require_grad()
        y = fast(x).sum()
        first = bits(x.grad(y.backward(retain_graph=True)))
        assert bits(x.grad(y.backward())) == first == bits(x.grad(chain(x).sum().backward()))
        with pytest.raises(px.GradientError, match="used by an earlier backward pass"):
            y.backward()
        gone = weakref.ref(x)
        del x
        gc.collect()
        assert gone() is None
    _, pull = px.vjp(lambda x: fast(x * 2), points(1, 4))
    for i in range(4):
        assert bits(pull(points(i, 4))) == bits(
            px.vjp(lambda x: chain(x * 2), points(1, 4))[1](points(i, 4))
        )


def test_an_argument_that_comes_back_keeps_its_gradient() -> None:
    device = Autodiff(CPU)
    fast = px.compile(lambda x, y: (x, y * 2))
    for i in range(5):
        x = points(i, 3, device=device).require_grad()
        h = x * 3
        a, b = fast(h, x)
        assert bits(x.grad((a * b).sum().backward())) == bits(
            x.grad((x * 3 * (x * 2)).sum().backward())
        )
        same = px.compile(lambda x: x)
        assert same(x).requires_grad


def test_one_result_returned_twice_takes_both_cotangents() -> None:
    def function(x: Tensor) -> tuple[Tensor, Tensor]:
        y = x.square()
        return y, y

    def loss(call: Callable[[Tensor], tuple[Tensor, Tensor]], x: Tensor) -> Tensor:
        one, two = call(x * 2)
        return (one * 3 + two).sum()

    fast = px.compile(function)
    for i in range(5):
        x = points(i, 4)
        wanted = px.grad(lambda x: loss(function, x))(x)
        assert bits(px.grad(lambda x: loss(fast, x))(x)) == bits(wanted)


def test_what_needs_no_gradient_has_none() -> None:
    device = Autodiff(CPU)
    fast = px.compile(lambda x: (chain(x), x.argmax(axis=0)))
    right = px.compile(lambda x: x.argmax(axis=0))
    for i in range(4):
        x = points(i, 3, device=device).require_grad()
        h = x * 2
        with px.no_grad():
            assert not fast(h)[0].requires_grad
        out, place = fast(h)
        assert (out.requires_grad, place.requires_grad) == (True, False)
        assert right(h).item() == place.item()
        assert not fast(h.detach())[0].requires_grad


def test_checkpoints_hold_compiled_functions_and_the_other_way_round() -> None:
    fast = px.compile(chain)
    inside = px.compile(px.checkpoint(chain))
    for i in range(4):
        x = points(i, 5)
        expected = bits(px.grad(lambda x: chain(x * 2).sum())(x))
        assert bits(px.grad(lambda x: px.checkpoint(fast)(x * 2).sum())(x)) == expected
        assert bits(px.grad(lambda x: inside(x * 2).sum())(x)) == expected


def test_a_tracked_tensor_from_outside_is_refused() -> None:
    device = Autodiff(CPU)
    w = points(0, 3, device=device).require_grad()
    x = points(1, 3, device=device)
    with pytest.raises(px.CompileError, match="no argument"):
        px.compile(lambda x: x * w)(x)
    fast = px.compile(lambda x: x * w)
    with pytest.raises(px.GradientError, match="no argument of the compiled function"):
        fast(x.require_grad()).sum().backward()


def test_a_tensor_of_a_lane_from_outside_is_refused() -> None:
    def lane(x: Tensor) -> Any:
        return px.compile(lambda y: y * x)(px.ones(2, device=CPU))

    with pytest.raises((px.CompileError, px.BatchingError), match=r"lane|transform"):
        px.vmap(lane)(points(0, 3, 2))


def test_a_pass_inside_that_would_leave_the_function_is_refused() -> None:
    device = Autodiff(CPU)
    w = points(0, 3, device=device).require_grad()
    fast = px.compile(lambda h: h.sum().backward() and h.exp())
    with pytest.raises(px.CompileError, match="reaches an argument that has a history"):
        fast(w * 2)

    def caught(h: Tensor) -> Tensor:
        with suppress(Exception):
            h.sum().backward()
        return h.exp()

    with pytest.raises(px.CompileError, match="reaches an argument that has a history"):
        px.compile(caught)(w * 2)
    # A pass of its own from a leaf is no such thing.
    whole = px.compile(lambda w: w.grad((w * w).sum().backward()))
    assert [bits(whole(w)) for _ in range(4)] == [bits(w.inner() * 2)] * 4


@pytest.mark.filterwarnings("ignore:.*changes seen at each call")
def test_check_mode_compares_both_halves() -> None:
    fast = px.compile(chain, check=True)
    for i in range(5):
        x = points(i, 4)
        assert bits(px.grad(lambda x: fast(x * 2).sum())(x)) == bits(
            px.grad(lambda x: chain(x * 2).sum())(x)
        )
    seen: list[int] = []

    def calls() -> int:
        seen.append(1)
        return len(seen)

    def other(x: Tensor) -> Tensor:
        return x * (2.0 if calls() < 5 else 3.0)

    wrong = px.compile(other, check=True)
    slope: Any = px.grad(lambda x: wrong(x).sum())
    for i in range(2):
        slope(points(i, 4))
    with pytest.raises(px.DisagreementError):
        slope(points(2, 4))


def test_explain_says_that_results_go_on_with_a_history() -> None:
    device = Autodiff(CPU)
    fast = px.compile(chain)
    x = points(0, 4, device=device).require_grad()
    assert "history" in fast.explain(x)
    assert "history" not in fast.explain(x.detach())


@pytest.mark.filterwarnings("ignore:.*changes runs at each call")
def test_a_pass_back_that_asks_more_of_numbers_has_halves_for_each_answer() -> None:
    runs: list[int] = []

    def note() -> None:
        runs.append(1)

    @px.compile
    def total(x: Tensor, n: int) -> Tensor:
        note()
        return (x**n).sum()

    x = px.asarray([1.0, 2.0, 3.0])
    for turn in range(4):
        for n in (1, 2, 3, 0):
            slope = px.grad(lambda x, n=n: total(x, n))(x)
            assert slope.tolist() == px.grad(lambda x, n=n: (x**n).sum())(x).tolist(), (turn, n)
    assert total.versions == 1
    assert len(runs) <= 2 + 2 * 4 + 2 * 2  # the call itself, and each pass back; calls 4 and 16


def test_numbers_that_a_pass_back_asks_for_do_not_pile_up() -> None:
    total = px.compile(lambda x, n: (x**n).sum())
    for n in range(40):
        x = px.asarray([1.0, 1.0])
        for _ in range(2):
            assert px.grad(lambda x, n=n: total(x, n))(x).tolist() == [n, n]
    assert len(total.sources) <= 40
