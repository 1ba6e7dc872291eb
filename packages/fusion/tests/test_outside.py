"""What a function reads besides its arguments is followed from call to call."""

from __future__ import annotations

import enum
import functools
import os
import types
import warnings
from collections import deque
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import phlox_tensor as pt
from phlox_fusion import compile, kernel
from phlox_fusion.record.outside import outside_of
from phlox_fusion.record.watch import data_of
from phlox_fusion.trees.plain import is_users
from phlox_tensor import CompileError, Tensor
from phlox_tensor.capture import is_ours

ONE = pt.ones(1)
M = 1.0


def by_global(x: Tensor) -> Tensor:
    return x * M


class Settings:
    share = 1.0

    def __init__(self, rate: float = 1.0) -> None:
        self.rate = rate

    def scaled(self, x: Tensor) -> Tensor:
        return self._twice(x) * self.rate

    def _twice(self, x: Tensor) -> Tensor:
        return x * self.share * M

    @property
    def whole(self) -> float:
        return self.rate * self.share

    def __call__(self, x: Tensor) -> Tensor:
        return x * self.rate


class Slotted:
    __slots__ = ("rate",)

    def __init__(self) -> None:
        self.rate = 1.0


def followed(fast: Any, args: tuple[Any, ...], change: Callable[[float], Any]) -> None:
    """A change is another version, and a change back comes back to the first one."""
    for value in (1.0, 3.0, 1.0, 3.0):
        change(value)
        for _ in range(3):
            assert fast(ONE, *args).item() == value
    assert fast.versions == 2


def set_global(value: float) -> None:
    global M  # noqa: PLW0603 - what the test is about
    M = value


def test_globals_of_helpers_are_followed() -> None:
    def nested(x: Tensor) -> Tensor:
        def inner(x: Tensor) -> Tensor:
            return by_global(x)

        return inner(x)

    settings = Settings()
    functions: list[Any] = [
        nested,
        lambda x: by_global(x) * 1.0,
        functools.wraps(by_global)(lambda x: by_global(x) * 1.0),
        functools.partial(by_global),
        settings.scaled,
        lambda x: settings.scaled(x) * 1.0,
        lambda x: Settings().scaled(x),
    ]
    for function in functions:
        followed(compile(function), (), set_global)
    followed(compile(lambda x, f: f(x)), (by_global,), set_global)
    set_global(1.0)


def test_what_texts_in_code_name_is_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    def set_variable(value: float) -> None:
        monkeypatch.setenv("FUSION_RATE", str(value))

    def set_pace(value: float) -> None:
        settings.pace = value

    settings = types.SimpleNamespace()
    followed(compile(lambda x: x * float(os.environ["FUSION_RATE"])), (), set_variable)
    followed(compile(lambda x: x * float("{.pace}".format(settings))), (), set_pace)  # noqa: UP032 - the case
    followed(compile(lambda x: x * getattr(settings, "pace", 1.0)), (), set_pace)


def test_a_global_that_comes_later_is_followed() -> None:
    space: dict[str, Any] = {"__name__": "somewhere"}
    exec("def f(x):\n    return x * LATE\n", space)
    fast = compile(space["f"])
    followed(fast, (), lambda value: space.update(LATE=value))


def test_what_callable_objects_read_is_followed() -> None:
    settings = Settings()
    change = functools.partial(setattr, settings, "rate")
    bound = functools.partial(lambda x, rate: x * rate, rate=1.0)
    functions = (
        settings,
        settings.__call__,
        lambda x: settings(x) * 1.0,
        lambda x: x * settings.whole,
    )
    for function in functions:
        followed(compile(function), (), change)
    followed(compile(bound), (), lambda value: bound.keywords.update(rate=value))

    def defaulted(x: Tensor, rate: float = 1.0) -> Tensor:
        return x * rate

    outer = compile(lambda x: defaulted(x) * 1.0)
    followed(outer, (), lambda value: setattr(defaulted, "__defaults__", (value,)))


