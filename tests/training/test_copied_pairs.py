"""Copies of optimizers: with their models and alone."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest

import phlox as px
from phlox import Autodiff, Backend, GradientError, nn, optim

CONFIGS: dict[str, Any] = {
    "adam": optim.AdamConfig(),
    "momentum": optim.SgdConfig(momentum=0.9),
    "groups": optim.AdamConfig(groups={"layers.1*": {"lr_factor": 0.5}}),
    "rules": optim.GroupsConfig(optim.AdamConfig(), {"*bias": optim.RmsPropConfig()}),
}


def device() -> Backend:
    return Autodiff("numpy")


def model_of() -> nn.Module:
    with px.use_device(device()):
        return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm(4), nn.Linear(4, 2))


def loss_of(model: Any) -> Any:
    return (
        (model(px.asarray([[1.0, 2.0, 3.0], [0.5, 0.0, 1.0]], device="numpy")) - 1).square().sum()
    )


def stepped(model: Any, optimizer: Any) -> Any:
    if isinstance(optimizer, optim.Lbfgs):
        return optimizer.step(1.0, model, loss_of)[0]
    return optimizer.step(0.1, model, loss_of(model).backward())


def numbers(model: nn.Module) -> list[Any]:
    return [p.value.tolist() for p in model.param_list()]


def both(copied: Any) -> tuple[Any, Any]:
    return copied[0], copied[1]


WAYS: dict[str, Callable[[Any, Any], tuple[Any, Any]]] = {
    "model first": lambda m, o: copy.deepcopy((m, o)),
    "optimizer first": lambda m, o: copy.deepcopy((o, m))[::-1],
    "dict": lambda m, o: both(list(copy.deepcopy({"model": m, "more": [o]}).values())),
    "pickle": lambda m, o: pickle.loads(pickle.dumps((m, o))),
    "optimizer alone": lambda m, o: (m, copy.deepcopy(o)),
}


def chosen(way: str, model: Any, optimizer: Any) -> tuple[Any, Any]:
    new, after = WAYS[way](model, optimizer)
    return new, after[0] if isinstance(after, list) else after


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("rule", [*CONFIGS, "lbfgs"])
def test_a_copied_pair_goes_on_as_the_first_does(rule: str, way: str) -> None:
    config = optim.LbfgsConfig(max_iterations=2) if rule == "lbfgs" else CONFIGS[rule]
    model, optimizer = model_of(), config.init()
    for _ in range(2):
        model = stepped(model, optimizer)
    again, other = chosen(way, model, optimizer)
    assert other is not optimizer
    for _ in range(2):
        again = stepped(again, other)
        model = stepped(model, optimizer)  # the first is not moved by its copy
        assert numbers(again) == numbers(model)
    if rule != "lbfgs":
        states: Any = other.into_record()["states"]
        assert set(states) <= {p.id for p in again.param_list()}


def test_a_copy_of_the_model_alone_is_another_model() -> None:
    model, optimizer = model_of(), optim.AdamConfig().init()
    model = stepped(model, optimizer)
    other = copy.deepcopy(model)
    assert {p.id for p in other.param_list()}.isdisjoint(p.id for p in model.param_list())
    with pytest.raises(GradientError, match=r"copy\.deepcopy\(\(model, optimizer\)\)"):
        stepped(other, optimizer)


def test_what_is_copied_together_keeps_its_ties() -> None:
    model = model_of()
    average = nn.moving_average(model.valid(), model, 0.5)
    copied, mean = copy.deepcopy((model, average))
    assert [p.id for p in copied.param_list()] == [p.id for p in mean.param_list()]
    assert nn.moving_average(mean, copied, 0.5) is not mean
