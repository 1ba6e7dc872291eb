"""What classes have, and what Python's own holders hold, is followed from call to call."""

from __future__ import annotations

import operator
import types
import weakref
from array import array
from collections import ChainMap, UserDict, UserList
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from functools import partialmethod, singledispatch, singledispatchmethod
from threading import Thread, local
from typing import Any

import numpy as np
import pytest

import phlox_tensor as pt
from phlox_fusion import compile, kernel
from phlox_tensor import CompileError, Tensor

ONE = pt.ones(1)
RATE = 1.0


def times(value: float) -> Callable[[Any, Tensor], Tensor]:
    return lambda _, x: x * value


def made() -> tuple[Any, Any, Any]:
    """Three classes that derive from each other, anew for each test."""

    class Base:
        rate = 1.0

        def scaled(self, x: Tensor) -> Tensor:
            return x * 1.0

        @property
        def whole(self) -> float:
            return 1.0

        @staticmethod
        def fixed(x: Tensor) -> Tensor:
            return x * 1.0

        @classmethod
        def own(cls, x: Tensor) -> Tensor:
            return x * cls.rate

    class Middle(Base):
        pass

    class Last(Middle):
        def behind(self, x: Tensor) -> Tensor:
            return super().scaled(x)

    return Base, Middle, Last


def goes_on(function: Any, change: Callable[[], object], after: float = 3.0) -> None:
    """A change is seen by what was replayed, and by a kernel."""
    for fast in (compile(function), kernel(function)):
        assert [fast(ONE).item() for _ in range(3)] == [1.0] * 3, fast
    fasts = compile(function), kernel(function)
    for fast in fasts:
        for _ in range(3):
            fast(ONE)
    change()
    for fast in fasts:
        assert [fast(ONE).item() for _ in range(3)] == [after] * 3, fast


@pytest.mark.parametrize("at", range(3))
def test_what_a_class_gets_or_replaces_is_followed(at: int) -> None:
    cases: dict[str, tuple[Callable[[Any], Any], Any]] = {
        "scaled": (lambda item: lambda x: item.scaled(x) * 1.0, times(3.0)),
        "rate": (lambda item: lambda x: x * item.rate, 3.0),
        "whole": (lambda item: lambda x: x * item.whole, property(lambda _: 3.0)),
        "fixed": (lambda item: lambda x: item.fixed(x) * 1.0, staticmethod(lambda x: x * 3.0)),
        "own": (lambda item: lambda x: item.own(x) * 1.0, classmethod(lambda _, x: x * 3.0)),
    }
    for name, (function, other) in cases.items():
        classes = made()
        goes_on(function(classes[2]()), lambda: setattr(classes[at], name, other))  # noqa: B023


def test_a_class_attribute_that_goes_is_followed() -> None:
    base, _, last = made()
    base.rate, last.rate = 3.0, 1.0
    item = last()
    goes_on(lambda x: x * item.rate, lambda: delattr(last, "rate"))


@pytest.mark.parametrize("at", range(2))
def test_what_super_goes_on_to_is_followed(at: int) -> None:
    classes = made()
    item = classes[2]()
    goes_on(lambda x: item.behind(x) * 1.0, lambda: setattr(classes[at], "scaled", times(3.0)))


def test_a_class_beside_that_gets_what_super_asks_for_is_followed() -> None:
    base, _, _ = made()

    class Beside:
        pass

    class Both(Beside):
        def behind(self, x: Tensor) -> Tensor:
            return super().scaled(x)  # type: ignore[misc]

    item: Any = type("Joined", (Both, base), {"__module__": __name__})()
    goes_on(lambda x: item.behind(x) * 1.0, lambda: setattr(Beside, "scaled", times(3.0)))


def test_a_method_that_an_object_gets_is_followed() -> None:
    item: Any = made()[2]()
    goes_on(lambda x: item.scaled(x) * 1.0, lambda: setattr(item, "scaled", lambda x: x * 3.0))


def test_an_object_of_another_class_is_followed() -> None:
    class Other:
        def scaled(self, x: Tensor) -> Tensor:
            return x * 3.0

    item = made()[2]()
    goes_on(lambda x: item.scaled(x) * 1.0, lambda: setattr(item, "__class__", Other))


