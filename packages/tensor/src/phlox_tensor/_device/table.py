"""The ops of one device, ready to be called: ``device.ops.add(p, q)``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from difflib import get_close_matches
from functools import partial
from typing import TYPE_CHECKING, Any, final

from .._errors.classes import UnknownOpError

Entry = Callable[..., Any]
"""What runs an op on a device: takes primitives, then attributes; returns primitives."""
# For each operand the element type to cast it to, or None; a tuple of such for several operands.
Casts = tuple[Any, ...]


@final
class Table:
    """Entries as plain attributes, ``table.add(p, q)``, and by name, ``table["add"]``.

    Nothing else is an attribute, so an op may have any name. An entry is looked up at its first
    use; the attribute is the entry itself from then on, which Python reads fastest.
    """

    __slots__ = ("__dict__", "_resolve")

    def __init__(self, resolve: Callable[[str], Entry], names: Iterable[str]) -> None:
        """Look entries up by ``resolve``."""
        self._resolve = resolve
        vars(self).update({name: _Unresolved(_first_use, self, name) for name in names})

    def _reset(self, name: str) -> None:
        """Look the entry of an op up again, at its next use."""
        vars(self)[name] = _Unresolved(_first_use, self, name)

    def __getitem__(self, name: str) -> Entry:
        """Return the entry itself, for whoever keeps it.

        Raises:
            UnknownOpError: when there is no op of this name.
            BackendUnavailableError: when the backend has neither an entry nor an expansion.
        """
        entry = vars(self).get(name)
        if entry is None:
            raise _no_op(self, name)
        if isinstance(entry, _Unresolved):
            entry = vars(self)[name] = self._resolve(name)
        return entry

    if TYPE_CHECKING:  # which would slow down every attribute of a class that has it

        def __getattr__(self, name: str) -> Entry: ...


def _no_op(table: Table, name: object) -> UnknownOpError:
    near = get_close_matches(str(name), vars(table), n=1)
    return UnknownOpError(
        "ops",
        "no such op",
        got=repr(name),
        expected="the name of a declared op",
        hint=f"device.ops.{near[0]}" if near else "phlox ops",
    )


def casting(table: Table, name: str, casts: Casts) -> Entry:
    """The entry of an op, after casts of its operands."""
    entry = table[name]
    places = [(i, c) for i, c in enumerate(casts) if (any(c) if type(c) is tuple else c)]
    if not places:
        return entry
    cast = table["cast"]

    def all_cast(primitives: Any, dtypes: Casts) -> Any:
        pairs = zip(primitives, dtypes, strict=True)
        return tuple([p if dtype is None else cast(p, dtype) for p, dtype in pairs])

    def run(*given: Any) -> Any:
        operands = list(given)
        for i, c in places:
            operands[i] = all_cast(operands[i], c) if type(c) is tuple else cast(operands[i], c)
        return entry(*operands)

    return run


def _first_use(table: Table, name: str, /, *args: Any) -> Any:
    return table[name](*args)


@final
class _Unresolved(partial[Any]):
    """Stands for an entry until its first call; made in C, as each trace makes some thousands."""

    __slots__ = ()