def test_containers_and_objects_from_outside_are_followed() -> None:
    numbers, table, queue = [1.0], {"c": {"rate": 1.0}}, deque([1.0])
    members, tree, slotted = {1.0}, (types.SimpleNamespace(rate=1.0),), Slotted()
    array = np.ones(1, np.float32)

    def in_set(value: float) -> None:
        members.clear()
        members.add(value)

    cases: list[tuple[Any, Callable[[float], Any]]] = [
        (lambda x: x * sum(numbers), lambda v: numbers.__setitem__(0, v)),
        (lambda x: x * sum(numbers), lambda v: numbers.__setitem__(slice(None), [1.0] * int(v))),
        (lambda x: x * table["c"]["rate"], lambda v: table["c"].update(rate=v)),
        (lambda x: x * queue[0], lambda v: queue.__setitem__(0, v)),
        (lambda x: x * sum(members), in_set),
        (lambda x: x * tree[0].rate, lambda v: setattr(tree[0], "rate", v)),
        (lambda x: x * slotted.rate, lambda v: setattr(slotted, "rate", v)),
        (lambda x: x * getattr(tree[0], "other", 1.0), lambda v: setattr(tree[0], "other", v)),
        (lambda x: x * vars(tree[0])["rate"], lambda v: setattr(tree[0], "rate", v)),
        (lambda x: x * float(array[0]), lambda v: array.__setitem__(0, v)),
        (lambda x: x * Settings.share, lambda v: setattr(Settings, "share", v)),
    ]
    for at, (function, change) in enumerate(cases):
        if at == 7:  # the attribute is not there at first
            fast = compile(function)
            assert [fast(ONE).item() for _ in range(3)] == [1.0] * 3
            change(2.0)
            assert [fast(ONE).item() for _ in range(3)] == [2.0] * 3
            continue
        followed(compile(function), (), change)
    Settings.share = 1.0


def test_objects_and_sets_among_the_arguments_are_followed() -> None:
    config, plain = types.SimpleNamespace(rate=1.0), Settings()
    followed(compile(lambda x, c: x * c.rate), (config,), lambda v: setattr(config, "rate", v))
    followed(compile(lambda x, c: x * c.whole), (plain,), lambda v: setattr(plain, "rate", v))
    followed(compile(lambda x, c: c[0].scaled(x)), ([plain],), lambda v: setattr(plain, "rate", v))
    fast = compile(lambda x, s: x * sum(s))
    members = {1.0}
    for _ in range(3):
        assert fast(ONE, members).item() == 1.0
    members.add(2.0)
    for _ in range(3):
        assert fast(ONE, members).item() == 3.0
    assert fast(ONE, {1.0, 2.0}).item() == 3.0  # by value
    assert fast.versions == 2


def test_a_method_that_is_compiled_in_its_class_follows_the_object() -> None:
    class Held:
        def __init__(self) -> None:
            self.rate = 1.0
            self.losses: list[float] = []

        @compile
        def step(self, x: Tensor) -> Tensor:
            return x * self.rate

    held = Held()
    for value in (1.0, 2.0, 1.0):
        held.rate = value
        for _ in range(3):
            held.losses.append(held.step(ONE).item())  # code of the step names no losses
            assert held.losses[-1] == value
    assert Held.step.versions == 2


def test_what_calls_find_out_for_themselves_is_no_change() -> None:
    class Sizes:
        known: dict[str, float]

        def __init__(self) -> None:
            self.known = {}
            self.factor = 2.0

        @cached_property
        def most(self) -> int:
            return 3

        def own(self, x: Tensor) -> Tensor:
            return x * self.most * self.factor

    sizes = Sizes()
    fast = compile(sizes.own)
    assert [fast(ONE).item() for _ in range(4)] == [6.0] * 4
    assert fast.versions == 1
    sizes.factor = 4.0
    assert [fast(ONE).item() for _ in range(4)] == [12.0] * 4

    seen: dict[str, float] = {}

    def remembered(name: str) -> float:
        return seen.setdefault(name, 5.0)

    memo = compile(lambda x: x * remembered("a"))
    assert [memo(ONE).item() for _ in range(4)] == [5.0] * 4
    assert memo.versions == 1
    seen["a"] = 7.0
    assert memo(ONE).item() == 7.0


def test_arrays_of_numpy_are_no_arguments() -> None:
    fast: Any = compile(lambda x, given: x * pt.asarray(given["batch"]))
    with pytest.raises(CompileError, match=r"array of NumPy(.|\n)*px\.asarray\(batch\) outside"):
        fast(ONE, {"batch": np.ones(1, np.float32)})


def test_large_arrays_from_outside_are_refused_unless_they_never_change() -> None:
    data = np.ones(5_000, np.float32)
    fast = compile(lambda x: x * pt.asarray(data).sum())
    with pytest.raises(
        CompileError, match=r"data of shape \(5000,\)(.|\n)*setflags\(write=False\)"
    ):
        fast(pt.ones(1))
    data.setflags(write=False)
    assert [fast(pt.ones(1)).item() for _ in range(4)] == [5_000.0] * 4