def test_what_a_metaclass_has_is_followed() -> None:
    class Meta(type):
        @property
        def rate(cls) -> float:
            return cls.kept  # type: ignore[attr-defined]

    class Held(metaclass=Meta):
        kept = 1.0

    goes_on(lambda x: x * Held.rate, lambda: setattr(Held, "kept", 3.0))
    Held.kept = 1.0
    goes_on(lambda x: x * Held.rate, lambda: setattr(Meta, "rate", property(lambda _: 3.0)))


def test_what_calls_a_class_is_followed() -> None:
    class Called:
        def __call__(self, x: Tensor) -> Tensor:
            return x * 1.0

    item = Called()
    goes_on(lambda x: item(x) * 1.0, lambda: setattr(Called, "__call__", times(3.0)))


def test_holders_of_pythons_own_modules_are_followed() -> None:
    class Plain:
        rate = 1.0

    variable = ContextVar("variable", default=1.0)
    numbers, bytes_, table = array("f", [1.0]), bytearray([1]), {"rate": 1.0}
    view, shown, asked = memoryview(bytes_), types.MappingProxyType(table), Plain()
    users, listed, chained = UserDict(rate=1.0), UserList([1.0]), ChainMap({"rate": 1.0})
    get, call, weak = operator.attrgetter("rate"), operator.methodcaller("get", "rate"), Plain()
    kept, whole, texts = weakref.ref(weak), types.SimpleNamespace(a=1.0), Plain()
    cases: list[tuple[Any, Callable[[], object]]] = [
        (lambda x: x * variable.get(), lambda: variable.set(3.0)),
        (lambda x: x * numbers[0], lambda: numbers.__setitem__(0, 3.0)),
        (lambda x: x * view[0], lambda: bytes_.__setitem__(0, 3)),
        (lambda x: x * shown["rate"], lambda: table.update(rate=3.0)),
        (lambda x: x * users["rate"], lambda: users.update(rate=3.0)),
        (lambda x: x * listed[0], lambda: listed.__setitem__(0, 3.0)),
        (lambda x: x * chained["rate"], lambda: chained.update(rate=3.0)),
        (lambda x: x * get(asked), lambda: setattr(asked, "rate", 3.0)),
        (lambda x: x * call(users), lambda: users.update(rate=9.0)),
        (lambda x: x * kept().rate, lambda: setattr(weak, "rate", 3.0)),  # type: ignore[union-attr]
        (lambda x: x * sum(vars(whole).values()), lambda: setattr(whole, "b", 2.0)),
        (lambda x: x * operator.attrgetter("rate")(texts), lambda: setattr(texts, "rate", 3.0)),
        (lambda x: x * eval("RATE"), lambda: globals().update(RATE=3.0)),
    ]
    for at, (function, change) in enumerate(cases):
        if at == 8:
            users["rate"] = 1.0
        goes_on(function, change, 9.0 if at == 8 else 3.0)
    globals()["RATE"] = 1.0


def test_what_another_thread_has_is_followed() -> None:
    held = local()
    held.rate = 1.0
    fast = compile(lambda x: x * held.rate)
    found = [fast(ONE).item() for _ in range(3)]

    def work() -> None:
        held.rate = 3.0
        found.extend(fast(ONE).item() for _ in range(3))

    thread = Thread(target=work)
    thread.start()
    thread.join()
    assert [*found, fast(ONE).item()] == [1.0] * 3 + [3.0] * 3 + [1.0]


def test_a_dataclass_that_is_taken_apart_is_followed() -> None:
    @dataclass
    class Config:
        rate: float

    config = Config(1.0)
    goes_on(lambda x: x * asdict(config)["rate"], lambda: setattr(config, "rate", 3.0))


def test_a_view_that_may_not_be_written_to_is_followed_to_its_array() -> None:
    few, many = np.ones(2, np.float32), np.ones(5_000, np.float32)
    small, large = np.broadcast_to(few, (2, 2)), np.broadcast_to(many, (2, 5_000))
    goes_on(lambda x: x * float(small[1, 0]), lambda: few.__setitem__(0, 3.0))
    fast = compile(lambda x: x * pt.asarray(large)[0, 0])
    with pytest.raises(CompileError, match=r"a view of an array(.|\n)*large\.base\.setflags"):
        fast(pt.ones(1))
    many.setflags(write=False)
    assert fast(pt.ones(1)).item() == 1.0


def test_what_bound_methods_of_python_are_bound_to_is_followed() -> None:
    table, numbers, members = {"rate": 1.0}, [1.0], {1.0}
    got, item, size = table.get, numbers.__getitem__, members.__len__
    goes_on(lambda x: x * got("rate"), lambda: table.update(rate=3.0))
    goes_on(lambda x: x * item(0), lambda: numbers.__setitem__(0, 3.0))
    goes_on(lambda x: x * size(), lambda: members.update((2.0, 3.0)))


