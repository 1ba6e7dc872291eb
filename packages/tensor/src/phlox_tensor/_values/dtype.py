"""Element types: one object per type, their kinds, and the promotion table."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, Final, Literal, Protocol, cast, final

import numpy as np

from .._errors.classes import DTypeError, KindError
from .number import Number, Scalar, call, plain

KindName = Literal["Float", "Int", "Bool"]


@final
class DType:
    """An element type, such as ``float32``. Compare with ``is`` or ``==``, also with its name.

    Attributes:
        name: the array API name.
        kind: ``"Float"``, ``"Int"`` (signed and unsigned) or ``"Bool"``.
        itemsize: bytes per element.
        numpy: the NumPy dtype with the same bits.
    """

    __slots__ = ("_hash", "itemsize", "kind", "name", "numpy")

    numpy: np.dtype[Any]

    def __init__(self, name: str, kind: KindName, numpy_dtype: np.dtype[Any]) -> None:
        """Make the one object of this type; users take it from the package."""
        self.name: Final = name
        self._hash = hash(name)  # that of what is equal
        self.kind: Final = kind
        self.itemsize: Final = numpy_dtype.itemsize
        if name != "bfloat16":  # see __getattr__
            self.numpy = numpy_dtype

    def __getattr__(self, name: str) -> Any:
        """Give the NumPy dtype of bfloat16, which another package has, only at its first use.

        Raises:
            DTypeError: that package is not installed.
        """
        if name != "numpy":
            raise AttributeError(f"a DType has no {name}", name=name, obj=self)
        self.numpy = np.dtype(_bfloat16_package().bfloat16)
        return self.numpy

    def __eq__(self, other: object) -> bool:
        return self is other or (type(other) is str and other == self.name)

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"phlox_tensor.{self.name}"

    def __str__(self) -> str:
        return self.name

    @property
    def signed(self) -> bool:
        """Whether the type holds negative numbers."""
        return self.kind == "Float" or self.name.startswith("int")


def _bfloat16_package() -> Any:  # it carries no annotations
    try:
        return import_module("ml_dtypes")
    except ImportError as error:
        what = "NumPy has no bfloat16, and the package that has is not installed"
        hint = "pip install ml_dtypes"
        raise DTypeError("bfloat16", what, got=str(error), hint=hint) from None


def _make(name: str, kind: KindName) -> DType:
    return DType(name, kind, np.dtype("uint16" if name == "bfloat16" else name))


bfloat16: Final = _make("bfloat16", "Float")
bool_: Final = _make("bool", "Bool")
float16: Final = _make("float16", "Float")
float32: Final = _make("float32", "Float")
float64: Final = _make("float64", "Float")
int16: Final = _make("int16", "Int")
int32: Final = _make("int32", "Int")
int64: Final = _make("int64", "Int")
int8: Final = _make("int8", "Int")
uint16: Final = _make("uint16", "Int")
uint32: Final = _make("uint32", "Int")
uint64: Final = _make("uint64", "Int")
uint8: Final = _make("uint8", "Int")

DTYPES: Final[dict[str, DType]] = {
    d.name: d
    for d in (
        float16,
        bfloat16,
        float32,
        float64,
        int8,
        int16,
        int32,
        int64,
        uint8,
        uint16,
        uint32,
        uint64,
        bool_,
    )
}


class _ByNumpy(dict[np.dtype[Any], DType]):
    def __missing__(self, key: np.dtype[Any]) -> DType:
        if key.name != "bfloat16":
            raise KeyError(key)
        return self.setdefault(key, bfloat16)


BY_NUMPY: Final = _ByNumpy({d.numpy: d for d in DTYPES.values() if d is not bfloat16})

DTypeLike = DType | str | type | np.dtype[Any]


class HasDType(Protocol):
    """A tensor, as far as its element type goes."""

    @property
    def dtype(self) -> DType:
        """Element type."""
        ...


# No tensor is complex.
_COMPLEX: Final = "px.fft.Spectrum(px.asarray(z.real), px.asarray(z.imag))"


def as_dtype(value: DTypeLike, op: str = "dtype") -> DType:
    """Return the DType that ``value`` names.

    Args:
        value: a DType, its name, a NumPy dtype or scalar type.
        op: the call to name in the error.

    Raises:
        DTypeError: when phlox has no such element type.

    Example:
        >>> as_dtype("float32").name
        'float32'
    """
    if isinstance(value, DType):
        return value
    if isinstance(value, str) and value in DTYPES:
        return DTYPES[value]
    try:
        if value is None:  # float64 to NumPy
            raise TypeError
        return BY_NUMPY[np.dtype(value).newbyteorder("=")]
    except (TypeError, KeyError, ValueError):
        given: object = value
        is_complex = "complex" in repr(given) or isinstance(given, complex)
        hint = _COMPLEX if is_complex else None
        raise DTypeError(
            op, "unknown element type", got=repr(value), expected=", ".join(DTYPES), hint=hint
        ) from None


def default_dtype(setting: str, value: DTypeLike, device: str) -> DType:
    """Return the default element type of a device, by its setting: ``float`` or ``int``."""
    dtype = as_dtype(value, device)
    if dtype.kind != setting.capitalize():
        names = [d.name for d in DTYPES.values() if d.kind == setting.capitalize()]
        raise DTypeError(
            device,
            f"wrong kind of default {setting}",
            got=dtype.name,
            expected=", ".join(names),
        )
    return dtype


_SIGNED: Final = {1: int8, 2: int16, 4: int32, 8: int64}


def promote(a: DType, b: DType, op: str) -> DType:
    """Return the type in which ``a`` and ``b`` meet, by the array API table inside one kind.

    float16 with bfloat16 gives float32, the smallest type that holds both.
    """
    if a is b:
        return a
    if a.kind == "Float":
        if a.itemsize == b.itemsize:
            return float32
        return a if a.itemsize > b.itemsize else b
    small, large = (a, b) if a.itemsize <= b.itemsize else (b, a)
    if small.signed == large.signed:
        return large
    unsigned = b if a.signed else a
    if large.signed and large.itemsize > unsigned.itemsize:
        return large
    wider = _SIGNED.get(2 * unsigned.itemsize)
    if wider is None:
        raise DTypeError(
            op,
            "no integer type holds both",
            got=f"{a} and {b}",
            expected="types of one signedness",
            hint=f"x.astype({(a if a.signed else b).name})",
        )
    return wider


def can_hold(value: int, dtype: DType) -> bool:
    """Whether the integer type ``dtype`` holds ``value``."""
    info = np.iinfo(dtype.numpy)
    return bool(info.min <= value <= info.max)


def number_for(value: Scalar, dtype: DType, op: str) -> Any:
    """Return a number as one of ``dtype``, for values that meet tensors of that type.

    Raises:
        KindError: a fraction, nan or an infinity for an Int type; not 0 or 1 for Bool.
        DTypeError: out of range.
    """
    if type(value) is Number:
        if dtype.kind == "Float":
            return call(float, value)
        if dtype.kind == "Int" and type(value.value) is int and value.ask(can_hold, dtype):
            return value
        return number_for(value.ask(plain), dtype, op)
    if dtype.kind == "Float":
        try:
            return float(value)
        except OverflowError:
            raise DTypeError(
                op,
                "number out of range",
                got=f"about 2**{int(value).bit_length() - 1}",
                expected=f"a value of {dtype}",
            ) from None
    if isinstance(value, float) and not value.is_integer():  # nan and infinities are none either
        raise KindError(op, "not a whole number", got=value, expected=f"a value of {dtype}")
    whole = int(value)
    if dtype.kind == "Bool":
        if whole not in (0, 1):
            raise KindError(op, "not a truth value", got=value, expected="True or False")
        return bool(whole)
    if not can_hold(whole, dtype):
        raise DTypeError(op, "number out of range", got=value, expected=f"a value of {dtype}")
    return whole


@final
@dataclass(frozen=True, slots=True)
class FloatLimits:
    """Limits of a float type, as Python floats; ``bits`` is its width."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    smallest_subnormal: float
    dtype: DType


