"""Decorators nest in any order, and what is recorded inside of them trains."""

from __future__ import annotations

from collections.abc import Callable
from typing import Never, final

import pytest

import phlox as px
from phlox import Autodiff, Checked, Cpu, Numpy, Profile, nn, optim
from phlox_tensor import Backend, Tensor

ORDERS: dict[str, Callable[[], Backend]] = {
    "autodiff of checked": lambda: Autodiff(Checked(Cpu(), Numpy())),
    "autodiff of checked of profile": lambda: Autodiff(Checked(Profile(Cpu()), Numpy())),
    "autodiff of profile": lambda: Autodiff(Profile(Cpu())),
    "checked of autodiff": lambda: Checked(Autodiff(Cpu()), Numpy()),
    "checked of two autodiffs": lambda: Checked(Autodiff(Cpu()), Autodiff(Numpy())),
    "profile of autodiff": lambda: Profile(Autodiff(Cpu())),
    "profile of checked of autodiff": lambda: Profile(Checked(Autodiff(Cpu()), Numpy())),
}


@pytest.mark.parametrize("order", sorted(ORDERS))
def test_gradients_come_out_the_same(order: str) -> None:
    device = ORDERS[order]()
    assert device.records
    got = []
    for on in (device, Autodiff(Cpu())):
        x = px.asarray([[0.5, -1.0], [2.0, 0.25]], device=on).require_grad()
        assert x.requires_grad
        grads = (x.tanh() @ x).exp().sum().backward()
        assert x in grads
        gradient = x.grad(grads)
        assert gradient is not None
        assert not x.detach().requires_grad
        got.append(gradient.tolist())
    assert got[0] == got[1]


@pytest.mark.parametrize("order", sorted(ORDERS))
def test_a_model_trains(order: str) -> None:
    device = ORDERS[order]()
    px.seed(0)
    model = nn.Linear(2, 1, device=device)
    rule = optim.SgdConfig().init()
    x = px.random.normal((16, 2), device=device)
    y = x.sum(axis=1, keepdims=True)
    losses = []
    for _ in range(20):
        loss = (model(x) - y).square().mean()
        losses.append(float(loss))
        model = rule.step(0.2, model, loss.backward())
    assert losses[-1] < 0.05 * losses[0]
    assert model.weight.value.device is device
    assert not device.without_recording().records


def test_transforms_run_over_and_under_decorators() -> None:
    with Profile(Cpu()) as device:
        x = px.asarray([0.5, 2.0], device=device)
        second = px.grad(lambda a: px.grad(lambda b: (b**3).sum())(a).sum())(x)
        _, tangent = px.jvp(lambda a: (a**3).sum(), (x,), (x.zeros() + 1,))
    assert second.tolist() == [3.0, 12.0]
    assert float(tangent) == pytest.approx(12.75)
    assert {"pow", "multiply"} <= {row.name for row in device.report().by_op}


def test_a_profile_inside_sees_the_backward_pass() -> None:
    inside = Profile(Cpu())
    around = Profile(Autodiff(Cpu()))
    for device in (Autodiff(inside), around):
        x = px.ones((3, 3), device=device).require_grad()
        with inside, around:
            (x @ x).sum().backward()
    assert not inside.calls
    assert {row.name: row.calls for row in around.report().by_op} == {"matmul": 1, "sum": 1}
    with inside:
        x = px.ones((3, 3), device=Autodiff(inside)).require_grad()
        (x @ x).sum().backward()
    counted = {row.name: row.calls for row in inside.report().by_op}
    assert counted["matmul"] == 3


def test_a_profile_tells_the_modules_apart() -> None:
    @final
    class Block(nn.Module):
        first: nn.Linear
        more: list[nn.Linear]

        def forward(self, x: Tensor) -> Tensor:
            x = nn.relu(self.first(x))
            for layer in self.more:
                x = layer(x)
            return x

    device = Profile(Cpu())
    layers = [nn.Linear(4, 4, device=device) for _ in range(3)]
    model = Block(first=layers[0], more=layers[1:])
    x = px.ones((2, 4), device=device)
    model(x)
    with device:
        model(x)
    rows = {row.name: row.calls for row in device.report().by_module}
    assert rows == {"Block": 1, "first": 1, "more.0": 1, "more.1": 1}


def test_inference_keeps_the_decorator() -> None:
    model = nn.Linear(2, 1, device=Profile(Autodiff(Cpu()))).valid()
    assert model.weight.device is Profile(Cpu())
    assert nn.Linear(2, 1, device=Autodiff(Cpu())).valid().weight.device is Cpu()


def test_a_device_that_compares_is_not_compiled_and_says_what_to_type() -> None:
    for device in (Checked("cpu", "numpy"), Autodiff(Checked("cpu", "numpy"))):
        compiled = px.compile(lambda x: (x * 2.0).sum())
        with pytest.raises(px.CompileError, match="compares nothing") as caught:
            compiled(px.ones(3, device=device))
        assert "px.compile(f, check=True)" in str(caught.value.hint)


@pytest.mark.parametrize("name", ["cpu", "numpy"])
def test_a_reshape_that_may_not_copy_asks_the_device_and_reads_nothing(name: str) -> None:
    @final
    class Unread(px.Decorator):
        name = "unread"

        def decorate(self, op: px.Op, inside: px.Entry) -> px.Entry:
            return inside

        def read(self, primitive: object, /) -> Never:
            raise AssertionError("nothing is read")

    for device in (Unread(name), Autodiff(Unread(name))):
        x = px.ones((4, 6), device=device)
        assert px.reshape(x[:2], (3, 4), copy=False).shape == (3, 4)
        assert px.reshape(x[:, :2], (2, 2, 2), copy=False).shape == (2, 2, 2)
        for moved in (x.mT, x[:, :2]):
            with pytest.raises(px.SharingError, match="in another order in memory"):
                px.reshape(moved, (moved.size,), copy=False)
        flat = px.vmap(lambda row: px.reshape(row, (3, 2), copy=False))
        assert flat(x).shape == (4, 3, 2)
