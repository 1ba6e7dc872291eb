"""Gives Tensor its generated methods, and a method to every op declared later."""

from __future__ import annotations

from typing import Any

from ._methods import TensorMethods
from ._op import Op, on_declare
from ._tensor import Tensor

_INHERITED = frozenset(vars(object)) - {"__eq__", "__ge__", "__gt__", "__le__", "__lt__", "__ne__"}


def install() -> None:
    """Put the generated methods on Tensor, which cannot inherit them: they need Tensor itself."""
    for name, member in vars(TensorMethods).items():
        if name not in _INHERITED and (callable(member) or isinstance(member, property)):
            setattr(Tensor, name, member)
    on_declare(_add_method)


def _add_method(op: Op) -> None:
    """A method for an op that a user declares."""
    if not op.method or not op.signature.operands or op.signature.operands[0].variadic:
        return
    if hasattr(Tensor, op.name):
        raise ValueError(f"Tensor has a method {op.name!r} already")

    def method(self: Tensor[Any], *args: Any, **kwargs: Any) -> Any:
        return op(self, *args, **kwargs)

    method.__name__ = op.name
    method.__doc__ = op.doc
    setattr(Tensor, op.name, method)
