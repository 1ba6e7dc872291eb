"""Calls whose result, a new module, is thrown away on the line that made it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from phlox_tensor.arguments import explained, is_thrown_away, warn_thrown_away

F = TypeVar("F", bound=Callable[..., Any])


def kept(code: str) -> Callable[[F], F]:
    """Let calls of a function warn where nobody keeps what it gives, with code that does."""

    def marked(function: F) -> F:
        checked = explained(function)

        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            made = checked(*args, **kwargs)
            if is_thrown_away(sys._getframe()):
                warn_thrown_away(function.__name__, code, stacklevel=2)
            return made

        marked_call: Any = call
        marked_call._explained = True
        return marked_call

    return marked