def test_functions_by_the_type_of_their_argument_are_followed() -> None:
    @singledispatch
    def scaled(name: object, x: Tensor) -> Tensor:
        return x * 1.0

    by_type = compile(lambda x: scaled("a", x))

    @singledispatch
    def of_tensor(x: object) -> Any:
        return x

    alone, inside = compile(of_tensor), compile(lambda x: of_tensor(x) * 1.0)
    for fast in (by_type, alone, inside):
        assert [fast(ONE).item() for _ in range(3)] == [1.0] * 3
    scaled.register(str, lambda name, x: x * 2.0)
    of_tensor.register(Tensor, lambda x: x * 2.0)
    for fast in (by_type, alone, inside):
        assert [fast(ONE).item() for _ in range(3)] == [2.0] * 3


def test_what_methods_with_given_arguments_and_by_type_read_is_followed() -> None:
    read = {"rate": 1.0}

    class Scaling:
        def of(self, x: Tensor, factor: float) -> Tensor:
            return x * factor * read["rate"]

        once = partialmethod(of, factor=1.0)

        @singledispatchmethod
        def by(self, factor: float, x: Tensor) -> Tensor:
            return x * factor

        @by.register
        def _(self, factor: str, x: Tensor) -> Tensor:
            return x * len(factor) * read["rate"]

    item = Scaling()
    for function in (lambda x: item.once(x) * 1.0, lambda x: item.by("a", x)):
        read["rate"] = 1.0
        goes_on(function, lambda: read.update(rate=3.0))


def test_an_attribute_that_a_class_worked_out_before_is_followed() -> None:
    class Lazy:
        def __getattr__(self, name: str) -> float:
            if name != "rate":
                raise AttributeError(name)
            return 1.0

    lazy = Lazy()
    goes_on(lambda x: x * lazy.rate, lambda: setattr(lazy, "rate", 3.0))


def given_later(expression: str, change: str, bases: str = "Base") -> list[float]:
    """What a compiled function gives before and after a class, or what it is made of, changes."""
    text = f"""
class Base: ...
class Other:
    def rate(self): return 3.0
class Metal(type): ...
class Held({bases}): ...
held = Held()
held.kept = 1.0
def named(name): return getattr(held, name, 1.0)
def caught():
    try: return held.absent
    except AttributeError: return 1.0
def body(x): return x * ({expression})
"""
    space: dict[str, Any] = {"__name__": __name__, "yes": lambda *_: True}
    exec(text, space)
    fast = compile(space["body"])
    found = [fast(pt.ones(1)).item() for _ in range(6)]
    exec(change, space)
    return found + [fast(pt.ones(1)).item() for _ in range(6)]


@pytest.mark.parametrize(
    ("expression", "change", "bases"),
    [
        ("held.kept", "Held.kept = property(lambda _: 3.0)", "Base"),
        ("held.kept", "Base.kept = property(lambda _: 3.0)", "Base"),
        ("named('absent')", "Base.absent = 3.0", "Base"),
        ("named('absent')", "Held.__getattr__ = lambda *_: 3.0", "Base"),
        ("3.0 if hasattr(held, 'absent') else 1.0", "Base.__getattr__ = lambda *_: 3.0", "Base"),
        ("caught()", "Held.__getattr__ = lambda *_: 3.0", "Base"),
        ("1.0 if held else 3.0", "Held.__bool__ = lambda _: False", "Base"),
        ("1.0 if held else 3.0", "Base.__len__ = lambda _: 0", "Base"),
        ("3.0 if held == Held else 1.0", "Held.__eq__ = lambda *_: True", "Base"),
        ("held * 2.0", "Held.__mul__ = lambda *_: 3.0", "float"),
        ("3.0 if isinstance(1, Held) else 1.0", "Metal.__instancecheck__ = yes", "metaclass=Metal"),
        ("3.0 if isinstance(held, Other) else 1.0", "Held.__bases__ = (Other,)", "Base"),
        ("getattr(held, 'rate', float)() or 1.0", "Held.__bases__ = (Other,)", "Base"),
    ],
)
def test_what_a_class_gets_later_is_followed(expression: str, change: str, bases: str) -> None:
    found = given_later(expression, change, bases)
    assert found[5] != 3.0
    assert found == [found[0]] * 6 + [3.0] * 6
