"""Complex numbers as two tensors, and their arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn

import numpy as np

from .._device.backend import Backend
from .._errors.classes import (
    ArgumentError,
    DTypeError,
    KindError,
    ShapeError,
    UnknownNameError,
    WrongTypeError,
)
from .._values.dtype import DType, DTypeLike, float64
from .._values.kinds import Bool
from .._values.number import Scalar
from .._values.tensor import Tensor
from ..no_operand import NoOperand, refused_operand

_PARTS = "px.fft.Spectrum(px.asarray(z.real), px.asarray(z.imag))"

# What is done to both parts alike.
_BY_PARTS: Final = {
    "T", "broadcast_to", "cumsum", "detach", "diagonal", "expand_dims", "flatten", "flip",
    "moveaxis", "pad", "permute_dims", "ravel", "repeat", "roll", "squeeze", "swapaxes", "take",
    "tile", "zeros",
}  # fmt: skip


class _Pair(NamedTuple):
    real: Tensor
    imag: Tensor


class Spectrum(_Pair):
    """Complex numbers as two tensors of one shape; they add, multiply and divide as such.

    ``==`` and ``!=`` compare element by element; there is no order.
    An index takes the same elements of both; ``real, imag = z`` and ``z.real`` take them apart.

    Attributes:
        real: the real parts.
        imag: the imaginary parts.

    Raises:
        DTypeError: for parts of two types.
        ShapeError: for parts of two shapes.
        WrongTypeError: for a missing part, or a tensor with something else.

    Example:
        >>> z = Spectrum(asarray([3.0]), asarray([4.0]))
        >>> (z * z.conj()).real.tolist(), abs(z).tolist(), (z * 1j).imag.tolist()
        ([25.0], [5.0], [3.0])
    """

    __slots__ = ()

    def __new__(cls, real: Tensor, imag: Tensor | None = None) -> Spectrum:
        """Two tensors of one shape and type."""
        for name, part in (("real", real), ("imag", imag)):
            if not isinstance(part, Tensor):
                got, hint = type(part).__name__, "px.fft.Spectrum(x, px.zeros_like(x))"
                raise WrongTypeError(
                    "Spectrum", f"{name} is not a tensor", got=got, expected="a Tensor", hint=hint
                )
            _require_alike("Spectrum", real, part)
        return super().__new__(cls, real, imag)  # type: ignore[arg-type] # looked at above

    def __getitem__(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, index: Any
    ) -> Spectrum:
        """Return elements, with their real and imaginary parts."""
        return Spectrum(self.real[index], self.imag[index])

    if not TYPE_CHECKING:  # a checker knows which attributes there are

        def __getattr__(self, name: str) -> Any:
            """Say what to type for what only tensors have."""
            hint = None
            if hasattr(Tensor, name) and not name.startswith("_"):
                call = "()" if callable(getattr(Tensor, name)) else ""
                hint = f"px.fft.Spectrum(z.real.{name}{call}, z.imag.{name}{call})"
                hint = hint if name in _BY_PARTS else f"z.abs(), z.real or z.imag, then .{name}"
            raise UnknownNameError(name, "no such attribute of a Spectrum", hint=hint)

    @property
    def dtype(self) -> DType:
        """The type of the parts."""
        return self.real.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the parts."""
        return self.real.shape

    @property
    def ndim(self) -> int:
        """How many axes the parts have."""
        return self.real.ndim

    @property
    def size(self) -> int:
        """How many numbers there are."""
        return self.real.size

    @property
    def device(self) -> Backend:
        """Where the parts are."""
        return self.real.device

    @property
    def mT(self) -> Spectrum:
        """The last two axes swapped."""
        return Spectrum(self.real.mT, self.imag.mT)

    def astype(self, dtype: DTypeLike) -> Spectrum:
        """Return the parts in another float type."""
        return Spectrum(self.real.astype(dtype), self.imag.astype(dtype))

    def to_full_precision(self) -> Spectrum:
        """Return narrow floats as float32, anything else as it is."""
        return spectrum(self.real.to_full_precision(), self.imag.to_full_precision())

    def to_device(self, device: Backend | str) -> Spectrum:
        """Return the parts on another device."""
        return Spectrum(self.real.to_device(device), self.imag.to_device(device))

    def reshape(self, *shape: Any) -> Spectrum:
        """Return the numbers in another shape, as ``Tensor.reshape``."""
        return Spectrum(self.real.reshape(*shape), self.imag.reshape(*shape))

    def sum(self, axis: int | Sequence[int] | None = None, *, keepdims: bool = False) -> Spectrum:
        """Return the sum along axes, of all numbers by default.

        Example:
            >>> Spectrum(asarray([3.0, 1.0]), asarray([4.0, 0.0])).sum().real.item()
            4.0
        """
        return Spectrum(*(part.sum(axis=axis, keepdims=keepdims) for part in self))

    def mean(self, axis: int | Sequence[int] | None = None, *, keepdims: bool = False) -> Spectrum:
        """Return the mean along axes, of all numbers by default."""
        return Spectrum(*(part.mean(axis=axis, keepdims=keepdims) for part in self))

    def abs(self) -> Tensor:
        """Return the absolute values.

        Example:
            >>> Spectrum(asarray([3.0]), asarray([4.0])).abs().tolist()
            [5.0]
        """
        return self.real.hypot(self.imag)

    def angle(self) -> Tensor:
        """Return the angles from the positive real numbers, in radians from -π to π."""
        return self.imag.atan2(self.real)

    def conj(self) -> Spectrum:
        """Return the complex conjugates."""
        return Spectrum(self.real, -self.imag)

    def numpy(self) -> np.ndarray[Any, Any]:
        """Return a complex array of NumPy, complex64 but for parts in float64."""
        # By parts: a product with 1j makes nan of an infinity, and 0.0 of -0.0.
        made = np.empty(self.shape, np.complex128 if self.dtype is float64 else np.complex64)
        made.real, made.imag = self.real.numpy(), self.imag.numpy()
        return made

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        if copy is False:
            raise ValueError("[array] a copy is needed: got two tensors, expected a complex array")
        return np.asarray(self.numpy(), dtype)

    __hash__ = object.__hash__

    def __eq__(self, other: object, /) -> Tensor[Bool]:  # type: ignore[override]
        parts = _compared("equal", other)
        if parts is None:
            return NotImplemented
        return (self.real == parts[0]) & (self.imag == parts[1])

    def __ne__(self, other: object, /) -> Tensor[Bool]:  # type: ignore[override]
        parts = _compared("not_equal", other)
        if parts is None:
            return NotImplemented
        return (self.real != parts[0]) | (self.imag != parts[1])

    def __lt__(self, other: object, /) -> NoReturn:
        raise _no_order("less")

    def __le__(self, other: object, /) -> NoReturn:
        raise _no_order("less_equal")

    def __gt__(self, other: object, /) -> NoReturn:
        raise _no_order("greater")

    def __ge__(self, other: object, /) -> NoReturn:
        raise _no_order("greater_equal")

    def __abs__(self) -> Tensor:
        return self.abs()

    def __neg__(self) -> Spectrum:
        return Spectrum(-self.real, -self.imag)

    def __add__(self, other: Any, /) -> Spectrum:
        real, imag = _parts("add", other)
        return Spectrum(self.real + real, self.imag + (_nothing(real) if imag is None else imag))

    def __radd__(self, other: Any, /) -> Spectrum:
        return self + other

    def __sub__(self, other: Any, /) -> Spectrum:
        real, imag = _parts("subtract", other)
        return Spectrum(self.real - real, self.imag - (_nothing(real) if imag is None else imag))

    def __rsub__(self, other: Any, /) -> Spectrum:
        return -self + other

    def __mul__(self, other: Any, /) -> Spectrum:
        real, imag = _parts("multiply", other)
        if imag is None:
            return Spectrum(self.real * real, self.imag * real)
        return Spectrum(self.real * real - self.imag * imag, self.real * imag + self.imag * real)

    def __rmul__(self, other: Any, /) -> Spectrum:
        return self * other

    def __matmul__(self, other: Any, /) -> Spectrum:
        real, imag = _parts("matmul", other)
        if imag is None:
            return Spectrum(self.real @ real, self.imag @ real)
        return Spectrum(self.real @ real - self.imag @ imag, self.real @ imag + self.imag @ real)

    def __rmatmul__(self, other: Any, /) -> Spectrum:
        real, _ = _parts("matmul", other)
        return Spectrum(real @ self.real, real @ self.imag)

    def __pow__(self, power: int, /) -> Spectrum:
        if type(power) is not int or power < 1:
            expected, hint = "an integer above 0", "1 / z**2"
            raise ArgumentError("pow", "no such power", got=power, expected=expected, hint=hint)
        out = self
        for bit in bin(power)[3:]:
            out = out * out
            out = out * self if bit == "1" else out
        return out

    def __truediv__(self, other: Any, /) -> Spectrum:
        real, imag = _parts("divide", other)
        if imag is None:
            divisor = real if isinstance(real, Tensor) else self.real.zeros() + real
            return Spectrum(self.real / divisor, self.imag / divisor)
        if not isinstance(real, Tensor):
            real, imag = (self.real.zeros() + part for part in (real, imag))
        # By the larger part, so that no square leaves the range of the numbers.
        size = real.abs().maximum(imag.abs())
        near, far = _portion(real, size), _portion(imag, size)
        above = self * Spectrum(near, -far)
        below = size * (near * near + far * far)
        return Spectrum(above.real / below, above.imag / below)

    def __rtruediv__(self, other: Any, /) -> Spectrum:
        real, imag = _parts("divide", other)
        given = Spectrum(*(self.real.zeros() + (0.0 if n is None else n) for n in (real, imag)))
        return given / self


