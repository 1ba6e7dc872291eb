"""Gives Tensor the members that need ops; gives ops declared later a method and their entries."""

from __future__ import annotations

from inspect import CO_VARARGS
from types import FunctionType
from typing import Any

from .._call.declared_result import promised
from .._data import creation as _creation
from .._device.backend import add_op
from .._device.finding import provide
from .._device.numpy_backend import Numpy
from .._op.declaration import Op, on_declare, promised_by, registry_mark, reserve, seal
from .._op.signature import REQUIRED
from .._values.ambient import depend_on
from .._values.tensor import Tensor
from ..arguments import explained, usage
from ..shown import hide_refused
from . import functions as _functions
from . import standard as _standard
from .members import TensorMembers
from .methods import TensorMethods

_OWN = {"__eq__", "__ge__", "__gt__", "__le__", "__lt__", "__ne__", "__repr__"}
_INHERITED = frozenset(vars(object)) - _OWN


_added: set[str] = set()  # names of methods that ops of users have given


def install() -> None:
    """Put the methods on Tensor, which cannot inherit them: they need Tensor itself."""
    for name, member in vars(TensorMethods).items():
        if name[0] != "_" and type(member) is FunctionType:
            _let_calls_reach(member, 1)
    for name in _functions.__all__:
        _let_calls_reach(getattr(_functions, name), 0)
    for name, member in {**vars(TensorMembers), **vars(TensorMethods)}.items():
        if name not in _INHERITED and (callable(member) or isinstance(member, property)):
            setattr(Tensor, name, member)
    for name, member in {**vars(TensorMembers), **vars(Tensor)}.items():
        refuses = type(member) is FunctionType and member.__code__.co_flags & CO_VARARGS
        if name[0] != "_" and type(member) is FunctionType and not refuses:
            member.__qualname__ = f"Tensor.{name}"
            if name == "inner":  # which in PyTorch is a product
                usage("px.vecdot(x, y)  # of vectors; x @ y.mT of matrices")(member)
            setattr(Tensor, name, explained(member))
    for owner in (_creation, _functions, _standard, Tensor):
        hide_refused(vars(owner).values())
    provide("numpy", Numpy)
    seal()
    reserve(_clash)
    promised_by(promised)
    on_declare(_add_method)
    on_declare(add_op)
    depend_on(registry_mark)


def _let_calls_reach(function: FunctionType, start: int) -> None:
    """Let calls without what they have to give reach the function, which says more than Python.

    A keyword of another library stands for an argument that is missing then.
    """
    code = function.__code__
    count = code.co_argcount - start
    named = code.co_varnames[code.co_argcount :][: code.co_kwonlyargcount]
    function.__kwdefaults__ = dict.fromkeys(named, REQUIRED) | (function.__kwdefaults__ or {})
    own = function.__defaults__ or ()
    function.__defaults__ = (REQUIRED,) * (count - len(own)) + own


def _clash(op: Op) -> str | None:
    """Why an op may not have its name, if so."""
    if _has_method(op) and hasattr(Tensor, op.name) and op.name not in _added:
        return f"Tensor has a method {op.name!r} already; method=False makes it a function alone"
    return None


def _has_method(op: Op) -> bool:
    operands = op.signature.operands
    return op.method and bool(operands) and not operands[0].variadic


def _add_method(op: Op) -> None:
    """A method for an op that a user declares."""
    if not _has_method(op):
        if op.name in _added:  # by the op that this one takes the place of
            _added.discard(op.name)
            delattr(Tensor, op.name)
        return

    def method(self: Tensor[Any], *args: Any, **kwargs: Any) -> Any:
        return op(self, *args, **kwargs)

    method.__name__ = op.name
    method.__doc__ = op.doc
    setattr(Tensor, op.name, method)
    _added.add(op.name)
