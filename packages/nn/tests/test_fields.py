"""Fields of modules: constructors of one's own, containers, freezing, and state that moves."""

from __future__ import annotations

import inspect
import sys
from abc import ABC, abstractmethod
from collections import defaultdict, deque
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest

import phlox_nn as nn
import phlox_tensor as pt
from phlox_nn import Module, Param
from phlox_tensor import ArgumentError, Backend, Numpy, Tensor, TreeError

WIDE = Numpy(float="float64")


def linear() -> nn.Linear:
    return nn.Linear(2, 3)


class Net(Module):
    body: nn.Linear
    norm: nn.BatchNorm


def net() -> Net:
    return Net(linear(), nn.BatchNorm(3))


class Own(Module):
    """In the manner of PyTorch: no annotations, a constructor."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first = nn.Linear(2, width)
        self.rest = [nn.Linear(width, width) for _ in range(2)]
        self.scale = Param(pt.ones(width))
        self.calls = 0

    def forward(self, x: Tensor) -> Tensor:
        return self.first(x) * self.scale.value


class Grown(Own, init=False):
    """Inherits the constructor."""


def test_attributes_of_a_constructor_of_ones_own_are_fields() -> None:

    class Bare(Own):
        """As one writes it."""

    bare: Any = Bare
    for made in (Own(3), Grown(3), bare(3)):
        assert made.field_names() == ["first", "rest", "scale", "calls"]
        assert list(made.params())[:3] == ["first.weight", "first.bias", "rest.0.weight"]
        assert made.num_params() == 9 + 2 * 12 + 3
        new = made.map(lambda _, p: p.with_value(p.value * 0))
        assert type(new) is type(made)
        assert new(pt.ones((1, 2))).tolist() == [[0, 0, 0]]
        assert list(made.into_record()) == ["first", "rest", "scale"]
        assert made.load_record(new.into_record()).scale.value.tolist() == [0, 0, 0]
        assert repr(made).startswith(
            f"{type(made).__name__} {{\n  first: Linear(d_input=2, d_output=3) {{"
        )
        with pytest.raises(AttributeError, match="does not change"):
            made.calls = 1
    assert list(inspect.signature(Own).parameters) == ["width"]
    with pytest.raises(TypeError, match="adds fields to a class with an __init__ of its own"):
        type("More", (Own,), {"__annotations__": {"extra": int}, "extra": 3})


def test_a_step_calls_no_constructor() -> None:
    calls = []

    class Counted(nn.Module):
        weight: nn.Param

        def __post_init__(self) -> None:
            calls.append(1)

    made = Counted(nn.Param(pt.ones(2)))
    new = {made.weight.id: made.weight.with_value(pt.zeros(2))}
    for out in (made.with_params(new), made.map(lambda _, p: p), made.to_device(WIDE)):
        assert type(out) is Counted
        with pytest.raises(AttributeError, match="does not change"):
            setattr(out, "weight", None)  # noqa: B010 - types forbid the statement
    assert calls == [1]


def test_the_ways_of_dataclasses_work() -> None:
    class Base(Module, ABC):
        weight: Param
        rate: float = 0.5

        @abstractmethod
        def forward(self, x: Tensor) -> Tensor: ...

    class Late(Base):
        width: int  # type: ignore[misc]  # checkers want kw_only=True, as below
        twice: int = field(init=False)

        def __post_init__(self) -> None:
            self.twice = 2 * self.width

        def forward(self, x: Tensor) -> Tensor:
            return x * self.weight.value

    class Named(Base, kw_only=True):
        width: int

        def forward(self, x: Tensor) -> Tensor:
            return x

    abstract: Any = Base
    with pytest.raises(TypeError, match="abstract"):
        abstract(Param(pt.ones(1)))
    made = Late(Param(pt.ones(1)), width=3)
    assert (made.rate, made.twice) == (0.5, 6)
    assert made.map(lambda _, p: p).field_names() == ["weight", "rate", "width", "twice"]
    assert made.replace(width=4).twice == 6
    assert Named(Param(pt.ones(1)), width=2).width == 2


class Odds(Module):
    """Holds anything."""

    thing: Any


class Box:
    """A container that nobody registered."""

    def __init__(self, part: Any) -> None:
        self.part = part


@dataclass
class Data:
    """A dataclass of a user."""

    layer: Any


def test_parameters_are_found_in_every_known_container() -> None:
    for thing in (
        deque([linear()]),
        Data(linear()),
        defaultdict(list, a=[linear()]),
        [{"x": (linear(),)}],
    ):
        made = Odds(thing)
        assert made.num_params() == 9
        zero = made.map(lambda _, p: p.with_value(p.value * 0))
        assert type(zero.thing) is type(thing)
        assert not any(p.value.numpy().any() for p in zero.param_list())
        assert zero.params().keys() == made.params().keys()


@pytest.mark.parametrize("held", [linear, lambda: Param(pt.ones(1)), lambda: pt.ones(1)])
def test_an_unknown_container_with_parameters_is_refused(held: Any) -> None:
    for thing in ({held()}, Box(held()), [Box([held()])], {"a": frozenset([held()])}):
        with pytest.raises(TreeError, match=r"(?s)unknown type holds.*hint: .*tree.register"):
            Odds(thing)


def test_a_tensor_that_wants_a_gradient_is_refused(recording: Backend) -> None:
    leaf = pt.ones(2, device=recording).require_grad()
    with pytest.raises(ArgumentError, match=r"(?s)thing.w of Odds is not seen.*nn.Param\(x\)"):
        Odds({"w": leaf})
    assert Odds(leaf.detach()).into_record().keys() == {"thing"}


def test_depth_costs_linear_time() -> None:
    class Chain(Module):
        inner: Any

    def calls(depth: int) -> int:
        count = 0

        def called(*_: object) -> None:
            nonlocal count
            count += 1

        sys.setprofile(called)
        made: Any = nn.Dropout()
        for _ in range(depth):
            made = Chain(made)
        made = Odds([made, linear()])
        assert len(made.param_list()) == 2
        sys.setprofile(None)
        return count

    calls(1)
    few, many = calls(50), calls(200)
    assert many < 4.5 * few


def test_freezing_by_path_pattern_and_function() -> None:
    made = Odds({"encoder": [net()], "head": linear()})
    frozen = made.freeze("thing.encoder.*.body")
    assert list(frozen.params(trainable=False, role="weight")) == [
        "thing.encoder.0.body.weight",
        "thing.encoder.0.body.bias",
    ]
    assert frozen.num_params() == made.num_params() == 9 + 6 + 9
    assert frozen.num_params(trainable=True) == 15
    assert frozen.unfreeze("thing.encoder").params(trainable=False, role="weight") == {}
    biases = made.freeze(lambda path, _: path.endswith("bias"))
    assert len(biases.params(trainable=False, role="weight")) == 3
    assert made.freeze().params(trainable=True) == {}
    with pytest.raises(ArgumentError, match=r"(?s)\[freeze\] no weight .* got 'encodr.*'.*print"):
        made.freeze("encodr.*")
    with pytest.raises(ArgumentError, match=r"\[unfreeze\] the function fits no weight"):
        made.unfreeze(lambda path, _: path.endswith("gamma"))
    states = made.freeze().params(role="state")
    assert {p.frozen for p in states.values()} == {False}
    assert len(states) == 2
    shared = linear()
    tied = Odds([shared, shared]).freeze("thing.0.weight")
    assert tied.thing[1].weight is tied.thing[0].weight


def test_state_changes_by_what_forwards_propose() -> None:
    norm = nn.BatchNorm(1, momentum=0.5).with_training(True)
    x = pt.full((4, 1), 2.0)
    with nn.collect() as updates:
        norm(x)
        norm(x * 3)
    assert norm.running_mean.value.tolist() == [0]
    assert len(updates) == 2
    moved = updates.apply(norm)
    assert moved.running_mean.value.tolist() == [2.0]  # the mean of 1 and 3
    assert moved.running_mean.id == norm.running_mean.id
    _, other = nn.with_updates(norm)(x * 5)
    assert (updates + other).apply(norm).running_mean.value.tolist() == [3.0]
    assert other.map(lambda t: t * 2).apply(norm).running_mean.value.tolist() == [10.0]
    assert updates.apply(nn.BatchNorm(1), strict=False).running_mean.value.tolist() == [0]


@pytest.mark.parametrize("value", [pt.ones(2), pt.ones(1, dtype=pt.float64)])
def test_a_proposal_must_fit_the_state(value: Tensor) -> None:
    x = pt.ones(1)
    with pytest.raises(ArgumentError, match=r"\[propose\] the parameter cannot take the value"):
        nn.propose(x, nn.State(pt.zeros(1)), value)
    with pytest.raises(ArgumentError, match=r"(?s)for Param.*hint: nn.State"):
        nn.propose(x, Param(pt.zeros(1)), x)


class Holder(Module):
    value: object


def test_functions_that_bring_a_part_along_are_refused() -> None:
    layer = nn.Linear(2, 2)
    param = nn.Param(pt.ones(2))

    def closing(part: Any) -> Any:
        return lambda x: part(x * 2.0)

    def keeping(part: Any) -> Any:
        def call(x: Any) -> Any:
            return x

        vars(call)["part"] = part
        return call

    hidden: list[Any] = [
        closing(layer),
        closing([layer]),
        closing({"weight": param}),
        closing(closing(layer)),
        closing(pt.ones(2)),
        [partial(closing(layer))],
        lambda x, layer=layer: layer(x),
        keeping(layer),
    ]
    for value in hidden:
        with pytest.raises(TreeError, match=r"of Holder hides a (Linear|Param|Tensor)") as caught:
            Holder(value)
        assert "the call written in forward" in str(caught.value.hint)

    class Closed(Module):
        def __init__(self) -> None:
            self.inner = nn.Linear(2, 2)
            self.call = lambda x: self.inner(x * 2.0)

    with pytest.raises(TreeError, match="call of Closed hides a Closed"):
        Closed()
    assert Holder(closing(abs)).num_params() == 0


def test_a_function_with_updates_keeps_its_name_and_text() -> None:
    def loss_of(x: pt.Tensor) -> pt.Tensor:
        """What is to fall."""
        return x.sum()

    found: Any = nn.with_updates(loss_of)
    assert (found.__name__, found.__doc__) == ("loss_of", "What is to fall.")


OWN = [
    "map",
    "params",
    "devices",
    "path",
    "train",
    "load_file",
    "record_version",
    "_known",
    "_flat",
]


@pytest.mark.parametrize("name", OWN)
def test_a_field_may_not_hide_what_every_module_has(name: str) -> None:
    class Written(nn.Module):
        def __init__(self) -> None:
            setattr(self, name, nn.Linear(2, 2))

    annotated: Any = type("Annotated", (nn.Module,), {"__annotations__": {name: nn.Linear}})
    wrong = rf"a field of \w+ would hide.*got '{name}'(.|\n)*hint: self.own_{name.strip('_')} ="
    with pytest.raises(TreeError, match=wrong):
        Written()
    with pytest.raises(TreeError, match=wrong):
        annotated(nn.Linear(2, 2))


@pytest.mark.parametrize("name", ["parameters", "shape", "mean", "config", "training", "children"])
def test_a_field_may_hide_a_hint(name: str) -> None:
    class Written(nn.Module):
        def __init__(self) -> None:
            setattr(self, name, nn.Linear(2, 2))

    assert list(Written().params()) == [f"{name}.weight", f"{name}.bias"]
