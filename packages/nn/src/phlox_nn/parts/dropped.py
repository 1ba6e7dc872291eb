"""Calls whose result, a new module, is thrown away on the line that made it."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from functools import wraps
from opcode import opmap
from types import FrameType
from typing import Any, Final, TypeVar

from phlox_tensor.arguments import explained
from phlox_tensor.capture import is_ours

F = TypeVar("F", bound=Callable[..., Any])

_CACHE, _POP_TOP = opmap["CACHE"], opmap["POP_TOP"]
_WORD: Final = 2  # bytes of an instruction of CPython


def kept(code: str) -> Callable[[F], F]:
    """Let calls of a function warn where nobody keeps what it gives, with code that does."""

    def marked(function: F) -> F:
        checked = explained(function)

        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            made = checked(*args, **kwargs)
            caller = sys._getframe(1)
            if not is_ours(caller.f_globals.get("__name__")) and _drops(caller):
                name = function.__name__
                what = f"[{name}] the new module is thrown away, and the old one is as it was"
                warnings.warn(f"{what}\nhint: {code}", stacklevel=2)
            return made

        marked_call: Any = call
        marked_call._explained = True
        return marked_call

    return marked


def _drops(frame: FrameType) -> bool:
    """Whether a frame does nothing with what the call in it gives: the next instruction pops it."""
    code, after = frame.f_code.co_code, frame.f_lasti + _WORD
    while after < len(code) and code[after] == _CACHE:
        after += _WORD
    return after < len(code) and code[after] == _POP_TOP
