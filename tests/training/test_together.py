"""Steps of elementwise rules: one call for all parameters, with the bits of one after the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import phlox as px
from phlox import Cpu, Numpy, Tensor, optim
from phlox.nn import Param
from tests.training.rules import LARGE, RULES, SHAPES, Net, bits, drawn


def counted(rule: Any, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Where each call of the rule's step leaves a mark."""
    calls: list[Any] = []
    own = type(rule).step

    def step(self: Any, *args: Any) -> Any:
        calls.append(args)
        return own(self, *args)

    monkeypatch.setattr(type(rule), "step", step)
    return calls


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", sorted(RULES))
def test_a_step_is_one_call_with_the_bits_of_one_for_each_parameter(
    name: str, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rule = RULES[name]
    calls = counted(rule, monkeypatch)
    with px.use_device(Cpu()):
        optimizer = optim.OptimizerAdaptor(rule)
        model = Net([Param(x) for x in drawn(0, dtype)])
        ids = [param.id for param in model.params().values()]
        values, states = drawn(0, dtype), [None] * len(SHAPES)
        for at in range(4):
            grads, lr = drawn(at + 1, dtype), 0.1 / (1 + at)
            calls.clear()
            model = optimizer.step(lr, model, dict(zip(ids, grads, strict=True)))
            assert at == 0 or len(calls) == 1, "one call for all"
            pairs = [rule.step(lr, *each) for each in zip(values, grads, states, strict=True)]
            values, states = [value for value, _ in pairs], [state for _, state in pairs]
            stepped = [param.value for param in model.params().values()]
            assert [x.dtype.name for x in stepped] == [dtype] * len(SHAPES)
            assert bits(stepped) == bits(values), at
        held: Any = optimizer.into_record()["states"]
        for key, state in zip(ids, states, strict=True):
            mine, own = px.tree.leaves(held[key]), px.tree.leaves(state)
            tensors = [[x for x in each if isinstance(x, Tensor)] for each in (mine, own)]
            assert bits(tensors[0]) == bits(tensors[1])
            assert [x for x in mine if not isinstance(x, Tensor)] == [
                x for x in own if not isinstance(x, Tensor)
            ]


@pytest.mark.parametrize("name", sorted(RULES))
def test_a_step_on_the_gpu_is_one_call_with_the_values_of_its_ops(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rule, device = RULES[name], px.Wgpu()
    calls = counted(rule, monkeypatch)
    shapes = (40, 50), (7,), (40, 50), ()
    rng = np.random.default_rng(0)
    values = [px.asarray(rng.normal(size=s).astype("float32"), device=device) for s in shapes]
    model = Net([Param(x) for x in values])
    ids = [param.id for param in model.params().values()]
    optimizer, states = optim.OptimizerAdaptor(rule), [None] * len(shapes)
    for at in range(3):
        grads = [px.asarray(rng.normal(size=s).astype("float32"), device=device) for s in shapes]
        calls.clear()
        model = optimizer.step(0.1, model, dict(zip(ids, grads, strict=True)))
        assert at == 0 or len(calls) == 1, "one call for all"
        pairs = [rule.step(0.1, *each) for each in zip(values, grads, states, strict=True)]
        values, states = [value for value, _ in pairs], [state for _, state in pairs]
        for got, want in zip(model.weights, values, strict=True):
            # Two ulps and a few of the terms: a driver may contract products and sums.
            np.testing.assert_allclose(got.value.numpy(), want.numpy(), rtol=3e-7, atol=1e-6)


class ByShape(optim.SimpleOptimizer):
    """Does another thing for vectors."""

    def step(self, lr: float, tensor: Tensor, grad: Tensor, state: Any) -> tuple[Tensor, Any]:
        return tensor - grad * (lr if tensor.ndim > 1 else 2 * lr), None


class Counts(optim.SimpleOptimizer):
    """Keeps in the rule what belongs to the state."""

    def __init__(self) -> None:
        self.calls = 0

    def step(self, lr: float, tensor: Tensor, grad: Tensor, state: Any) -> tuple[Tensor, Any]:
        self.calls += 1
        return tensor - grad * (lr * self.calls), None


class Draws(optim.SimpleOptimizer):
    """Takes random numbers that are no elements of the parameter."""

    def step(self, lr: float, tensor: Tensor, grad: Tensor, state: Any) -> tuple[Tensor, Any]:
        return tensor - grad * px.random.uniform((), device=Cpu()) * lr, None


class Norms(optim.SimpleOptimizer):
    """Reduces."""

    def step(self, lr: float, tensor: Tensor, grad: Tensor, state: Any) -> tuple[Tensor, Any]:
        return tensor - grad * (lr / (1.0 + grad.abs().sum())), None


class Reads(optim.SimpleOptimizer):
    """Decides by a value."""

    def step(self, lr: float, tensor: Tensor, grad: Tensor, state: Any) -> tuple[Tensor, Any]:
        return (tensor - grad * lr if float(grad.sum()) > 0 else tensor), None


class Takes(optim.SimpleOptimizer):
    """Takes a tensor from outside."""

    half = px.asarray(0.5, device=Cpu())

    def step(self, lr: float, tensor: Tensor, grad: Tensor, state: Any) -> tuple[Tensor, Any]:
        return tensor - grad * self.half * lr, None


@pytest.mark.parametrize("make", [ByShape, Counts, Draws, Norms, Reads, Takes])
def test_a_rule_that_is_more_than_ops_of_elements_runs_for_each_parameter(
    make: type[optim.SimpleOptimizer],
) -> None:
    with px.use_device(Cpu()):
        shapes = [LARGE, LARGE, (7,)]
        values = [px.random.normal(shape) for shape in shapes]
        model = Net([Param(x) for x in values])
        ids = [param.id for param in model.params().values()]
        optimizer, rule = optim.OptimizerAdaptor(make()), make()
        px.seed(3)
        for _ in range(3):
            model = optimizer.step(
                0.1,
                model,
                {key: px.ones_like(model.weights[at].value) for at, key in enumerate(ids)},
            )
        px.seed(3)
        for _ in range(3):
            values = [rule.step(0.1, x, px.ones_like(x), None)[0] for x in values]
        assert bits([param.value for param in model.params().values()]) == bits(values)


def test_small_steps_and_other_devices_run_for_each_parameter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls = counted(RULES["Lion"], monkeypatch)
    for device, shape in ((Cpu(), (4, 5)), (Numpy(), LARGE), (px.Profile(Cpu()), LARGE)):
        model = Net([Param(px.ones(shape, device=device)) for _ in range(3)])
        grads = {param.id: px.ones(shape, device=device) for param in model.params().values()}
        calls.clear()
        _ = optim.OptimizerAdaptor(RULES["Lion"]).step(0.1, model, grads)
        assert len(calls) == 3, device


def test_the_numbers_of_each_step_are_its_own() -> None:
    """Equal numbers at one step that differ at the next are not taken for one."""

    class Twice(optim.SimpleOptimizer):
        factor = 0.5

        def step(self, lr: float, tensor: Tensor, grad: Tensor, state: Any) -> tuple[Tensor, Any]:
            return tensor * self.factor - grad * lr, None

    with px.use_device(Cpu()):
        model = Net([Param(px.ones((1000, 1000)))])
        (key,) = model.params().values()
        optimizer = optim.OptimizerAdaptor(Twice())
        for lr, want in ((0.5, 0.0), (0.25, -0.25), (1.0, -1.125)):
            model = optimizer.step(lr, model, {key.id: px.ones((1000, 1000))})
            assert float(model.weights[0].value[3, 4]) == want
        Twice.factor = 0.0
        model = optimizer.step(1.0, model, {key.id: px.ones((1000, 1000))})
        assert float(model.weights[0].value[3, 4]) == -1.0


def test_a_rule_may_be_a_dataclass_which_has_no_hash() -> None:
    @dataclass
    class Sign(optim.SimpleOptimizer):
        beta: float = 0.5

        def step(self, lr: float, tensor: Tensor, grad: Tensor, state: Any) -> tuple[Tensor, Any]:
            return tensor - grad.sign() * (lr * self.beta), state

    with px.use_device(Cpu()):
        model = Net([Param(px.ones(LARGE)), Param(px.ones(LARGE))])
        grads = {param.id: px.ones(LARGE) for param in model.params().values()}
        model = optim.OptimizerAdaptor(Sign()).step(0.5, model, grads)
        assert float(model.weights[1].value[0, 0]) == 0.75
