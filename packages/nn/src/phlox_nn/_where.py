"""Which parameters are meant: by a path, a pattern or a function."""

from __future__ import annotations

from collections.abc import Callable
from fnmatch import fnmatchcase
from inspect import signature

from phlox_tensor import ArgumentError

from ._param import Param

Where = str | Callable[[str, Param], bool]


def fits_path(where: Where, path: str, param: Param) -> bool:
    """Return whether a path, a pattern or a function means the parameter at a path."""
    if not isinstance(where, str):
        return where(path, param)
    return fnmatchcase(path, where) or fnmatchcase(path, f"{where}.*")


def check_where(op: str, where: object) -> None:
    """Refuse what neither is a path nor a function of path and parameter.

    Raises:
        ArgumentError: also for a function of other arguments.
    """
    if isinstance(where, str) or (callable(where) and _takes_two(where)):
        return
    raise ArgumentError(
        op,
        "not a path, and not a function of path and parameter",
        got=f"a {type(where).__name__} of other arguments" if callable(where) else repr(where),
        expected='"encoder.*", or a function',
        hint=f'model.{op}(lambda path, param: path.endswith("bias"))',
    )


def _takes_two(function: Callable[..., object]) -> bool:
    try:
        signature(function).bind("path", None)
    except TypeError:
        return False
    except ValueError:  # a function that does not say what it takes
        return True
    return True
