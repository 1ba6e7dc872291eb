"""Classes whose objects refuse operators and members of tensors, such as modules."""

from __future__ import annotations

from collections.abc import Callable
from inspect import getattr_static
from typing import Any, ClassVar, Final, Never

from numpy import generic, ndarray

from ._errors.classes import UnknownNameError, WrongTypeError
from ._values.tensor import Tensor

# By the names of Python's methods; those of two operands are reflected too.
_BINARY: Final = {
    "add": "+",
    "and": "&",
    "divmod": "divmod",
    "floordiv": "//",
    "lshift": "<<",
    "matmul": "@",
    "mod": "%",
    "mul": "*",
    "or": "|",
    "pow": "**",
    "rshift": ">>",
    "sub": "-",
    "truediv": "/",
    "xor": "^",
}
_COMPARED: Final = {"ge": ">=", "gt": ">", "le": "<=", "lt": "<"}
_UNARY: Final = {
    "abs": "abs",
    "complex": "complex",
    "float": "float",
    "int": "int",
    "invert": "~",
    "neg": "-",
    "pos": "+",
}


class NoOperand:
    """Base of what holds tensors and is none: operators with tensors and numbers are errors.

    Attributes:
        tensor_code: the code that gives the tensor that was meant.
    """

    __slots__ = ()
    __array_ufunc__ = None  # so that NumPy asks here

    tensor_code: ClassVar[str]

    def __array__(self, dtype: object = None, copy: object = None) -> Never:
        """Refuse, where NumPy would make an array of an object."""
        del dtype, copy
        raise refused_operand("asarray", self)

    def __round__(self, digits: object = None) -> Never:
        del digits
        raise refused_operand("round", self)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Tensor | ndarray):
            raise refused_operand("==", self, other)
        return NotImplemented

    def __ne__(self, other: object) -> bool:
        if isinstance(other, Tensor | ndarray):
            raise refused_operand("!=", self, other)
        return NotImplemented

    __hash__ = object.__hash__


_OPERANDS: Final = (NoOperand, Tensor, bool, complex, float, generic, int, ndarray)


def refused_operand(op: str, holder: NoOperand, other: object = None) -> WrongTypeError:
    """Return the error for a call that takes tensors, and got what holds some."""
    kind = type(holder).__name__
    return WrongTypeError(
        op,
        f"a {kind} is no tensor",
        got=kind if other is None else f"{kind} and {type(other).__name__}",
        expected="tensors and numbers",
        hint=holder.tensor_code,
    )


def _binary(sign: str) -> Callable[[NoOperand, object], Any]:
    def refuse(self: NoOperand, other: object) -> Any:
        if isinstance(other, _OPERANDS):
            raise refused_operand(sign, self, other)
        return NotImplemented  # another type may take modules

    return refuse


def _unary(sign: str) -> Callable[[NoOperand], Never]:
    def refuse(self: NoOperand) -> Never:
        raise refused_operand(sign, self)

    return refuse


for _name, _sign in _BINARY.items():
    setattr(NoOperand, f"__{_name}__", _binary(_sign))
    setattr(NoOperand, f"__r{_name}__", _binary(_sign))
for _name, _sign in _COMPARED.items():
    setattr(NoOperand, f"__{_name}__", _binary(_sign))
for _name, _sign in _UNARY.items():
    setattr(NoOperand, f"__{_name}__", _unary(_sign))


class Refusal:
    """Base of what stands on a class for a name that it lacks, so that nothing lists it."""

    __slots__ = ()


class _TensorMember(Refusal):
    """Stands on a class for a member of tensors: reading it raises the error that says more."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        """Say which member."""
        self._name = name

    def __get__(self, instance: NoOperand | None, owner: type) -> Never:
        if instance is None:
            raise AttributeError(f"type object {owner.__name__!r} has no attribute {self._name!r}")
        try:
            getattr(Tensor, self._name)
            code = f"{instance.tensor_code}.{self._name}"
        except UnknownNameError as error:  # a name of another library, for which a tensor has ours
            code = str(error.hint).replace("x.", f"{instance.tensor_code}.", 1)
        what = f"a {owner.__name__} holds a tensor, and is none"
        raise UnknownNameError(self._name, what, hint=code)


def is_refusal(cls: type, name: str) -> bool:
    """Whether all that a class does at a name is to refuse it."""
    member = getattr_static(cls, name, None)
    own = getattr(member, "__module__", None) == __name__ and member.__name__ == "refuse"
    return isinstance(member, Refusal) or own


def hint_at_members(cls: type[NoOperand]) -> None:
    """Put a hint on a class for each member of tensors that it lacks."""
    for name in dir(Tensor):
        if not name.startswith("_") and not hasattr(cls, name):
            setattr(cls, name, _TensorMember(name))

    def listed(self: object) -> list[str]:
        names = object.__dir__(self)
        return sorted(
            n for n in names if not isinstance(getattr_static(self, n, None), _TensorMember)
        )

    setattr(cls, "__dir__", listed)  # noqa: B010 - checkers know only the one of object
