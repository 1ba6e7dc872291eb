"""Signatures for ``help`` and ``inspect`` of functions that accept arguments only to refuse them.

A call with ``dim=`` reaches the function, which names ``axis=``; nobody should read that it takes
``**wrong``. Signatures are made when somebody asks: hundreds of them would slow the import down.
"""

from __future__ import annotations

from collections.abc import Iterable
from inspect import Parameter, Signature, signature, unwrap
from types import FunctionType, MappingProxyType
from typing import Any, Final

_VARIABLE: Final = 0x04 | 0x08  # of ``__code__.co_flags``: takes ``*args`` or ``**kwargs``
_REFUSED: Final = "Never"  # the annotation


class _Shown(Signature):
    """The signature of a function without what it takes in order to refuse it."""

    __slots__ = ("_function",)

    def __init__(self, function: FunctionType) -> None:
        """Say of which function."""
        self._function = function

    def plain(self) -> Signature:
        """Return the signature as Python makes them."""
        own: Any = unwrap(self._function)
        # Of the function itself, Python would ask this very object.
        bare = FunctionType(own.__code__, own.__globals__, own.__name__, own.__defaults__)
        bare.__kwdefaults__, bare.__annotations__ = own.__kwdefaults__, own.__annotations__
        found = signature(bare)
        kept = [
            p
            for p in found.parameters.values()
            if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD) or p.annotation != _REFUSED
        ]
        return found.replace(parameters=kept)

    # The methods of Signature read these two; a Python that renames them fails
    # test_help_does_not_show_what_is_refused.

    @property
    def _parameters(self) -> MappingProxyType[str, Parameter]:
        return self.plain().parameters

    @property
    def _return_annotation(self) -> Any:
        return self.plain().return_annotation

    def replace(self, **changes: Any) -> Signature:  # type: ignore[override]
        """Return another signature, such as that of a bound method."""
        return self.plain().replace(**changes)

    def __replace__(self, **changes: Any) -> Signature:  # type: ignore[override]
        return self.plain().replace(**changes)

    def __reduce__(self) -> Any:
        return self.plain().__reduce__()


def hide_refused(functions: Iterable[Any]) -> None:
    """Let functions not show the arguments that they take in order to refuse them."""
    for each in functions:
        if type(each) is FunctionType and each.__code__.co_flags & _VARIABLE:
            each.__signature__ = _Shown(each)  # type: ignore[attr-defined]
