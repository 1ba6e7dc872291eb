"""What PyTorch's names and arguments are answered with."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

import pytest

import phlox_nn as nn
import phlox_tensor as pt
from phlox_nn import _elsewhere
from phlox_tensor import ArgumentError, Backend, DeviceError, UnknownNameError

LOOSE: Any = nn


@pytest.mark.parametrize("name", _elsewhere.NAMES)
def test_a_name_of_pytorch_says_what_to_type(name: str) -> None:
    assert not hasattr(nn, name)
    with pytest.raises(UnknownNameError, match="phlox writes this otherwise") as error:
        getattr(nn, name)
    assert error.value.hint == _elsewhere.NAMES[name]


def test_hints_name_what_there_is() -> None:
    names: dict[str, Any] = {"nn": nn, "px": pt, "channels": 2, "x": pt.ones((2, 3))}
    ran = 0
    for hint in _elsewhere.NAMES.values():
        code = hint.partition(" in ")[0]
        code = code.partition(": f")[0]
        if "self." in code or "optim." in code:
            ast.parse(code)
            continue
        eval(code, names)
        ran += 1
    assert ran > 20


@pytest.mark.parametrize(
    ("name", "near"),
    [("LSTM", "Lstm"), ("GRU", "Gru"), ("MSELoss", "MseLoss"), ("Liner", "Linear")],
)
def test_other_capitals_and_slips_are_understood(name: str, near: str) -> None:
    with pytest.raises(UnknownNameError) as error:
        getattr(nn, name)
    assert error.value.hint == f"nn.{near}"


def test_private_and_far_names_are_plain_errors() -> None:
    with pytest.raises(AttributeError, match="_nothing"):
        _ = LOOSE._nothing
    with pytest.raises(UnknownNameError, match=r"no such name in phlox_nn$"):
        _ = LOOSE.zzzzzz
    assert "Linear" in dir(nn)


@pytest.mark.parametrize("name", _elsewhere.METHODS)
def test_a_method_of_pytorch_says_what_to_type(name: str) -> None:
    model = nn.Linear(2, 2)
    assert not hasattr(model, name)
    assert name not in dir(model)
    with pytest.raises(UnknownNameError) as error:
        getattr(model, name)
    assert error.value.hint == _elsewhere.METHODS[name]


def test_a_module_may_use_such_a_name_itself() -> None:
    class Own(nn.Module):
        half: float
        modules: list[nn.Linear]

        def apply(self) -> int:
            return 3

    class Late(nn.Module):
        def __init__(self) -> None:
            self.children = nn.Linear(2, 2)

    made = Own(0.5, [nn.Linear(2, 2)])
    assert (made.apply(), len(made.modules)) == (3, 1)
    assert Late().children.num_params() == 6
    assert "children" in dir(Late())
    assert "apply" in dir(made)
    loose: Any = Own
    with pytest.raises(TypeError, match="modules"):
        loose(0.5)


def test_training_without_a_device_says_which() -> None:
    model: Any = nn.Linear(2, 2)
    for arguments in ((), (True,), (False,)):
        with pytest.raises(DeviceError, match=r"hint: model = model.train\(Autodiff\(Cpu\(\)\)\)"):
            model.train(*arguments)


@pytest.mark.parametrize(
    "where", [3, None, lambda path: True, lambda: True, [0]], ids=["3", "none", "one", "no", "list"]
)
def test_what_is_frozen_is_a_path_or_a_function_of_two(where: Any) -> None:
    model = nn.Linear(2, 2)
    for op in ("freeze", "unfreeze"):
        with pytest.raises(ArgumentError, match=rf"\[{op}\] not a path(.|\n)*lambda path, param"):
            getattr(model, op)(where)
    frozen = model.freeze(lambda path, param: path.endswith("bias"))
    assert list(frozen.params(trainable=True)) == ["weight"]


def test_training_is_true_or_false() -> None:
    word: Any = "no"
    with pytest.raises(ArgumentError, match="got 'no', expected True or False"):
        nn.Dropout(0.5).with_training(word)


def test_a_list_is_no_layer() -> None:
    layers: Any = [nn.Linear(2, 2), nn.Linear(2, 1)]
    with pytest.raises(ArgumentError, match=r"got a list(.|\n)*nn.Sequential\(\*layers\)"):
        nn.Sequential(layers)
    assert len(nn.Sequential(*layers)) == 2


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: nn.initializers.Normal(std=-1), "Normal.std makes no sense"),
        (lambda: nn.initializers.Uniform(1.0, 0.0), "Uniform.max makes no sense"),
        (lambda: nn.initializers.Normal(std=float("nan")), "Normal.std"),
    ],
)
def test_initializers_refuse_what_is_no_distribution(make: Callable[[], Any], match: str) -> None:
    with pytest.raises(nn.ConfigError, match=match):
        make()


def test_updates_of_another_module_are_an_error(recording: Backend) -> None:
    norm, other = nn.BatchNorm(1).with_training(True), nn.BatchNorm(1)
    with nn.collect() as updates:
        norm(pt.full((4, 1), 2.0))
    with pytest.raises(ArgumentError, match=r"state that the module lacks: got 2 of 2"):
        updates.apply(other)
    assert updates.apply(other, strict=False) is other
    assert updates.apply(nn.Sequential(norm, other)).num_params() == 4
