"""From rules for tensors to optimizers for modules: finding gradients, keeping states."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

import phlox_nn as nn
import phlox_optim as optim
import phlox_record as record
import phlox_tensor as pt
from phlox_record import Keyed
from phlox_tensor import Numpy, RecordError, ShapeError, Tensor


def grads_of(model: nn.Module, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {
        p.id: pt.asarray(rng.normal(size=p.shape), device=p.device)
        for p in model.params().values()
        if p.trainable
    }


def test_parameters_without_a_gradient_are_untouched() -> None:
    model = nn.Linear(2, 3)
    assert model.bias is not None
    optimizer = optim.AdamWConfig(weight_decay=0.5).init()
    out = optimizer.step(0.1, model, {model.weight.id: pt.ones((2, 3))})
    assert out.bias is model.bias
    assert out.weight is not model.weight
    states: Any = optimizer.into_record()["states"]
    assert set(states) == {model.weight.id}


def test_untracked_state_is_untouched() -> None:
    model = nn.BatchNorm(2)
    grads = {p.id: pt.ones(2) for p in model.params().values()}
    out = optim.SgdConfig().init().step(1.0, model, grads)
    assert out.running_mean is model.running_mean
    assert out.params()["weight"].value.tolist() == [0, 0]
    frozen = model.no_grad()
    out = optim.SgdConfig().init().step(1.0, frozen, grads, strict=False)
    assert out.weight is frozen.weight


def test_lazy_parameters_without_a_gradient_stay_lazy() -> None:
    model = nn.Linear(2, 3)

    class Nothing:
        def get(self, leaf: Any, /) -> None:
            return None

    out = optim.AdamConfig().init().step(0.1, model, Nothing(), strict=False)
    assert not out.weight.is_initialized


def test_gradients_are_found_by_leaf() -> None:
    model = nn.Linear(2, 1, bias=False)
    leaf = model.weight.value

    class ByLeaf:
        def get(self, asked: Any, /) -> Any:
            return pt.ones((2, 1)) if asked is leaf else None

    out = optim.SgdConfig().init().step(1.0, model, ByLeaf())
    assert np.allclose(out.weight.value.numpy(), leaf.numpy() - 1)
    assert out.weight.id == model.weight.id


def test_shared_parameters_step_once() -> None:
    class Tied(nn.Module):
        a: nn.Linear
        b: nn.Linear

    layer = nn.Linear(1, 1, bias=False)
    model = Tied(layer, layer)
    out = optim.SgdConfig().init().step(1.0, model, {layer.weight.id: pt.ones((1, 1))})
    assert out.a.weight is out.b.weight
    assert np.allclose(out.a.weight.value.numpy(), layer.weight.value.numpy() - 1)


def test_gradient_and_state_come_to_the_parameter() -> None:
    here, there = Numpy(float="float64"), Numpy(float="float64", int="int32")
    config = optim.AdamConfig(grad_clipping=optim.ClipByGlobalNorm(1.0))
    optimizer, stays = config.init(), config.init()
    first = nn.Linear(2, 1, device=here)
    model = optimizer.step(0.1, first, grads_of(first))
    _ = stays.step(0.1, first, grads_of(first))
    moved = model.to_device(there)
    # Gradients of the old device, states on the old device, parameters on the new one.
    moved = optimizer.step(0.1, moved, grads_of(model, 1))
    assert moved.devices == [there]
    model = stays.step(0.1, model, grads_of(model, 1))
    for one, other in zip(moved.param_list(), model.param_list(), strict=True):
        assert np.array_equal(one.value.numpy(), other.value.numpy())
    states: Any = optimizer.into_record()["states"]
    assert {state["first"].device for state in states.values()} == {there}
    assert {state["time"] for state in states.values()} == {2}


@pytest.mark.parametrize("shape", [(3,), (1, 3), (2, 1), ()])
def test_a_gradient_of_another_shape_is_refused(shape: Any) -> None:
    model = nn.Linear(2, 3)
    with pytest.raises(ShapeError, match=r"a gradient does not fit the parameter: got .*\(2, 3\)"):
        optim.SgdConfig().init().step(1.0, model, {model.weight.id: pt.ones(shape)})


def test_a_rule_that_changes_the_shape_is_refused() -> None:
    class Bad(optim.SimpleOptimizer):
        def step(self, lr: float, tensor: Tensor, grad: Tensor, state: Any) -> Any:
            return tensor.sum(), state

    model = nn.Linear(2, 3)
    with pytest.raises(ShapeError, match="the new value does not fit"):
        optim.OptimizerAdaptor(Bad()).step(1.0, model, grads_of(model))


def test_loading_leaves_the_old_optimizer_alone() -> None:
    model = nn.Linear(1, 1)
    optimizer = optim.AdamConfig().init()
    model = optimizer.step(0.1, model, grads_of(model))
    tree: Any = optimizer.into_record()
    resumed = optim.AdamConfig().init().load_record(tree)
    _ = resumed.step(0.1, model, grads_of(model))
    key = model.weight.id
    assert tree["states"][key]["time"] == 1
    now: Any = optimizer.into_record()["states"]
    later: Any = resumed.into_record()["states"]
    assert (now[key]["time"], later[key]["time"]) == (1, 2)


LAZY = record.TensorEntry((2,), pt.float32, lambda: np.zeros(2, np.float32))


@pytest.mark.parametrize(
    ("tree", "text"),
    [
        (None, "not a record of an optimizer: got NoneType"),
        ({}, "not a record of an optimizer: got dict"),
        ({"rule": "Adam", "states": 3}, "got states of another form"),
        ({"rule": "Adam", "states": Keyed({"a": [LAZY]})}, "got TensorEntry in a state"),
        ({"rule": "Adam", "states": Keyed(), "steps": "3"}, "got states of another form"),
        ({"rule": "Sgd", "states": Keyed()}, "of another optimizer: got Sgd, expected Adam"),
        ({"states": Keyed()}, "of another optimizer: expected Adam"),
    ],
)
def test_a_record_of_something_else_is_refused(tree: Any, text: str) -> None:
    with pytest.raises(RecordError, match=text):
        optim.AdamConfig().init().load_record(tree)


def test_a_switch_in_the_place_of_the_rate_is_refused() -> None:
    model = nn.Linear(2, 3)
    with pytest.raises(pt.ArgumentError, match="no number: got bool"):
        optim.SgdConfig().init().step(True, model, grads_of(model))


class Momenta(NamedTuple):
    first: Tensor[Any]
    times: int


@dataclass
class Seen:
    momenta: Momenta
    sums: list[Any]


class Accounting(optim.SimpleOptimizer):
    """A rule whose state is a dataclass that holds a named tuple."""

    class Inner(NamedTuple):
        last: Tensor[Any]

    def step(self, lr: float, tensor: Any, grad: Any, state: Any) -> Any:
        if state is None:
            state = Seen(Momenta(grad.zeros(), 0), [self.Inner(grad)])
        (kept,) = state.sums
        first = state.momenta.first * 0.9 + grad + kept.last * 0.0
        return tensor - lr * first, Seen(Momenta(first, state.momenta.times + 1), [kept])


class Strange(optim.SimpleOptimizer):
    """A rule whose state is of a class that no record finds again."""

    def step(self, lr: float, tensor: Any, grad: Any, state: Any) -> Any:
        class Hidden(NamedTuple):
            x: Any

        return tensor, Hidden(grad)


@pytest.mark.parametrize("recorder", [record.NamedMsgpackRecorder, record.JsonRecorder])
def test_named_tuples_and_dataclasses_are_states_that_a_record_keeps(recorder: Any) -> None:
    model = nn.Linear(2, 3)
    optimizer, other = optim.OptimizerAdaptor(Accounting()), optim.OptimizerAdaptor(Accounting())
    half = optimizer.step(0.1, model, grads_of(model))
    made = recorder(record.DoublePrecision)
    data = made.from_bytes(made.to_bytes(optimizer.into_record()))
    want = optimizer.step(0.1, half, grads_of(model, 1))
    got = other.load_record(data).step(0.1, half, grads_of(model, 1))
    for one, two in zip(got.param_list(), want.param_list(), strict=True):
        assert np.array_equal(one.value.numpy(), two.value.numpy())
    (state, _) = other._state.get().kept.values()
    assert type(state) is Seen
    assert type(state.momenta) is Momenta
    assert state.momenta.times == 2
    assert type(state.sums[0]) is Accounting.Inner


def test_a_state_that_no_record_finds_again_is_refused_at_once() -> None:
    model = nn.Linear(2, 3)
    with pytest.raises(pt.ArgumentError, match=r"got .*Hidden, expected a class in the module of"):
        optim.OptimizerAdaptor(Strange()).step(0.1, model, grads_of(model))


def test_a_record_makes_only_classes_that_the_rule_has() -> None:
    model, optimizer = nn.Linear(2, 3), optim.OptimizerAdaptor(Accounting())
    _ = optimizer.step(0.1, model, grads_of(model))
    for wrong in ({"class": "np.ndarray", "parts": {}}, {"class": "Momenta", "parts": {"x": 1}}):
        known: Any = optimizer.into_record()
        states: Any = {key: {"()": wrong} for key in known["states"]}
        with pytest.raises(RecordError, match="of a class that the rule does not have"):
            optimizer.load_record({**known, "states": Keyed(states)})
