"""Transforms take modules: the derivative has the form of the module."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import phlox_tensor as pt
from phlox_autodiff import Autodiff, grad, gradcheck, hessian, jacobian, jvp, vjp
from phlox_nn import Linear, Module, Param
from phlox_optim import SgdConfig
from phlox_tensor import GradientError, Numpy, Tensor, tree

WIDE = Numpy(float="float64")


class Net(Module):
    """Written in the manner of PyTorch."""

    def __init__(self, device: Any) -> None:
        super().__init__()
        self.layers = [Linear(2, 3, device=device), Linear(3, 1, device=device)]
        self.scale = Param(pt.ones((), device=device))
        self.rate = 0.5

    def forward(self, x: Tensor) -> Tensor:
        """Map (n, 2) to (n, 1)."""
        return self.layers[1](self.layers[0](x).tanh()) * self.scale.value * self.rate


X = pt.asarray([[0.5, -1.0], [2.0, 0.25]], device=WIDE)


def loss(model: Net) -> Tensor:
    """Some number."""
    return model(X).square().sum()


def model() -> Net:
    """A model of known numbers."""
    pt.seed(3)
    return Net(WIDE)


def numbers(module: Module) -> Any:
    """All parameters in one row."""
    return np.concatenate([p.value.numpy().ravel() for p in module.param_list()])


def with_numbers(row: Any) -> Net:
    """The model with other numbers."""
    leaves, structure = tree.flatten(model())
    parts = np.split(row, np.cumsum([leaf.size for leaf in leaves])[:-1])
    made: Net = structure.rebuild(
        [pt.asarray(p.reshape(x.shape), device=WIDE) for p, x in zip(parts, leaves, strict=True)]
    )
    return made


def slopes(function: Any, at: Any) -> Any:
    """Central differences."""
    step = 1e-6 * np.eye(len(at))
    return np.stack([(function(at + h) - function(at - h)) / 2e-6 for h in step], axis=-1)


def test_the_gradient_of_a_module_is_one_of_gradients() -> None:
    found = grad(loss)(model())
    assert type(found) is Net
    assert found.rate == 0.5
    at = numbers(model())
    expected = slopes(lambda row: float(loss(with_numbers(row))), at)
    np.testing.assert_allclose(numbers(found), expected, rtol=1e-6, atol=1e-8)
    assert gradcheck(loss, (model(),), order=2)


def test_products_with_the_hessian() -> None:
    vector = tree.map(lambda x: x.zeros() + 0.3, model())
    _, product = jvp(grad(loss), (model(),), (vector,))
    second = slopes(lambda row: numbers(grad(loss)(with_numbers(row))), numbers(model()))
    np.testing.assert_allclose(numbers(product), second.sum(axis=-1) * 0.3, rtol=1e-5, atol=1e-6)
    whole = hessian(loss)(model())
    rows = [np.concatenate([leaf.numpy().reshape(p.value.size, -1)
            for leaf in tree.leaves(h.value)], axis=-1)
            for h, p in zip(whole.param_list(), model().param_list(), strict=True)]  # fmt: skip
    np.testing.assert_allclose(np.concatenate(rows), second, rtol=1e-5, atol=1e-6)
    value, pull = vjp(lambda m: m(X), model())
    assert type(pull(value)[0]) is Net
    assert jacobian(lambda m: m(X))(model()).scale.value.shape == (2, 1)


def test_frozen_weights_have_no_gradient() -> None:
    frozen = model().freeze("layers.0")
    found = grad(loss)(frozen)
    with pytest.raises(GradientError, match=r"(?s)not trained: got a frozen.*unfreeze"):
        _ = found.layers[0].weight.value
    assert pickle.loads(pickle.dumps(found)).scale.value.tolist() == found.scale.value.tolist()
    after = SgdConfig().init().step(0.1, frozen, found)
    assert after.layers[0].weight.value.tolist() == frozen.layers[0].weight.value.tolist()
    assert after.scale.value.tolist() != frozen.scale.value.tolist()
    _, product = jvp(grad(loss), (frozen,), (found,))
    assert product.scale.value.shape == ()
    whole = hessian(loss)(frozen)
    assert [leaf is None for leaf in tree.leaves(whole.scale.value)] == [True] * 2 + [False] * 3


def test_a_history_is_not_lost_in_a_parameter() -> None:
    def step_and_loss(m: Net) -> Tensor:
        inner = grad(loss)(m)
        return loss(tree.map(lambda w, g: w - 0.1 * g, m, inner))

    found = grad(step_and_loss)(model())
    expected = slopes(lambda row: float(step_and_loss(with_numbers(row))), numbers(model()))
    np.testing.assert_allclose(numbers(found), expected, rtol=1e-5, atol=1e-7)
    with pytest.raises(GradientError, match="not a leaf"):
        grad(lambda m: loss(m.map(lambda _, p: p.with_value(p.value * 2.0))))(model())


def test_a_model_with_its_own_constructor_trains_and_pickles() -> None:
    device = Autodiff(Numpy())
    pt.seed(4)
    trained = Net(device)
    optimizer = SgdConfig().init()
    x = X.astype("float32").to_device(Numpy())
    before = float(trained(x).square().sum())
    for _ in range(20):
        loss = trained(x.to_device(device)).square().sum()
        trained = optimizer.step(0.05, trained, loss.backward())
    assert float(trained(x).square().sum()) < 0.5 * before
    again = pickle.loads(pickle.dumps(trained))
    assert again.devices == [device]
    assert again(x).tolist() == trained(x).tolist()
    assert [p.id for p in again.param_list()] == [p.id for p in trained.param_list()]
    assert again.scale.value.requires_grad
