"""What no walk over modules would see: used up by going over it, come too late, without a path."""

from __future__ import annotations

import gc
import itertools
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar
from weakref import ReferenceType, ref

import pytest

import phlox_nn as nn
import phlox_tensor as pt
from phlox_nn import Module
from phlox_tensor import TreeError


def linear() -> nn.Linear:
    return nn.Linear(2, 2)


class Holder(Module):
    held: Any


ONCE: dict[str, Callable[[Any], Any]] = {
    "accumulate": lambda part: itertools.accumulate([part]),
    "chain": lambda part: itertools.chain([part]),
    "chain.from_iterable": lambda part: itertools.chain.from_iterable([[part]]),
    "combinations": lambda part: itertools.combinations([part], 1),
    "compress": lambda part: itertools.compress([part], [1]),
    "count": lambda part: itertools.count(),
    "cycle": lambda part: itertools.cycle([part]),
    "dict iterator": lambda part: iter({"a": part}.values()),
    "enumerate": lambda part: enumerate([part]),
    "filter": lambda part: filter(None, [1]),
    "generator": lambda part: (each for each in [part]),
    "groupby": lambda part: itertools.groupby([part]),
    "islice": lambda part: itertools.islice([part], 1),
    "iterator in a dict": lambda part: {"a": [iter([part])]},
    "iterator with an end": lambda part: iter(lambda: part, None),
    "list iterator": lambda part: iter([part]),
    "map": lambda part: map(id, [part]),
    "of a class of one's own": lambda part: type("Own", (itertools.chain,), {})([part]),
    "pairwise": lambda part: itertools.pairwise([part]),
    "permutations": lambda part: itertools.permutations([part]),
    "product": lambda part: itertools.product([part]),
    "repeat": itertools.repeat,
    "reversed": lambda part: reversed([part]),
    "starmap": lambda part: itertools.starmap(id, [(part,)]),
    "takewhile": lambda part: itertools.takewhile(id, [part]),
    "tee": lambda part: itertools.tee([part])[0],
    "zip": lambda part: zip([part], strict=True),
}


@pytest.mark.parametrize("make", ONCE.values(), ids=ONCE)
def test_what_is_gone_over_once_is_no_field(make: Callable[[Any], Any]) -> None:
    what = r"held[.\w]* of Holder changes when it is used(.|\n)*hint: held = list"
    with pytest.raises(TreeError, match=what):
        Holder(make(linear()))


class Counting(Iterator[int]):
    def __init__(self, inside: object) -> None:
        self.inside = inside

    def __next__(self) -> int:
        return 1


def test_an_iterator_of_ones_own_is_looked_into_and_an_open_file_holds_nothing() -> None:
    assert Holder(Counting(1)).num_params() == 0
    with pytest.raises(TreeError, match="held of Holder: a container of an unknown type holds"):
        Holder(Counting(linear()))
    with Path(__file__).open(encoding="utf-8") as file:
        assert Holder(file).held is file


# What comes later


class Late(Module):
    first: nn.Linear

    @cached_property
    def second(self) -> nn.Linear:
        return linear()

    @cached_property
    def table(self) -> pt.Tensor[Any]:
        return pt.ones(3)


def test_a_layer_from_a_cached_property_is_refused_at_its_first_use() -> None:
    model = Late(linear())
    for _ in range(2):
        with pytest.raises(TreeError, match=r"second of Late came after its fields(.|\n)*__init__"):
            model.second  # noqa: B018 - reading is what makes the layer
    assert model.num_params() == 6
    assert model.table is model.table
    assert model.valid().num_params() == model.num_params() == 6


@pytest.mark.parametrize("known", [False, True])
def test_a_layer_put_past_the_fields_is_refused(known: bool) -> None:
    model = Holder(linear())
    if known:
        model.params()
    vars(model)["extra"] = [linear()]
    for use in (model.params, model.into_record, model.valid, lambda: model.map(lambda _, p: p)):
        with pytest.raises(TreeError, match="extra of Holder came after its fields"):
            use()


def test_a_layer_set_on_a_class_is_refused() -> None:
    class Own(Module):
        held: Any
        shared: ClassVar[Any] = None

    for name in ("held", "other"):
        with pytest.raises(TypeError, match=rf"Own.{name} is set on the class(.|\n)*self.{name} ="):
            setattr(Own, name, [linear()])
    Own.shared = linear()
    Own.count = 3  # type: ignore[attr-defined]
    assert Own(1).num_params() == 0


def test_a_layer_set_on_the_class_of_a_field_is_refused_from_then_on() -> None:
    class Helper:
        pass

    assert Holder(Helper()).num_params() == 0
    Helper.shared = linear()  # type: ignore[attr-defined]
    with pytest.raises(TreeError, match="held of Holder hides a Linear"):
        Holder(Helper())


def test_classes_go_once_nobody_needs_them() -> None:
    def used() -> list[ReferenceType[type]]:
        class Helper:
            pass

        class Row(list[Any]):
            __slots__ = ("label",)

        class Inner(Module):
            held: Any

        made = Inner([Helper(), Row([1]), linear()])
        made.valid().params()
        return [ref(Helper), ref(Row), ref(Inner)]

    kept = used()
    gc.collect()
    assert [each() for each in kept] == [None, None, None]


# Names


@pytest.mark.parametrize("held", [{"": linear()}, {"a": {"": linear()}}, {"": [linear()]}])
def test_an_empty_key_makes_no_path(held: Any) -> None:
    with pytest.raises(TreeError, match="a key of a dict makes no path"):
        Holder(held)


@pytest.mark.parametrize("names", [("a", "a.0"), ("a.0", "a"), ("a.z", "a")])
def test_a_field_is_named_as_python_names(names: tuple[str, str]) -> None:
    class Own(Module):
        def __init__(self) -> None:
            for name in names:
                setattr(self, name, [linear()])

    with pytest.raises(TreeError, match=r"name of a field of Own makes no path: got 'a\.\w'"):
        Own()


# Calls without effect


class Generating(Module):
    inner: nn.Linear

    def forward(self, x: pt.Tensor[Any]) -> Any:
        yield self.inner(x)


def test_a_summary_of_a_model_without_results_is_refused() -> None:
    with pytest.raises(pt.ArgumentError, match=r"Generating gives no tensor.*: got generator"):
        nn.summary(Generating(linear()), pt.ones((1, 2)))


def test_a_module_without_forward_says_what_to_write() -> None:
    with pytest.raises(pt.WrongTypeError, match=r"^\[module\] Holder has(.|\n)*hint: def"):
        Holder(1)(pt.ones(2))


@pytest.mark.parametrize("shape", [(), (3,)])
def test_local_response_norm_wants_channels(shape: tuple[int, ...]) -> None:
    with pytest.raises(pt.ShapeError, match=r"no channels: got \(.*expected \(N, C"):
        nn.LocalResponseNorm(2)(pt.ones(shape))
