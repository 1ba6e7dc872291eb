"""What functions import as they run, and names that they ask modules for, is followed."""

from __future__ import annotations

import importlib
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import phlox_tensor as pt
from phlox_fusion import compile, kernel

ONE = pt.ones(1)
K = 1.0
USERS = """
def whole(x):
    import followed_one
    return x * followed_one.RATE

def named(x):
    from followed_one import RATE as rate
    return x * rate

def held(x):
    from followed_one import BOX
    return x * BOX.rate

def dotted(x):
    import followed_many.inside as there
    return x * there.RATE

def helped(x):
    def inner(x):
        from followed_many.inside import RATE
        return x * RATE
    return inner(x) * 1.0
"""
FILES = {
    "followed_users.py": USERS,
    "followed_one.py": "RATE = 1.0\nclass Box:\n    rate = 1.0\nBOX = Box()\n",
    "followed_many/__init__.py": "RATE = 1.0\n",
    "followed_many/inside.py": "RATE = 1.0\n",
    "followed_many/user.py": "def above(x):\n    from . import inside\n    return x * inside.RATE\n"
    "def beside(x):\n    from .inside import RATE\n    return x * RATE\n",
    "followed_lazy.py": "KEPT = {'RATE': 1.0}\ndef __getattr__(name):\n"
    "    if name in KEPT:\n        return KEPT[name]\n    raise AttributeError(name)\n",
}


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    yield
    for name in [name for name in sys.modules if name.startswith("followed_")]:
        del sys.modules[name]


def module_of(name: str) -> Any:
    """One of the files, imported."""
    return importlib.import_module(name)


def goes_on(function: Any, change: Callable[[], object]) -> None:
    """A change from 1 to 3 is seen by what was replayed, and by a kernel."""
    fasts = compile(function), kernel(function)
    for fast in fasts:
        assert [fast(ONE).item() for _ in range(4)] == [1.0] * 4, fast
    assert fasts[0].versions == 1
    change()
    for fast in fasts:
        assert [fast(ONE).item() for _ in range(4)] == [3.0] * 4, fast


def set_in(module: str, name: str = "RATE") -> Callable[[], object]:
    return lambda: setattr(sys.modules[module], name, 3.0)


@pytest.mark.parametrize("ahead", [False, True], ids=["imported by the call", "imported before"])
def test_what_a_function_imports_is_followed(ahead: bool) -> None:
    users = module_of("followed_users")
    cases = {
        "whole": "followed_one",
        "named": "followed_one",
        "dotted": "followed_many.inside",
        "helped": "followed_many.inside",
    }
    for name, module in cases.items():
        if ahead:
            module_of(module)
        goes_on(getattr(users, name), set_in(module))
        del sys.modules[module]
    goes_on(users.held, lambda: setattr(sys.modules["followed_one"].BOX, "rate", 3.0))


def test_what_a_function_imports_from_its_own_package_is_followed() -> None:
    user = module_of("followed_many.user")
    for function in (user.above, user.beside):
        module_of("followed_many.inside").RATE = 1.0
        goes_on(function, set_in("followed_many.inside"))


def test_a_module_that_takes_the_place_of_another_is_followed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    other = types.ModuleType("followed_one")
    vars(other)["RATE"] = 3.0
    users = module_of("followed_users")
    goes_on(users.whole, lambda: monkeypatch.setitem(sys.modules, "followed_one", other))


def test_names_that_a_module_works_out_are_followed() -> None:
    lazy = module_of("followed_lazy")
    goes_on(lambda x: x * lazy.RATE, lambda: lazy.KEPT.update(RATE=3.0))
    lazy.KEPT["RATE"] = 1.0
    goes_on(lambda x: x * lazy.RATE, set_in("followed_lazy"))


def test_globals_that_are_asked_for_by_their_text_are_followed() -> None:
    def change() -> None:
        global K  # noqa: PLW0603 - what the test is about
        K = 3.0

    goes_on(lambda x: x * globals()["K"], change)