# NumPy leaves arithmetic to the class; in its body this would be a field.
Spectrum.__array_ufunc__ = None  # type: ignore[attr-defined]


def spectrum(real: Tensor, imag: Tensor) -> Spectrum:
    """Two tensors that are known to be alike."""
    return tuple.__new__(Spectrum, (real, imag))


def _compared(op: str, other: Any) -> tuple[Any, Any] | None:
    """Parts to compare with, None for what is no number, and so equals none.

    Raises:
        ArgumentError: for an array, or numbers in a list.
    """
    if isinstance(other, Spectrum | Tensor | Scalar | complex | list | tuple) or hasattr(
        other, "__array__"
    ):
        real, imag = _parts(op, other)
        return real, 0.0 if imag is None else imag
    return None


def _no_order(op: str) -> WrongTypeError:
    got, expected, hint = "a Spectrum", "real numbers", "z.abs(), z.real or z.imag, then compare"
    return WrongTypeError(
        op, "complex numbers have no order", got=got, expected=expected, hint=hint
    )


def _nothing(real: Any) -> Any:
    """The imaginary part of a real operand: 0, of its shape and type."""
    return real.zeros() if isinstance(real, Tensor) else 0.0


def _require_alike(op: str, real: Tensor, imag: Tensor) -> None:
    """Hold the parts to one shape and type."""
    if real.shape != imag.shape:
        raise ShapeError(op, "parts differ", got=imag.shape, expected=real.shape)
    if real.dtype is not imag.dtype:
        hint = f'imag.astype("{real.dtype}")'
        raise DTypeError(op, "parts differ", got=imag.dtype, expected=real.dtype, hint=hint)


