"""Fourier transforms of real numbers and of pairs of real and imaginary parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import sqrt
from typing import Any, TypeVar

from .. import ops
from .._data.creation import arange
from .._data.spectrum import Complex, Spectrum, as_pair, check_floats, spectrum
from .._device.backend import Backend
from .._errors.called import as_called
from .._errors.classes import ArgumentError, ShapeError
from .._op.attributes import NORMALIZERS, normalize_axis
from .._random.parameters import of_the_result
from .._values.dtype import DType, DTypeLike
from .._values.tensor import Tensor
from ..ops import movement

Axes = Sequence[int] | None
Sizes = Sequence[int] | None
Shifted = TypeVar("Shifted", Tensor[Any], Spectrum)
_NORMS = ("backward", "forward", "ortho")


@as_called
def fft(x: Complex, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Spectrum:
    """Return the transform along an axis: ``Σ x[j]·exp(-2πi·j·k/n)``.

    Args:
        x: a tensor of real numbers, or a pair.
        n: length of the axis: cut off, or filled with zeros; its size by default.
        axis: along which.
        norm: where the factor 1/n stands: ``"backward"``, ``"forward"``, or half ``"ortho"`` each.

    Raises:
        ArgumentError: for another norm.
        ShapeError: for a length below 1, or an axis that is not there.

    Example:
        >>> fft(asarray([1.0, 0.0, 0.0])).real.tolist()
        [1.0, 1.0, 1.0]
    """
    return _transformed("fft", x, n, axis, norm, inverse=False)


@as_called
def ifft(
    x: Complex, /, *, n: int | None = None, axis: int = -1, norm: str = "backward"
) -> Spectrum:
    """Return the inverse of ``fft``.

    Example:
        >>> ifft(fft(asarray([1.0, 0.0]))).real.tolist()
        [1.0, 0.0]
    """
    return _transformed("ifft", x, n, axis, norm, inverse=True)


@as_called
def fftn(x: Complex, /, *, s: Sizes = None, axes: Axes = None, norm: str = "backward") -> Spectrum:
    """Return the transform along several axes, all by default.

    Example:
        >>> fftn(ones((2, 2))).real.tolist()
        [[4.0, 0.0], [0.0, 0.0]]
    """
    return _along_each("fftn", fft, x, s, axes, norm)


@as_called
def ifftn(x: Complex, /, *, s: Sizes = None, axes: Axes = None, norm: str = "backward") -> Spectrum:
    """Return the inverse of ``fftn``.

    Example:
        >>> ifftn(fftn(ones((2, 2)))).real.tolist()
        [[1.0, 1.0], [1.0, 1.0]]
    """
    return _along_each("ifftn", ifft, x, s, axes, norm)


@as_called
def rfft(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Spectrum:
    """Return the first n//2 + 1 of ``fft(x)``, which tell the others where x is real.

    Example:
        >>> rfft(asarray([1.0, 2.0, 3.0, 2.0])).real.tolist()
        [8.0, -2.0, 0.0]
    """
    check_floats("rfft", x)
    place = normalize_axis(axis, "rfft", x.ndim)
    x = _sized("rfft", x, n, place)
    factor = _factor("rfft", x.shape[place], norm, inverse=False)
    real, imag = ops.dft(_room(x, factor), None, place, False, True)
    return _scaled(real, imag, factor, x.dtype)


@as_called
def irfft(x: Complex, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """Return the real numbers whose ``rfft`` is x.

    Args:
        x: a pair, or only real parts.
        n: how many; by default twice one less than the size of x.
        axis: along which.
        norm: as of ``fft``.

    Example:
        >>> irfft(rfft(asarray([1.0, 2.0, 3.0, 2.0]))).tolist()
        [1.0, 2.0, 3.0, 2.0]
    """
    given = as_pair("irfft", x)
    place = normalize_axis(axis, "irfft", given.real.ndim)
    count = 2 * (given.real.shape[place] - 1) if n is None else n
    _require_length("irfft", count)
    factor = _factor("irfft", count, norm, inverse=True)
    real, imag = (_room(_sized("irfft", part, count // 2 + 1, place), factor) for part in given)
    return _times(ops.irdft(real, imag, place, count), factor, given.dtype)


@as_called
def rfftn(x: Tensor, /, *, s: Sizes = None, axes: Axes = None, norm: str = "backward") -> Spectrum:
    """Return ``rfft`` along the last of the axes, then ``fft`` along the others.

    Example:
        >>> rfftn(ones((2, 4))).real.shape
        (2, 3)
    """
    check_floats("rfftn", x)
    *others, (n, axis) = _each("rfftn", x, s, axes)
    out = rfft(x.to_full_precision(), n=n, axis=axis, norm=norm)
    for size, place in reversed(others):
        out = fft(out, n=size, axis=place, norm=norm)
    return out.astype(x.dtype)


@as_called
def irfftn(x: Complex, /, *, s: Sizes = None, axes: Axes = None, norm: str = "backward") -> Tensor:
    """Return the inverse of ``rfftn``.

    Example:
        >>> irfftn(rfftn(ones((2, 4)))).shape
        (2, 4)
    """
    *others, (_, axis) = _each("irfftn", x, s, axes)
    given = as_pair("irfftn", x)
    out = given.to_full_precision()
    for size, place in others:
        out = ifft(out, n=size, axis=place, norm=norm)
    found = irfft(out, n=None if s is None else s[-1], axis=axis, norm=norm)
    return found.astype(given.dtype)


@as_called
def hfft(x: Complex, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """Return the real transform of numbers of which x is one half: each other is a conjugate.

    Example:
        >>> hfft(Spectrum(asarray([1.0, 1.0]), asarray([0.0, 0.0]))).tolist()
        [2.0, 0.0]
    """
    given = as_pair("hfft", x)
    return irfft(Spectrum(given.real, -given.imag), n=n, axis=axis, norm=_turned("hfft", norm))


@as_called
def ihfft(
    x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward"
) -> Spectrum:
    """Return the inverse of ``hfft``.

    Example:
        >>> ihfft(asarray([2.0, 0.0])).real.tolist()
        [1.0, 1.0]
    """
    found = rfft(x, n=n, axis=axis, norm=_turned("ihfft", norm))
    return Spectrum(found.real, -found.imag)


@as_called
def fftfreq(
    n: int,
    /,
    *,
    d: float = 1.0,
    dtype: DTypeLike | None = None,
    device: Backend | str | None = None,
) -> Tensor:
    """Return the frequencies of ``fft``, in cycles for each unit of the distance ``d`` of samples.

    Example:
        >>> fftfreq(4).tolist()
        [0.0, 0.25, -0.5, -0.25]
    """
    _require_length("fftfreq", n)
    _require_distance("fftfreq", d)
    places: Any = arange(n, device=device)
    places = places - (places > (n - 1) // 2).astype(places.dtype) * n
    return _spaced("fftfreq", places, 1.0 / (n * d), dtype)


@as_called
def rfftfreq(
    n: int,
    /,
    *,
    d: float = 1.0,
    dtype: DTypeLike | None = None,
    device: Backend | str | None = None,
) -> Tensor:
    """Return the frequencies of ``rfft``.

    Example:
        >>> rfftfreq(4).tolist()
        [0.0, 0.25, 0.5]
    """
    _require_length("rfftfreq", n)
    _require_distance("rfftfreq", d)
    return _spaced("rfftfreq", arange(n // 2 + 1, device=device), 1.0 / (n * d), dtype)


@as_called
def fftshift(x: Shifted, /, *, axes: int | Sequence[int] | None = None) -> Shifted:
    """Bring what is of frequency 0 from the front of the axes to their middle.

    X may be a ``Spectrum``.

    Example:
        >>> fftshift(fftfreq(4)).tolist()
        [-0.5, -0.25, 0.0, 0.25]
    """
    return _rolled("fftshift", x, axes, 1)


@as_called
def ifftshift(x: Shifted, /, *, axes: int | Sequence[int] | None = None) -> Shifted:
    """Undo ``fftshift``.

    Example:
        >>> ifftshift(fftshift(arange(3))).tolist()
        [0, 1, 2]
    """
    return _rolled("ifftshift", x, axes, -1)


def _rolled(op: str, x: Any, axes: int | Sequence[int] | None, sign: int) -> Any:
    """Half of each axis to its other side."""
    given = x if isinstance(x, Tensor) else as_pair(op, x)
    places = _axes(op, given.ndim, axes)
    if not places:
        return given
    steps = [sign * (given.shape[i] // 2) for i in places]
    if isinstance(given, Tensor):
        return given.roll(steps, axis=places)
    return Spectrum(*(part.roll(steps, axis=places) for part in given))


def _spaced(op: str, places: Tensor[Any], step: float, dtype: DTypeLike | None) -> Tensor:
    """Whole numbers times a step; narrow types hold the products, not all of the numbers."""
    like = of_the_result(op, dtype, places.device)
    return (places.astype(like.to_full_precision().dtype) * step).astype(like.dtype)


def _axes(op: str, rank: int, axes: int | Sequence[int] | None) -> list[int]:
    given = range(rank) if axes is None else [axes] if isinstance(axes, int) else axes
    return [normalize_axis(axis, op, rank) for axis in given]


def _each(op: str, x: Complex, s: Sizes, axes: Axes) -> list[tuple[int | None, int]]:
    """Length and place of each axis."""
    rank = as_pair(op, x).real.ndim
    if axes is None and s is not None:
        axes = range(rank - len(s), rank)
    places = _axes(op, rank, axes)
    if not places or len({*places}) < len(places):
        raise ShapeError(op, "no axes, or one twice", got=axes, expected="different axes")
    if s is not None and len(s) != len(places):
        raise ShapeError(op, "sizes and axes differ", got=s, expected=f"{len(places)} sizes")
    counts: Sequence[int | None] = [None] * len(places) if s is None else s
    return list(zip(counts, places, strict=True))


def _along_each(
    op: str, transform: Callable[..., Spectrum], x: Complex, s: Sizes, axes: Axes, norm: str
) -> Spectrum:
    """One transform after the other, rounded to the type of x behind the last."""
    places, dtype = _each(op, x, s, axes), as_pair(op, x).dtype
    out: Any = (x if isinstance(x, Tensor) else as_pair(op, x)).to_full_precision()
    for n, axis in places:
        out = transform(out, n=n, axis=axis, norm=norm)
    return as_pair(op, out).astype(dtype)


def _transformed(
    op: str, x: Complex, n: int | None, axis: int, norm: str, *, inverse: bool
) -> Spectrum:
    real, imag = (x, None) if isinstance(x, Tensor) else as_pair(op, x)
    place = normalize_axis(axis, op, real.ndim)
    real = _sized(op, real, n, place)
    if imag is not None:
        imag = _sized(op, imag, n, place)
    factor = _factor(op, real.shape[place], norm, inverse=inverse)
    other = None if imag is None else _room(imag, factor)
    found, behind = ops.dft(_room(real, factor), other, place, inverse, False)
    return _scaled(found, behind, factor, real.dtype)


def _require_length(op: str, n: int) -> None:
    n = NORMALIZERS["int"](n, "n", op, 0)
    if n < 1:
        raise ShapeError(op, "no length", got=n, expected="1 or more")


def _require_distance(op: str, d: float) -> None:
    if d == 0:
        raise ArgumentError(op, "no distance between samples", got=f"d={d}", expected="d != 0")


def _sized(op: str, x: Tensor, n: int | None, axis: int) -> Tensor:
    """Cut off, or filled with zeros."""
    check_floats(op, x)
    own = x.shape[axis]
    _require_length(op, own if n is None else n)
    if n is None or n == own:
        return x
    if n < own:
        return x[(*(slice(None),) * axis, slice(0, n))]
    rest = x.zeros((*x.shape[:axis], n - own, *x.shape[axis + 1 :]))
    return movement.concat([x, rest], axis=axis)


def _factor(op: str, n: int, norm: str, *, inverse: bool) -> float:
    if norm not in _NORMS:
        raise ArgumentError(op, "unknown norm", got=norm, expected=", ".join(_NORMS))
    if norm == "ortho":
        return 1 / sqrt(n)
    return 1 / n if (norm == "backward") is inverse else 1.0


def _turned(op: str, norm: str) -> str:
    """The norm that puts the factor into the other direction."""
    _factor(op, 1, norm, inverse=False)
    return {"backward": "forward", "forward": "backward"}.get(norm, norm)


def _room(x: Tensor, factor: float) -> Tensor:
    """What a factor follows is kept wide till then: sums leave float16 long before means do."""
    return x if factor == 1 else x.to_full_precision()


def _times(x: Tensor, factor: float, dtype: DType) -> Tensor:
    return x if factor == 1 else (x * factor).astype(dtype)


def _scaled(real: Tensor, imag: Tensor, factor: float, dtype: DType) -> Spectrum:
    return spectrum(_times(real, factor, dtype), _times(imag, factor, dtype))
