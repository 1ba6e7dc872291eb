"""The result of an op that a user declared: its formula has to give what the declaration says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

from .._device.backend import Backend
from .._errors.classes import ArgumentError, ShapeError, WrongTypeError
from .._op.declaration import Op
from .._values.tensor import Tensor
from ..inference import infer_prepared
from .dispatch import spec_of


def promised(op: Op) -> Callable[..., Any]:
    """Return the formula of an op, with a look at what each call of it gives.

    The ops of the package are held to their declarations by its tests instead.

    Raises:
        ArgumentError: when it gives other element types, or tensors of another device.
        ShapeError: when it gives other shapes.
        WrongTypeError: when it gives something else than tensors, or not as many as declared.
    """
    formula = op.expand
    assert formula is not None
    count = len(op.signature.operands)

    @wraps(formula)
    def run(*args: Any) -> Any:
        out = formula(*args)
        given, attributes = (args[:count], args[count:]) if count else ((), args[1:])
        _check(op, out, given, attributes, args)
        return out

    return run


def _check(
    op: Op, out: Any, given: tuple[Any, ...], attributes: tuple[Any, ...], args: tuple[Any, ...]
) -> None:
    devices = [*_devices(args)]
    specs = tuple(map(spec_of, given))
    wanted = infer_prepared(op, specs, attributes, devices[0].default_int)
    several = op.signature.several
    found = out if several else (out,)
    tensors = isinstance(found, tuple | list) and all(isinstance(each, Tensor) for each in found)
    if not tensors or len(found) != len(wanted):
        many = f"a tuple of {len(wanted)} tensors" if several else "a tensor"
        raise WrongTypeError(
            op.name, "expand gives something else", got=_described(out), expected=many
        )
    for each, spec in zip(found, wanted, strict=True):
        if each.device not in devices:
            raise ArgumentError(
                op.name,
                "expand leaves the device of its operands",
                got=repr(each.device),
                expected=repr(devices[0]),
                hint="ops of tensors alone in expand: numpy() and asarray() lose derivatives",
            )
        if not _fits(each.shape, spec.shape):
            raise ShapeError(
                op.name, "expand gives another shape", got=each.shape, expected=spec.shape
            )
        if each.dtype is not spec.dtype:
            raise ArgumentError(
                op.name,
                "expand gives another element type",
                got=each.dtype.name,
                expected=spec.dtype.name,
                hint=f"y.astype({spec.dtype.name}), or another kind behind -> in the signature",
            )


def _devices(args: tuple[Any, ...]) -> Iterator[Backend]:
    for each in args:
        if isinstance(each, Tensor):
            yield each.device
        elif isinstance(each, Backend):
            yield each
        elif isinstance(each, tuple | list):
            yield from _devices(tuple(each))


def _fits(found: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    """Whether a shape is the one that was said; -1 is a size that only values tell."""
    pairs = zip(found, wanted, strict=False)
    return len(found) == len(wanted) and all(b in (a, -1) for a, b in pairs)


def _described(out: Any) -> str:
    if isinstance(out, tuple | list):
        return f"{type(out).__name__} of {[type(each).__name__ for each in out]}"
    return type(out).__name__
