"""States that meet another rule, other settings or other paths than those they were made by."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import phlox_nn as nn
import phlox_optim as optim
import phlox_record as record
import phlox_tensor as pt
from phlox_tensor import GradientError, Tensor


def ones_of(module: nn.Module, value: float = 1.0) -> dict[str, Tensor]:
    return {p.id: pt.full(p.shape, value) for p in module.param_list()}


def matrix() -> nn.Linear:
    return nn.Linear(2, 2, bias=False)


@pytest.mark.parametrize("more", [{"momentum": 0.9}, {"centered": True}], ids=["momentum", "mean"])
def test_rms_prop_is_resumed_with_a_setting_switched_on(more: dict[str, Any]) -> None:
    model, optimizer = matrix(), optim.RmsPropConfig().init()
    model = optimizer.step(0.1, model, ones_of(model))
    resumed = optim.RmsPropConfig(**more).init().load_record(optimizer.into_record())
    plain, new = (each.step(0.1, model, ones_of(model)) for each in (optimizer, resumed))
    if "momentum" in more:  # the first step of it
        assert np.array_equal(plain.weight.value.numpy(), new.weight.value.numpy())
    plain, new = optimizer.step(0.1, plain, ones_of(plain)), resumed.step(0.1, new, ones_of(new))
    far = [model.weight.value.numpy() - each.weight.value.numpy() for each in (plain, new)]
    assert (far[1] > far[0]).all()


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_gradients_whose_squares_are_infinite_leave_centered_weights(momentum: float) -> None:
    model = matrix()
    optimizer = optim.RmsPropConfig(centered=True, momentum=momentum).init()
    after = optimizer.step(0.1, model, ones_of(model, 1e200))
    assert np.array_equal(after.weight.value.numpy(), model.weight.value.numpy())


def test_groups_go_by_the_path_that_a_parameter_has_now() -> None:
    groups: Any = {"head": {"lr_factor": 10.0}}
    inner, optimizer = matrix(), optim.SgdConfig(groups=groups).init()

    class Net(nn.Module):
        head: nn.Linear

    class Other(nn.Module):
        body: nn.Linear
        head: nn.Linear

    def far(before: nn.Linear, after: nn.Linear) -> float:
        return round(float((before.weight.value - after.weight.value).max()), 6)

    first = optimizer.step(0.1, Net(inner), ones_of(inner)).head
    model = Other(first, matrix())
    second = optimizer.step(0.1, model, ones_of(first)).body
    third = optimizer.step(0.1, Net(second), ones_of(second)).head
    assert [far(inner, first), far(first, second), far(second, third)] == [1.0, 0.1, 1.0]


BASE = optim.SgdConfig(momentum=0.9)


@pytest.mark.parametrize("other", [optim.MuonConfig(), optim.RmsPropConfig(momentum=0.9)])
def test_the_state_of_another_rule_is_refused(other: optim.OptimizerConfig, tmp_path: Path) -> None:
    model = nn.Sequential(matrix(), matrix())
    before = optim.GroupsConfig(BASE, {"layers.0": other}).init()
    model = before.step(0.1, model, ones_of(model))
    path = record.JsonRecorder().record(before.into_record(), tmp_path / "state")
    tree = record.JsonRecorder().load(path)
    model = before.step(0.1, model, ones_of(model))
    same = optim.GroupsConfig(BASE, {"layers.0": other}).init().load_record(tree)
    _ = same.step(0.1, model, ones_of(model))
    moved = optim.GroupsConfig(BASE, {"layers.1": other}).init().load_record(tree)
    with pytest.raises(GradientError, match=r"state of another rule(.|\n)*hint: groups as they"):
        moved.step(0.1, model, ones_of(model))
    moved.step(0.1, model, ones_of(model), strict=False)
    moved.step(0.1, model, ones_of(model), strict=False)
    owners: Any = moved.into_record()["owners"]
    name = type(other.rule()).__name__
    assert [owners[p.id] for p in model.param_list()] == ["Sgd", name]
