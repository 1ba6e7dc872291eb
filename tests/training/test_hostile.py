"""Programs that change something behind the back of a replay: as eager, or loud."""

import copy
import sys
import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

import phlox as px
from tests.training.hostile import INSTALLED, MOVING
from tests.training.hostile_names import NAMED

PROGRAMS = MOVING | NAMED
CALLS = 20


def run(text: str, wrap: Callable[[Any], Any], name: str, file: str) -> list[Any]:
    """What a program gives at each call."""
    module("installed_settings", INSTALLED, "/usr/lib/site-packages/installed_settings.py")
    space = vars(module(name, "import phlox as px\n" + text, file))
    step, found = wrap(space["step"]), []
    for i in range(CALLS):
        if "before" in space:
            space["before"](i)
        out = step(*space["args"](i)) if "args" in space else step(px.ones(2))
        if "after" in space:
            found.append(plain(space["after"](out)))
        found.append(plain(out))
    return found


def module(name: str, text: str, file: str) -> ModuleType:
    """A module of such a text, as if it had been imported from a file."""
    made = ModuleType(name)
    made.__file__ = file
    sys.modules[name] = made
    exec(compile(text, file, "exec"), vars(made))
    return made


def plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, px.Tensor) else copy.copy(value)


def is_silent(
    text: str, name: str = "program", file: str = "program.py", wrap: Any = px.compile
) -> bool:
    """Whether a compiled program gives something else than eager without a word."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)
            warnings.filterwarnings("ignore", ".*was recorded 10 times")
            found = run(text, wrap, name, file)
    except (px.CompileError, UserWarning):
        return False
    return found != run(text, lambda step: step, name, file)


@pytest.fixture(autouse=True)
def names(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("program", "installed_program", "installed_settings"):
        monkeypatch.delitem(sys.modules, name, raising=False)


@pytest.mark.parametrize("program", PROGRAMS)
def test_no_program_differs_in_silence(program: str) -> None:
    assert not is_silent(PROGRAMS[program])


@pytest.mark.parametrize("program", PROGRAMS)
def test_nor_does_it_once_it_is_installed(program: str) -> None:
    file = "/usr/lib/site-packages/installed_program.py"
    assert not is_silent(PROGRAMS[program], "installed_program", file)


@pytest.mark.parametrize("program", PROGRAMS)
def test_nor_does_one_kernel(program: str) -> None:
    assert not is_silent(PROGRAMS[program], wrap=px.kernel)
