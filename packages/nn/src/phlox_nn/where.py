"""Which parameters are meant: by a path, a pattern or a function."""

from __future__ import annotations

from collections.abc import Callable
from fnmatch import fnmatchcase
from inspect import signature

from phlox_tensor import ArgumentError, WrongTypeError
from phlox_tensor.no_operand import NoOperand

from .param.param import Param

Where = str | Callable[[str, Param], bool]


_LACKING = "a module with weights"


def fits(where: Where, path: str, param: Param) -> bool:
    """Return whether a path, a pattern or a function means the parameter at a path.

    Raises:
        WrongTypeError: when the function gives no bool.
    """
    if isinstance(where, str):
        return fits_path(where, path)
    found: object = where(path, param)
    if not isinstance(found, bool):
        raise WrongTypeError(
            "where",
            "a function of path and parameter gives neither True nor False",
            got=f"{type(found).__name__} for {path}",
            expected="a bool",
            hint='lambda path, param: path.endswith("bias")',
        )
    return found


def fits_path(where: str, path: str) -> bool:
    """Return whether a path or a pattern means what stands at a path."""
    return fnmatchcase(path, where) or fnmatchcase(path, f"{where}.*")


def chosen(
    op: str, where: tuple[Where, ...], weights: dict[str, Param], lacking: str = _LACKING
) -> set[str]:
    """Return the paths of the weights that are meant; without ``where`` all.

    Args:
        op: who asks.
        where: what the user says.
        weights: those that may be meant, by path.
        lacking: what errors ask for where there are no such weights.

    Raises:
        ArgumentError: when a path, a pattern or a function fits none of them.
    """
    found = set() if where else set(weights)
    for each in where:
        require_where(op, each)
        fitting = {path for path, param in weights.items() if fits(each, path, param)}
        if not fitting:
            raise no_weight(op, repr(each) if isinstance(each, str) else None, weights, lacking)
        found |= fitting
    return found


def no_weight(op: str, path: str | None, weights: dict[str, Param], lacking: str) -> ArgumentError:
    """Return the error for a path that fits no weight, or for a function where there is none."""
    return ArgumentError(
        op,
        "the function fits no weight" if path is None else "no weight has such a path",
        got=f"False for each of {len(weights)}" if path is None else path,
        expected=", ".join(list(weights)[:4]) or lacking,
        hint="print(model)",
    )


def require_where(op: str, where: object, hint: str | None = None) -> None:
    """Refuse what neither is a path nor a function of path and parameter.

    Raises:
        ArgumentError: also for a function of other arguments.
    """
    part = isinstance(where, NoOperand | type)  # a module or a parameter, or a class of them
    if isinstance(where, str) or (callable(where) and not part and _takes_two(where)):
        return
    other = f"a {type(where).__name__} of other arguments" if callable(where) else repr(where)
    raise ArgumentError(
        op,
        "not a path, and not a function of path and parameter",
        got=f"a {type(where).__name__} itself" if part else other,
        expected='"encoder.*", or a function',
        hint=f'model.{op}("encoder.*"), its path; print(model) shows it'
        if part
        else hint or f'model.{op}(lambda path, param: path.endswith("bias"))',
    )


def require_two(op: str, function: object, second: str) -> None:
    """Refuse a function that does not take a path and what stands there.

    Raises:
        WrongTypeError: saying what it is called with.
    """
    if callable(function) and not _takes_two(function):
        raise WrongTypeError(
            op,
            "a function of other arguments",
            got=getattr(function, "__name__", type(function).__name__),
            expected=f"one of a path and a {second}",
            hint=f"nn.{op}(model, lambda path, {second}: ...)"
            if second == "module"
            else f"model.{op}(lambda path, {second}: ...)",
        )


def _takes_two(function: Callable[..., object]) -> bool:
    try:
        signature(function).bind("path", None)
    except TypeError:
        return False
    except ValueError:  # a function that does not say what it takes
        return True
    return True