@final
@dataclass(frozen=True, slots=True)
class IntLimits:
    """Limits of an integer type; ``bits`` is its width."""

    bits: int
    max: int
    min: int
    dtype: DType


def finfo(type: DTypeLike | HasDType, /) -> FloatLimits:
    """Return the limits of a float type, or of that of a tensor.

    Raises:
        KindError: for a type that is no float.

    Example:
        >>> finfo(float16).eps
        0.0009765625
    """
    return _limits_of(_of_kind(type, "Float", "finfo"))


@cache  # formulas ask in each call
def _limits_of(dtype: DType) -> FloatLimits:
    found = (_bfloat16_package() if dtype is bfloat16 else np).finfo(dtype.numpy)
    return FloatLimits(
        8 * dtype.itemsize,
        float(found.eps),
        float(found.max),
        float(found.min),
        float(found.smallest_normal),
        float(found.smallest_subnormal),
        dtype,
    )


def iinfo(type: DTypeLike | HasDType, /) -> IntLimits:
    """Return the limits of an integer type, or of that of a tensor.

    Raises:
        KindError: for a type that is no integer.

    Example:
        >>> iinfo(int8).max
        127
    """
    dtype = _of_kind(type, "Int", "iinfo")
    found = np.iinfo(dtype.numpy)
    return IntLimits(8 * dtype.itemsize, int(found.max), int(found.min), dtype)


def _of_kind(given: DTypeLike | HasDType, kind: KindName, op: str) -> DType:
    own = getattr(given, "dtype", None)
    found = own if isinstance(own, DType) else as_dtype(cast(DTypeLike, given), op)
    if found.kind != kind:
        names = ", ".join(d.name for d in DTYPES.values() if d.kind == kind)
        raise KindError(op, "a type of another kind", got=found, expected=names)
    return found