def _portion(part: Tensor, size: Tensor) -> Tensor:
    """A part of numbers by their larger part: 1 or -1 for an infinity of an infinity."""
    infinite = size.isinf()
    sign = part.isinf().where(part.sign(), part.zeros())
    return infinite.where(sign, part / infinite.where(1.0, size))


def _parts(op: str, value: Any) -> tuple[Any, Any]:
    """Real parts, and imaginary parts where there are some."""
    if isinstance(value, Spectrum):
        return value.real, value.imag
    if isinstance(value, complex):
        return value.real, value.imag
    if isinstance(value, Tensor | Scalar):
        return value, None
    expected, hint = "a Spectrum, a Tensor or a number", _PARTS
    raise ArgumentError(
        op, "not complex numbers", got=type(value).__name__, expected=expected, hint=hint
    )


def check_floats(op: str, x: Tensor, name: str = "x") -> None:
    """Refuse whole numbers, and what is no tensor, by the name of the call.

    Raises:
        KindError: for whole numbers.
        WrongTypeError: for what is no tensor.
    """
    given: Any = x  # as type checkers cannot know it
    if isinstance(given, NoOperand):
        raise refused_operand(op, given)
    if not isinstance(given, Tensor):
        parts = f"{name}.abs(), {name}.real or {name}.imag"
        hint = parts if isinstance(given, Spectrum) else f"px.asarray({name})"
        what, got = f"{name} is not a tensor", type(given).__name__
        raise WrongTypeError(op, what, got=got, expected="a Tensor", hint=hint)
    if x.dtype.kind != "Float":
        got, hint = f"{x.dtype.kind} ({x.dtype})", f'{name}.astype("float32")'
        raise KindError(op, "not of floats", got=got, expected="Float", hint=hint)


Complex = Tensor | tuple[Tensor, Tensor]


def as_pair(op: str, x: Complex) -> Spectrum:
    """Real numbers with imaginary parts of 0, a pair as it is.

    Raises:
        ArgumentError: for anything else.
    """
    if isinstance(x, Spectrum):
        return x
    if isinstance(x, Tensor):
        return Spectrum(x, x.zeros())
    given: Any = x  # as type checkers cannot know it
    if "complex" in str(getattr(given, "dtype", "")):
        raise DTypeError(
            op,
            "no tensor is complex",
            got=str(given.dtype),
            expected="a pair of tensors",
            hint=_PARTS,
        )
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise _no_pair(op, given)
    if not all(isinstance(part, Tensor) for part in given):
        raise _no_pair(op, given)
    _require_alike(op, *given)
    return Spectrum(*given)


def _no_pair(op: str, given: Any) -> ArgumentError:
    expected = "a tensor, or a pair of real and imaginary parts"
    hint = "px.asarray(x)" if hasattr(given, "__array__") else None
    return ArgumentError(
        op, "not complex numbers", got=type(given).__name__, expected=expected, hint=hint
    )
