"""Complex numbers as two tensors, and their arithmetic."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ._dtype import DType
from ._errors import ArgumentError, DTypeError, KindError
from ._number import Number
from ._tensor import Tensor

_PARTS = "px.fft.Spectrum(px.asarray(z.real), px.asarray(z.imag))"


class Spectrum(NamedTuple):
    """Complex numbers as two tensors of one shape; they add, multiply and divide as such.

    Attributes:
        real: the real parts.
        imag: the imaginary parts.

    Example:
        >>> z = Spectrum(asarray([3.0]), asarray([4.0]))
        >>> (z * z.conj()).real.tolist(), abs(z).tolist(), (z * 1j).imag.tolist()
        ([25.0], [5.0], [3.0])
    """

    real: Tensor
    imag: Tensor

    @property
    def dtype(self) -> DType:
        """The type of the parts."""
        return self.real.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the parts."""
        return self.real.shape

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
        """Return a complex array of NumPy."""
        made: np.ndarray[Any, Any] = self.real.numpy() + 1j * self.imag.numpy()
        return made

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return np.asarray(self.numpy(), dtype)

    def __abs__(self) -> Tensor:
        return self.abs()

    def __neg__(self) -> Spectrum:
        return Spectrum(-self.real, -self.imag)

    def __add__(self, other: Any, /) -> Spectrum:
        real, imag = _parts("add", other)
        return Spectrum(self.real + real, self.imag if imag is None else self.imag + imag)

    def __radd__(self, other: Any, /) -> Spectrum:
        return self + other

    def __sub__(self, other: Any, /) -> Spectrum:
        real, imag = _parts("subtract", other)
        return Spectrum(self.real - real, self.imag if imag is None else self.imag - imag)

    def __rsub__(self, other: Any, /) -> Spectrum:
        return -self + other

    def __mul__(self, other: Any, /) -> Spectrum:
        real, imag = _parts("multiply", other)
        if imag is None:
            return Spectrum(self.real * real, self.imag * real)
        return Spectrum(self.real * real - self.imag * imag, self.real * imag + self.imag * real)

    def __rmul__(self, other: Any, /) -> Spectrum:
        return self * other

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


def _portion(part: Tensor, size: Tensor) -> Tensor:
    """A part of numbers by their larger part: 1 or -1 for an infinity of an infinity."""
    infinite = size.isinf()
    sign = part.isinf().where(part.sign(), part.zeros())
    return infinite.where(sign, part / infinite.where(1.0, size))


def _parts(op: str, value: Any) -> tuple[Any, Any]:
    """Real parts, and imaginary parts where there are some.

    Raises:
        ArgumentError: for what is no number, tensor or pair of them.
    """
    if isinstance(value, Spectrum):
        return value.real, value.imag
    if isinstance(value, complex):
        return value.real, value.imag
    if isinstance(value, Tensor | Number | bool | int | float):
        return value, None
    expected, hint = "a Spectrum, a Tensor or a number", _PARTS
    raise ArgumentError(
        op, "not complex numbers", got=type(value).__name__, expected=expected, hint=hint
    )


def check_floats(op: str, x: Tensor) -> None:
    """Refuse whole numbers by the name of the call.

    Raises:
        KindError: for them.
    """
    if x.dtype.kind != "Float":
        got, hint = f"{x.dtype.kind} ({x.dtype})", 'x.astype("float32")'
        raise KindError(op, "not of floats", got=got, expected="Float", hint=hint)


Complex = Tensor | tuple[Tensor, Tensor]


def as_pair(op: str, x: Complex) -> Spectrum:
    """Real numbers with imaginary parts of 0, a pair as it is.

    Raises:
        ArgumentError: for anything else.
        DTypeError: for a complex array of NumPy, or of another library.
    """
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
    return Spectrum(*given)


def _no_pair(op: str, given: Any) -> ArgumentError:
    expected = "a tensor, or a pair of real and imaginary parts"
    hint = "px.asarray(x)" if hasattr(given, "__array__") else None
    return ArgumentError(
        op, "not complex numbers", got=type(given).__name__, expected=expected, hint=hint
    )