def test_a_kernel_follows_what_a_function_does() -> None:
    settings, rate = Settings(), 1.0
    table = {"rate": 1.0}
    closed, kept = kernel(lambda a: a * rate), kernel(lambda a: a * table["rate"])
    helped, outer = kernel(lambda a: by_global(a) + 0.0), compile(lambda a: closed(a) * 1.0)
    called = kernel(lambda a: a * settings.rate)
    for value in (1.0, 2.0, 1.0, 3.0):
        rate = table["rate"] = settings.rate = value
        set_global(value)
        for x in (pt.ones(1, device=device) for device in (pt.Numpy(), ONE.device)):
            for _ in range(3):
                for fast in (closed, kept, helped, called, outer):
                    assert fast(x).item() == value
    set_global(1.0)


def test_a_kernel_keeps_few_versions_of_what_is_outside() -> None:
    rate = 1.0
    fast = kernel(lambda a: a * rate)
    for step in range(40):
        rate = float(step)
        assert fast(ONE).item() == rate
    assert len(fast._kept) <= 8


@pytest.mark.filterwarnings("ignore:.*changes runs at each call")
def test_the_version_in_constant_use_stays() -> None:
    runs: list[int] = []

    def note(size: int) -> None:
        runs.append(size)

    def counted(x: Tensor) -> Tensor:
        note(x.shape[0])
        return x + 1

    fast = compile(counted, versions=2)
    for size in (1, 1, 1, 1, 2, 2, 1, 1, 1, 3, 1, 1, 4, 1, 1, 5, 1, 1):
        fast(pt.ones(size))
    assert runs == [1, 1, 1, 2, 2, 3, 4, 5]  # 1 was recorded twice, and compared at its fourth call
    assert fast.versions == 2
    runs.clear()
    fast = compile(counted, versions=2)
    for size in (1, 1, 2, 2, 1, 3, 1, 2):
        fast(pt.ones(size))
    assert runs == [1, 1, 2, 2, 3, 1, 2]  # the 2 was not used for longest when the 3 came


def test_the_warning_points_at_the_call() -> None:
    fast = compile(lambda x: x + 1)
    for size in range(1, 10):
        fast(pt.ones(size))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        here = pt.ones(10)
        fast(here)  # this line
    (warning,) = told
    with open(__file__) as file:
        lines = file.read().splitlines()
    assert warning.filename == __file__
    assert lines[warning.lineno - 1].strip() == "fast(here)  # this line"


def test_ours_is_told_from_the_users() -> None:
    packages = Path(__file__).parents[2]
    for package in (p.name for p in packages.glob("*/src/phlox_*")):
        assert is_ours(f"{package}._inside"), package
    assert is_ours("phlox")
    assert not is_ours("phlox_experiments.train")
    assert not is_ours("phloxtools")
    assert is_users(__name__)
    assert is_users("phlox_experiments")
    for module in ("phlox_nn", "collections", "numpy", "builtins", "sys"):
        assert not is_users(module)


def test_a_container_that_was_empty_is_followed() -> None:
    containers: tuple[Any, ...] = ([], {})
    for held in containers:
        fast = compile(lambda x, held=held: x * (1.0 + len(held)))
        assert [fast(pt.ones(1)).item() for _ in range(4)] == [1.0] * 4
        held.append(2.0) if isinstance(held, list) else held.update(a=2.0)
        assert fast(pt.ones(1)).item() == 2.0


def test_attributes_that_functions_get_later_are_followed() -> None:
    def bare(x: Tensor) -> Tensor:
        return x

    fast = compile(lambda x: bare(x) * getattr(bare, "rate", 1.0))
    looking = compile(lambda x: bare(x) * sum(vars(bare).values(), 1.0))
    for value in (1.0, 3.0, 1.0):
        vars(bare).update(rate=value)
        if value == 1.0:
            vars(bare).clear()
        for _ in range(3):
            assert fast(ONE).item() == value
            assert looking(ONE).item() == (value + 1.0 if value != 1.0 else 1.0)
    assert fast.versions == looking.versions == 2


