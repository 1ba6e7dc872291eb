"""What a public module shows: its own names alone, and an error with a hint for any other."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

from .arguments import classes_of, explain
from .names import unknown_name


def publish(
    module: str,
    elsewhere: Mapping[str, str] | Callable[[str], Mapping[str, str]] = MappingProxyType({}),
    *,
    owner: str | None = None,
    rooms: Iterable[str] = (),
    later: Callable[[], Mapping[str, Any]] = dict,
    explained: Iterable[type] | None = None,
) -> None:
    """End a public module, which calls this last: type checkers see nothing of it.

    Functions and methods say which argument does not fit, and a name that is not there what is
    meant by it.

    Args:
        module: its ``__name__``.
        elsewhere: names of other libraries and what to type, or a function that gives them for one.
        owner: the module, as errors name it.
        rooms: folders of the package, whose names do not show.
        later: gives what is loaded when somebody asks for it, by name.
        explained: classes whose methods say what does not fit; by default all of the package.
    """
    here = sys.modules[module]
    space = vars(here)
    explain(here, *(classes_of(here) if explained is None else explained))
    for room in rooms:
        del space[room]

    def names() -> list[str]:
        return sorted({*later(), *(name for name in space if not name.startswith("_"))})

    def unknown(name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        if name in (found := later()):
            return found[name]
        codes = elsewhere(name) if callable(elsewhere) else elsewhere
        raise unknown_name(name, owner or module, codes, names())

    space.update(__dir__=names, __getattr__=unknown)
