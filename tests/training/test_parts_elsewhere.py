"""Models whose parts lie on several devices, such as where ``device=`` was forgotten for one."""

from __future__ import annotations

import pytest

import phlox_nn as nn
import phlox_optim as optim
import phlox_tensor as pt
from phlox_autodiff import Autodiff
from phlox_tensor import GradientError, Numpy, Tensor

INNER = Numpy()
DEVICE = Autodiff(INNER)


class Scaled(nn.Module):
    body: nn.Linear
    scale: nn.Param

    def forward(self, x: Tensor) -> Tensor:
        return self.body(x) * self.scale.value


def scaled() -> Scaled:
    return Scaled(nn.Linear(3, 3, device=DEVICE), nn.Param(pt.ones(3, device=INNER)))


def loss_of(model: nn.Module) -> Tensor:
    found: Tensor = model(pt.ones((2, 3), device=model.devices[0])).square().mean()
    return found


def test_a_weight_that_never_gets_a_gradient_is_an_error_of_the_step() -> None:
    model, optimizer = scaled(), optim.SgdConfig().init()
    with pytest.raises(GradientError, match=r"got scale on Numpy"):
        optimizer.step(0.1, model, loss_of(model).backward())
    with pytest.raises(GradientError, match=r"hint: model = model.train\(Autodiff\(Numpy"):
        optimizer.step(0.1, model, loss_of(model).backward())
    assert optimizer.steps == 0
    trained = model.train(DEVICE)
    after = optimizer.step(0.1, trained, loss_of(trained).backward())
    assert (after.scale.value != 1.0).all()


def test_the_hint_freezes_all_that_lies_elsewhere() -> None:
    class Pair(nn.Module):
        student: nn.Linear
        teacher: nn.Linear

    plain, optimizer = nn.Linear(3, 3, device=DEVICE), optim.SgdConfig().init()
    model = Pair(plain, plain.fork(DEVICE).valid())
    with pytest.raises(GradientError, match=r"teacher.weight, teacher.bias on Numpy") as caught:
        optimizer.step(0.1, model, loss_of(model.student).backward())
    found = {"model": model}
    exec(str(caught.value.hint).partition("; ")[2].partition(" to keep")[0], found)
    model = found["model"]
    after = optimizer.step(0.1, model, loss_of(model.student).backward())
    assert list(model.params(trainable=True)) == ["student.weight", "student.bias"]
    assert after.teacher.weight is model.teacher.weight


def test_a_weight_elsewhere_is_left_where_somebody_says_so() -> None:
    model, optimizer = scaled(), optim.SgdConfig().init()
    frozen = model.freeze("scale")
    assert optimizer.step(0.1, frozen, loss_of(frozen).backward()).scale is frozen.scale
    after = optimizer.step(0.1, model, loss_of(model).backward(), strict=False)
    assert after.scale is model.scale


def test_gradients_by_a_transform_or_by_hand_reach_any_device() -> None:
    plain, optimizer = nn.Linear(3, 3, device=INNER), optim.SgdConfig().init()
    grads = {plain.weight.id: pt.ones((3, 3), device=INNER)}
    after = optimizer.step(0.1, plain, grads)
    assert after.bias is plain.bias


def test_layers_without_parameters_train_where_any_weight_does() -> None:
    for first, last in ((INNER, DEVICE), (DEVICE, INNER)):
        parts = nn.Linear(3, 3, device=first), nn.Dropout(), nn.Linear(3, 3, device=last)
        assert nn.Sequential(*parts).path("layers.1").training is True
    alone = nn.Sequential(nn.Linear(3, 3, device=INNER), nn.Dropout())
    assert alone.path("layers.1").training is False


def test_printing_shows_devices_where_they_differ() -> None:
    model = scaled()
    assert "scale: float32[3] on Numpy()" in repr(model)
    assert "bias: float32[3] on Autodiff(Numpy())" in repr(model)
    assert " on " not in repr(model.train(DEVICE))
