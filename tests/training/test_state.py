"""Running statistics: what a forward proposes travels with the graph and changes no module."""

from __future__ import annotations

import copy
import threading
from typing import Any

import numpy as np
import pytest

import phlox_tensor as pt
from phlox_autodiff import Autodiff, grad, jvp, no_grad, value_and_grad
from phlox_kernels import Cpu
from phlox_nn import BatchNorm, Linear, Module, MseLossConfig, updates_of, with_updates
from phlox_optim import SgdConfig
from phlox_tensor import Numpy, Tensor

BASES = [Cpu(), Numpy()]
LOSS = MseLossConfig().init()


class Net(Module):
    """A batch norm between two linear layers."""

    body: Linear
    norm: BatchNorm
    head: Linear

    def forward(self, x: Tensor) -> Tensor:
        """Map (n, 3) to (n, 1)."""
        return self.head(self.norm(self.body(x)).relu())


def net(device: Any) -> Net:
    """The same numbers on any device."""
    pt.seed(1)
    return Net(
        Linear(3, 4, device=device), BatchNorm(4, device=device), Linear(4, 1, device=device)
    )


def batch(device: Any, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Inputs and targets."""
    random = np.random.default_rng(seed)
    x, y = random.normal(size=(8, 3)), random.normal(size=(8, 1))
    return (
        pt.asarray(x, dtype="float32", device=device),
        pt.asarray(y, dtype="float32", device=device),
    )


def loss_of(model: Net, device: Any, seed: int = 0) -> Tensor:
    """The loss of a batch."""
    x, y = batch(device, seed)
    return LOSS(model(x), y)


def wanted(model: Net, device: Any, seed: int = 0) -> Any:
    """The running mean after one batch, by the formula."""
    hidden = model.body(batch(device, seed)[0]).numpy()
    return 0.9 * model.norm.running_mean.value.numpy() + 0.1 * hidden.mean(axis=0)


@pytest.mark.parametrize("base", BASES, ids=repr)
def test_a_step_takes_over_what_the_forward_proposed(base: Any) -> None:
    device = Autodiff(base)
    model = net(device)
    best, expected = model, wanted(model, device)
    optimizer = SgdConfig().init()
    for number in range(3):
        model = optimizer.step(0.1, model, loss_of(model, device).backward())
        if number == 0:
            np.testing.assert_allclose(model.norm.running_mean.value.numpy(), expected, rtol=1e-5)
        assert model.norm.running_mean.device is device
        assert not model.norm.running_mean.value.requires_grad
    assert best.norm.running_mean.value.tolist() == [0, 0, 0, 0]
    assert best.norm.running_var.value.tolist() == [1, 1, 1, 1]


def test_only_the_loss_that_is_stepped_counts() -> None:
    device = Autodiff(Cpu())
    model = net(device)
    grads = loss_of(model, device).backward()
    loss_of(model, device, seed=1)
    with no_grad():
        loss_of(model, device, seed=2)
    after = SgdConfig().init().step(0.1, model, grads)
    expected = wanted(model, device)
    np.testing.assert_allclose(after.norm.running_mean.value.numpy(), expected, rtol=1e-5)


def test_accumulated_gradients_move_by_the_mean() -> None:
    device = Autodiff(Cpu())
    model = net(device)
    grads = loss_of(model, device).backward() + loss_of(model, device, seed=1).backward()
    after = SgdConfig().init().step(0.1, model, grads * 0.5)
    expected = (wanted(model, device) + wanted(model, device, seed=1)) / 2
    np.testing.assert_allclose(after.norm.running_mean.value.numpy(), expected, rtol=1e-5)
    updates = updates_of(model, grads)
    assert updates.apply(model).norm.running_mean.value.tolist() == (
        after.norm.running_mean.value.tolist()
    )


@pytest.mark.parametrize("path", ["*", "norm", "body"])
def test_frozen_weights_leave_batch_norm_whole(path: str) -> None:
    device = Autodiff(Cpu())
    model = net(device).freeze(path)
    grads = loss_of(model, device).backward()
    after = SgdConfig().init().step(0.1, model, grads, strict=False)
    expected = wanted(model, device)
    np.testing.assert_allclose(after.norm.running_mean.value.numpy(), expected, rtol=1e-5)
    for name, param in model.params(trainable=False, role="weight").items():
        assert after.params()[name].value.tolist() == param.value.tolist()


def test_a_gradient_of_the_input_leaves_the_module_alone() -> None:
    device = Autodiff(Cpu())
    model = net(device)
    x, _ = batch(device)
    slope = grad(lambda x: model(x).square().sum())(x)
    assert model.norm.running_mean.device is device
    assert model.valid()(x.inner()).device is Cpu()
    # In a loss the graph of the gradient carries the proposals.
    after = SgdConfig().init().step(0.1, model, (slope * slope).sum().backward())
    expected = wanted(model, device)
    np.testing.assert_allclose(after.norm.running_mean.value.numpy(), expected, rtol=1e-5)


def test_an_optimizer_takes_the_gradient_of_a_module() -> None:
    model = net(Cpu()).with_training(True)
    grads: Net = grad(lambda m: loss_of(m, Cpu()))(model)
    assert type(grads) is Net
    assert grads.body.weight.value.shape == (3, 4)
    assert grads.norm.running_mean.proposed is not None
    with pytest.raises(pt.GradientError, match="not trained: got state"):
        _ = grads.norm.running_mean.value
    after = SgdConfig().init().step(0.1, model, grads)
    twin = net(Autodiff(Cpu()))
    other = SgdConfig().init().step(0.1, twin, loss_of(twin, Autodiff(Cpu())).backward())
    for path, param in after.params().items():
        assert param.value.tolist() == other.params()[path].value.tolist(), path


def test_without_a_graph_updates_are_a_value() -> None:
    model = net(Cpu()).with_training(True)
    x, _ = batch(Cpu())
    _, updates = with_updates(model)(x)
    moved = updates.apply(model).norm.running_mean.value.numpy()
    np.testing.assert_allclose(moved, wanted(model, Cpu()), rtol=1e-5)
    # In training the running mean is not read: its tangent moves nothing.
    out, tangent = jvp(lambda m: m(x), (model,), (grad(lambda m: m(x).sum())(model),))
    assert out.shape == tangent.shape == (8, 1)


def test_threads_do_not_meet() -> None:
    device = Autodiff(Cpu())
    model = net(device)
    found: dict[int, Any] = {}

    def run(seed: int) -> None:
        grads = loss_of(model, device, seed).backward()
        after = SgdConfig().init().step(0.0, model, grads)
        found[seed] = after.norm.running_mean.value.numpy()

    threads = [threading.Thread(target=run, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for seed in range(4):
        np.testing.assert_allclose(found[seed], wanted(model, device, seed), rtol=1e-5)


def test_a_deep_copy_trains_by_itself() -> None:
    device = Autodiff(Cpu())

    class Pair(Module):
        online: Net
        target: Net

    model = net(device)
    for other in (copy.deepcopy(model), model.fork(device)):
        pair = Pair(model, other)
        after = SgdConfig().init().step(0.1, pair, loss_of(pair.online, device).backward())
        assert after.target.body.weight.value.tolist() == other.body.weight.value.tolist()
        assert after.online.body.weight.value.tolist() != model.body.weight.value.tolist()


def test_value_and_grad_gives_the_loss_too() -> None:
    model = net(Cpu()).with_training(True)
    value, grads = value_and_grad(lambda m: loss_of(m, Cpu()))(model)
    assert value.tolist() == loss_of(model, Cpu()).tolist()
    assert pt.tree.leaves(grads)[4] is None
