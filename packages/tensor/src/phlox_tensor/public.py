"""The names that a public module shows; any other is an error with a hint."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from types import FunctionType, MappingProxyType, ModuleType
from typing import Any

from .arguments import classes_of, explain, explain_function
from .names import unknown_name


def publish(
    module: str,
    elsewhere: Mapping[str, str] | Callable[[str], Mapping[str, str]] = MappingProxyType({}),
    *,
    owner: str | None = None,
    rooms: Iterable[str] = (),
    homes: Mapping[str, str] = MappingProxyType({}),
    explained: Iterable[type] | None = None,
    plain: type | None = None,
) -> None:
    """End a public module, which calls this last: type checkers see nothing of it.

    Functions and methods say which argument does not fit, and a name that is not there what is
    meant by it.

    Args:
        module: its ``__name__``.
        elsewhere: names of other libraries and what to type, or a function that gives them for one.
        owner: the module, as errors name it.
        rooms: folders of the package, whose names do not show.
        homes: names that are loaded when somebody asks for one, and the modules that have them.
        explained: classes whose methods say what does not fit; by default all of the package.
        plain: a base of classes of ``homes`` whose own methods say it themselves.
    """
    here = sys.modules[module]
    space = vars(here)
    explain(here, *(classes_of(here) if explained is None else explained))
    for room in rooms:
        import_module(f"{module}.{room}")  # which shows it, only the first time
        del space[room]

    def names() -> list[str]:
        return sorted({*homes, *(name for name in space if not name.startswith("_"))})

    def absent(name: str) -> Any:
        if name in homes:
            value = getattr(import_module(homes[name], module), name)
            if isinstance(value, type) and (plain is None or plain not in value.__mro__[1:]):
                explain(value)
            elif type(value) is FunctionType:
                value = explain_function(here, name, value)
            space[name] = value
            return value
        if name == "__all__":
            return names()
        if name.startswith("_"):
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        codes = elsewhere(name) if callable(elsewhere) else elsewhere
        raise unknown_name(name, owner or module, codes, names())

    space.update(__dir__=names, __getattr__=absent)


def load_all(module: ModuleType) -> None:
    """Load what a public module would load when somebody asks for it."""
    for name in dir(module):
        getattr(module, name)
