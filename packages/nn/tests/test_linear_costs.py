"""Walks over modules cost what there is to walk over, once: counted, not timed."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

import phlox_nn as nn
import phlox_tensor as pt
from phlox_nn import Module
from phlox_nn.parts.walk import place_of


def calls_of(program: Callable[[], Any]) -> int:
    """Functions entered while ``program`` runs, those of Python itself among them."""
    count = 0

    def seen(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        del frame, argument
        count += event in {"call", "c_call"}

    gc.disable()  # what listens to collections would be counted
    sys.setprofile(seen)
    try:
        program()
    finally:
        sys.setprofile(None)
        gc.enable()
    return count


def linear() -> nn.Linear:
    return nn.Linear(2, 2)


class Holder(Module):
    held: Any


class Pair(Module):
    left: Any
    right: Any


class Wide(Module):
    def __init__(self, count: int) -> None:
        for number in range(count):
            setattr(self, f"field{number}", [linear()])


def twins(levels: int) -> Any:
    made: Any = linear()
    for _ in range(levels):
        made = Pair(made, made)
    return made


WALKS: dict[str, Callable[[Any], Any]] = {
    "map": lambda model: model.map(lambda path, param: param),
    "to_device": lambda model: model.to_device(pt.Numpy(float="float64")),
    "valid": lambda model: model.valid(),
    "with_training": lambda model: model.with_training(False),
}


@pytest.mark.parametrize("walk", WALKS.values(), ids=WALKS)
def test_a_shared_module_stays_one_and_is_walked_once(walk: Callable[[Any], Any]) -> None:
    made = walk(twins(3))
    assert made.left is made.right
    assert made.left.left is made.left.right
    assert made.num_params() == linear().num_params()
    assert len(made.params()) == 16  # at each place
    few, many = (calls_of(partial(walk, twins(levels))) for levels in (6, 12))
    assert many < 2.5 * few


def test_shared_modules_are_found_by_who_profiles() -> None:
    def run(levels: int) -> None:
        model = twins(levels)
        assert place_of(model.left, [(model, "")]) == "left"

    few, many = (calls_of(partial(run, levels)) for levels in (6, 12))
    assert many < 2.5 * few


@pytest.mark.parametrize("walk", WALKS.values(), ids=WALKS)
def test_fields_that_are_containers_are_walked_once(walk: Callable[[Any], Any]) -> None:
    walk(Wide(3))
    small, large = Wide(50), Wide(200)
    few, many = (calls_of(partial(walk, model)) for model in (small, large))
    assert many < 4.5 * few


CONSTANTS: dict[str, Callable[[int], Any]] = {
    "dict": lambda n: dict.fromkeys(map(str, range(n)), 1.0),
    "list": lambda n: list(range(n)),
    "tuple": lambda n: tuple(map(str, range(n))),
}


@pytest.mark.parametrize("make", CONSTANTS.values(), ids=CONSTANTS)
def test_a_container_of_numbers_or_text_is_looked_at_as_one(make: Callable[[int], Any]) -> None:
    def use(held: Any) -> Any:
        return Pair(linear(), held).map(lambda path, param: param).valid().params()

    use(make(3))
    short, long = make(10), make(1000)
    few, many = (calls_of(partial(use, held)) for held in (short, long))
    assert many == few


def test_a_list_of_numbers_is_copied_for_each_module() -> None:
    model = Holder([1, 2, 3])
    made = model.map(lambda path, param: param)
    assert made.held == [1, 2, 3]
    assert made.held is not model.held
    assert model.valid().held is not model.held
