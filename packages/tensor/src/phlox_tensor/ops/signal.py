"""Fourier transforms; ``px.fft`` is the usual spelling."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from .._data.conversion import asarray
from .._errors.classes import ShapeError
from .._op.records import case, refusal
from .._values.tensor import Tensor
from ..reference import signal as ref
from ..shapes import signal as shapes
from . import movement
from ._families import transform

# Up to this length a transform is a product with its matrix; longer ones are split.
_MATRIX: Final = 64
# A prime length up to this one is a product too; longer ones are convolutions of even length.
_PRIME: Final = 512


class _Pair(NamedTuple):
    """Real and imaginary parts, along the last axis."""

    re: Tensor
    im: Tensor

    def times(self, re: Tensor, im: Tensor) -> _Pair:
        """The product with numbers that broadcast."""
        return _Pair(self.re * re - self.im * im, self.re * im + self.im * re)


def _turns(angles: np.ndarray, n: int, like: Tensor, sign: float) -> tuple[Tensor, Tensor]:
    """``exp(±2πi·angle/n)``, from whole angles, which lose nothing."""
    turn = 2 * np.pi * (angles % n) / n
    parts = np.cos(turn), sign * np.sin(turn)
    re, im = (asarray(part, dtype=like.dtype, device=like.device) for part in parts)
    return re, im


def _along(x: _Pair, n: int, sign: float) -> _Pair:
    """The transform along the last axis. Cooley and Tukey, 1965, by factors of up to 64."""
    places = np.arange(n)
    first = next((a for a in range(min(n, _MATRIX), 1, -1) if n % a == 0), 1)
    if n <= _MATRIX or (first == 1 and n <= _PRIME):
        re, im = _turns(np.outer(places, places), n, x.re, sign)
        return _Pair(x.re @ re - x.im @ im, x.re @ im + x.im @ re)
    if first == 1:
        return _chirped(x, n, sign)
    a, b = first, n // first
    re, im = _turns(np.outer(np.arange(a), np.arange(a)), a, x.re, sign)
    parts = _Pair(*(part.reshape((*part.shape[:-1], a, b)) for part in x))
    parts = _Pair(re @ parts.re - im @ parts.im, re @ parts.im + im @ parts.re)
    parts = parts.times(*_turns(np.outer(np.arange(a), np.arange(b)), n, x.re, sign))
    found = _along(parts, b, sign)
    return _Pair(*(part.mT.reshape((*part.shape[:-2], n)) for part in found))


def _chirped(x: _Pair, n: int, sign: float) -> _Pair:
    """A length without small factors: Bluestein, 1970."""
    m = 1 << (2 * n - 1).bit_length()
    squares = np.arange(n) ** 2 % (2 * n)
    chirp = _turns(squares, 2 * n, x.re, sign)
    turn = np.exp(-1j * np.pi * sign * squares / n)
    line = np.zeros(m, np.complex128)
    line[:n] = turn
    line[m - n + 1 :] = turn[:0:-1]
    known = np.fft.fft(line) / m
    parts = (known.real, known.imag)
    factor = [asarray(part, dtype=x.re.dtype, device=x.re.device) for part in parts]
    wide = _Pair(*(_lengthened(part, m) for part in x.times(*chirp)))
    product = _along(wide, m, -1.0).times(*factor)
    back = _along(product, m, 1.0)
    return _Pair(back.re[..., :n], back.im[..., :n]).times(*chirp)


def _lengthened(x: Tensor, n: int) -> Tensor:
    return movement.concat([x, x.zeros((*x.shape[:-1], n - x.shape[-1]))], axis=-1)


@transform.formula(
    "re: Float, im: Float?; axis: Axis = -1, inverse: bool = False, half: bool = False "
    "-> real: Float, imag: Float",
    numpy=ref.dft,
    shape=shapes.dft,
    linear=True,
    unpromised=dict.fromkeys(("im", "re"), "products by 0 and sums come in any order"),
    ulp=32,
    atol=512,
    cases=(
        case((5,), (5,)),
        case((2, 6), (2, 6), inverse=True),
        case((4, 2), (4, 2), axis=0),
        case((2, 7), None, half=True),
        case((1, 8), None, half=True),
        case((2, 70), (2, 70)),
        case((1, 521), None),
        case((0, 3), (0, 3)),
    ),
    refuses=(
        refusal(ShapeError, (3,), (4,)),
        refusal(ShapeError, (3,), None, axis=1),
    ),
    internal=True,
    doc="``Σ (re + i·im)[j]·exp(∓2πi·j·k/n)`` along an axis, of any length; with ``half`` the "
    "first n//2 + 1, which tell all of real numbers.",
)
def dft(
    re: Tensor, im: Tensor | None, axis: int, inverse: bool, half: bool
) -> tuple[Tensor, Tensor]:
    n, wide = re.shape[axis], re.to_full_precision()
    other = wide.zeros() if im is None else im.to_full_precision()
    moved = _Pair(*(x.moveaxis(axis, -1) for x in (wide, other)))
    found = _along(moved, n, 1.0 if inverse else -1.0) if n else moved
    if half:
        found = _Pair(*(x[..., : n // 2 + 1] for x in found))
    first, second = (x.moveaxis(-1, axis).astype(re.dtype) for x in found)
    return first, second


@transform.formula(
    "re: Float, im: Float; axis: Axis, n: int -> Float",
    numpy=ref.irdft,
    shape=shapes.irdft,
    linear=True,
    unpromised=dict.fromkeys(("im", "re"), "products by 0 and sums come in any order"),
    ulp=32,
    atol=512,
    cases=(
        case((2, 4), (2, 4), axis=1, n=6),
        case((4, 2), (4, 2), axis=0, n=7),
        case((1, 5), (1, 5), axis=1, n=8),
        case((3, 1), (3, 1), axis=1, n=1),
        case((2, 65), (2, 65), axis=1, n=128),
        case((0, 2), (0, 2), axis=1, n=2),
    ),
    refuses=(
        refusal(ShapeError, (3,), (4,), axis=0, n=4),
        refusal(ShapeError, (3,), (3,), axis=0, n=6),
        refusal(ShapeError, (0,), (0,), axis=0, n=0),
    ),
    internal=True,
    doc="The n real numbers along an axis of whose ``dft`` these are the first n//2 + 1, times n. "
    "The imaginary parts of the first, and of the last of even n, stand for nothing.",
)
def irdft(re: Tensor, im: Tensor, axis: int, n: int) -> Tensor:
    """The other half, conjugates from back to front, and a transform of all."""
    behind = (*(slice(None),) * axis, slice(1, n - n // 2))
    re = movement.concat([re, re[behind].flip(axis)], axis=axis)
    im = movement.concat([im, -im[behind].flip(axis)], axis=axis)
    return dft(re, im, axis, True, False)[0]