def test_attributes_that_functions_miss_are_followed() -> None:
    def bare(x: Tensor) -> Tensor:
        return x

    def missing(x: Tensor) -> Tensor:
        try:
            return bare(x) * open_one.rate
        except AttributeError:
            return bare(x)

    open_one: Any = bare
    fast = compile(missing)
    for value in (1.0, 3.0, 1.0):
        open_one.rate = value
        if value == 1.0:
            del open_one.rate
        for _ in range(3):
            assert fast(ONE).item() == value


def test_attributes_whose_names_are_made_are_followed() -> None:
    settings: Any = types.SimpleNamespace(rate=1.0, a_rate=1.0)

    def by_names(x: Tensor) -> Tensor:
        """Scale."""
        for name in ("rate", "a_rate"):
            x = x * getattr(settings, name)
        return x

    functions: list[Any] = [
        by_names,
        lambda x: x * getattr(settings, f"{'a'}_rate") if settings is not None else "text",
        lambda x: x * getattr(settings, {"key": "a_rate"}["key"]),
        lambda x: x * eval("settings.a_rate", {"settings": settings}),
    ]
    for function in functions:
        followed(compile(function), (), functools.partial(setattr, settings, "a_rate"))
    followed(
        compile(lambda x, name: x * getattr(settings, name) * len("text") * 0.25),
        ("rate",),
        functools.partial(setattr, settings, "rate"),
    )


def test_names_of_objects_that_are_told_apart_may_look_like_classes() -> None:
    input, Best = pt.ones(1), pt.ones(1)
    settings = types.SimpleNamespace(max=pt.ones(1))
    cases: list[tuple[Any, Tensor]] = [
        (lambda x: x * 3 if x is input else x, input),
        (lambda x: x if x is not Best else x * 3, Best),
        (lambda x: x * 3 if x is settings.max else x, settings.max),
    ]
    for function, given in cases:
        with pytest.raises(CompileError, match="compares objects by identity"):
            compile(function)(given)


def test_keys_of_dicts_are_followed() -> None:
    key = Settings()
    table = {key: 1.0}
    change = functools.partial(setattr, key, "rate")
    followed(compile(lambda x: x * sum(k.rate for k in table)), (), change)
    followed(compile(lambda x, table: x * sum(k.rate for k in table)), (table,), change)
    seen = types.MappingProxyType(table)
    followed(compile(lambda x: x * sum(k.rate for k in seen)), (), change)


def test_objects_in_arrays_of_numpy_are_followed() -> None:
    held, fixed = np.empty(1, object), np.empty((1, 1), object)
    inner, settings = [1.0], Settings()
    held[0], fixed[0, 0] = inner, settings
    fixed.setflags(write=False)
    followed(compile(lambda x: x * held[0][0]), (), lambda v: inner.__setitem__(0, v))
    followed(compile(lambda x: x * fixed[0, 0].rate), (), lambda v: setattr(settings, "rate", v))
    fast = compile(lambda x: x * held[0])
    for value in (1000.5, 2000.5, 1000.5):
        held[0] = value
        for _ in range(3):
            assert fast(ONE).item() == value


def test_arrays_of_numpy_that_stay_are_known_at_one_look() -> None:
    table = np.ones((300, 2), np.float32)
    (watch,) = [w for w in outside_of(lambda: table).watches if w.read is data_of]
    assert watch.unchanged()
    table[0, 0] = 2.0
    assert not watch.unchanged()


def test_values_of_members_are_followed() -> None:
    class Rate(enum.Enum):
        LOW = 1.0

    change = functools.partial(setattr, Rate.LOW, "_value_")
    followed(compile(lambda x: x * Rate.LOW.value), (), change)
    followed(compile(lambda x, rate: x * rate.value), (Rate.LOW,), change)


def test_a_class_that_is_asked_for_is_no_identity() -> None:
    given = pt.ones(1)

    def doubled(x: Tensor) -> Tensor:
        return x + given if type(x) is pt.Tensor and type(given) is Tensor else x

    fast = compile(doubled)
    assert [fast(given).item() for _ in range(3)] == [2.0] * 3
    known = outside_of(lambda x: x is given or x is ONE)
    assert known.identities.keys() >= {id(given), id(ONE)}


def test_a_wrong_argument_is_told_after_one_run() -> None:
    runs: list[float] = []

    def note(rate: float) -> None:
        runs.append(float(rate))

    def wrong(x: Tensor, rate: float) -> Tensor:
        note(1.0)
        return pt.concat([x, rate])  # type: ignore[list-item]

    with pytest.raises(pt.PhloxError):
        compile(wrong)(ONE, 0.5)
    assert len(runs) == 1
