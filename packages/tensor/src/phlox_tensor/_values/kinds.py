"""The kinds of tensors, as types for annotations, and the kind sets that signatures name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Generic, final

__all__ = [
    "KIND_SETS",
    "AnyKind",
    "BitsKind",
    "Bool",
    "Float",
    "Generic",
    "Int",
    "K",
    "Kind",
    "NumKind",
]

if TYPE_CHECKING:
    from typing_extensions import TypeVar
else:
    from typing import TypeVar as _TypeVar

    def TypeVar(name, *constraints, default=None, **options):  # noqa: ANN001, ANN002, ANN003, ANN202
        # ``default=`` reaches typing.TypeVar with Python 3.13; type checkers know it already.
        return _TypeVar(name, *constraints, **options)


class Kind:
    """Base of the three kinds. Kinds are only written in annotations, never made."""


@final
class Float(Kind):
    """Tensors of float16, bfloat16, float32, float64."""


@final
class Int(Kind):
    """Tensors of signed and unsigned integers."""


@final
class Bool(Kind):
    """Tensors of truth values."""


K = TypeVar("K", bound=Kind, default=Float)
AnyKind = TypeVar("AnyKind", Float, Int, Bool)
BitsKind = TypeVar("BitsKind", Int, Bool)
NumKind = TypeVar("NumKind", Float, Int)

KIND_SETS: Final[dict[str, frozenset[str]]] = {
    "Any": frozenset({"Float", "Int", "Bool"}),
    "Bits": frozenset({"Int", "Bool"}),
    "Bool": frozenset({"Bool"}),
    "Float": frozenset({"Float"}),
    "Int": frozenset({"Int"}),
    "Num": frozenset({"Float", "Int"}),
    "Whole": frozenset({"Int"}),  # beside Int: each side keeps its type
}
