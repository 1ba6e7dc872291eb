"""Spectra of overlapping pieces of a signal, and the windows that fade the pieces in and out."""

from __future__ import annotations

from math import pi
from typing import Any, Final

import numpy as np

from ._attributes import NORMALIZERS
from ._backend import Backend
from ._called import as_called
from ._conversion import asarray
from ._device import as_device
from ._dtype import DTypeLike
from ._errors import ArgumentError, ShapeError
from ._fourier import irfft, rfft
from ._parameters import may_look_at
from ._spectrum import Complex, Spectrum, as_pair
from ._tensor import Tensor
from .ops import movement

# Cosines of a window, by its name: Harris, 1978.
_WINDOWS: Final = {
    "blackman": (0.42, -0.5, 0.08),
    "hamming": (0.54, -0.46),
    "hann": (0.5, -0.5),
}
# Where fewer windows than this add up, their sum is no divisor.
_FAINT: Final = 1e-11


@as_called
def window(
    name: str,
    n: int,
    /,
    *,
    periodic: bool = True,
    dtype: DTypeLike | None = None,
    device: Backend | str | None = None,
) -> Tensor:
    """Return a window of ``n`` numbers: ``"hann"``, ``"hamming"`` or ``"blackman"``.

    Args:
        name: which.
        n: how many.
        periodic: as if it went on behind its end, which transforms want; else symmetric.
        dtype: element type; the default float type by default.
        device: where; the default device by default.

    Raises:
        ArgumentError: for another name, or n below 1.

    Example:
        >>> window("hann", 4).tolist()
        [0.0, 0.5, 1.0, 0.5]
    """
    n = NORMALIZERS["int"](n, "n", "window", 0)
    if name not in _WINDOWS or n < 1:
        expected = f"{', '.join(_WINDOWS)}; n >= 1"
        raise ArgumentError("window", "no such window", got=f"{name!r}, {n}", expected=expected)
    turn = 2 * pi * np.arange(n) / max(n if periodic else n - 1, 1)
    found = sum(part * np.cos(k * turn) for k, part in enumerate(_WINDOWS[name]))
    values = np.asarray(found) if n > 1 else np.ones(1)
    backend = as_device(device)
    return asarray(values, dtype=backend.default_float if dtype is None else dtype, device=backend)


@as_called
def stft(
    x: Tensor,
    n_fft: int,
    /,
    *,
    hop_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
) -> Spectrum:
    """Return the spectra of overlapping pieces: (…, n_fft//2 + 1, pieces) of (…, length).

    Args:
        x: real numbers along the last axis.
        n_fft: length of a piece.
        hop_length: from one piece to the next; a quarter of a piece by default.
        window: (n_fft,), what pieces are multiplied with; ones by default. A shorter one is for the
            middle of a piece, of which the rest is 0.
        center: mirror half a piece at both ends, so that piece k is around ``k·hop_length``.

    Raises:
        ShapeError: when the signal is shorter than a piece, or the window is longer.

    Example:
        >>> stft(ones(64), 16).real.shape
        (9, 17)
    """
    hop = _checked("stft", n_fft, hop_length, window)
    if not x.ndim:
        raise ShapeError("stft", "no signal", got=(), expected="(…, length)")
    if center:
        if x.shape[-1] <= n_fft // 2:
            expected = f"more than {n_fft // 2} to mirror; center=False takes pieces of {n_fft}"
            raise ShapeError("stft", "shorter than half a piece", got=x.shape, expected=expected)
        x = x.pad_border(((n_fft // 2, n_fft // 2),), "reflect")
    length = x.shape[-1]
    if length < n_fft:
        raise ShapeError("stft", "shorter than a piece", got=length, expected=f"{n_fft} or more")
    count = 1 + (length - n_fft) // hop
    pieces = x.take(_places(n_fft, hop, count, x), axis=x.ndim - 1)
    if window is not None:
        pieces = pieces * _centered(window, n_fft)
    found = rfft(pieces)
    return Spectrum(found.real.mT, found.imag.mT)


@as_called
def istft(
    x: Complex,
    n_fft: int,
    /,
    *,
    hop_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    length: int | None = None,
) -> Tensor:
    """Return the signal whose ``stft`` comes nearest to x. Griffin and Lim, 1984.

    Args:
        x: (…, n_fft//2 + 1, pieces), as of ``stft``.
        n_fft: length of a piece.
        hop_length: as of ``stft``.
        window: as of ``stft``.
        center: as of ``stft``.
        length: of the signal, cut off or filled with zeros; what the pieces cover by default.

    Raises:
        ArgumentError: when the windows leave gaps; in a compiled function nothing looks at those
            that are arguments.
        ShapeError: when x is of pieces of another length.

    Example:
        >>> istft(stft(ones(64), 16), 16).shape
        (64,)
    """
    hop = _checked("istft", n_fft, hop_length, window)
    real, imag = as_pair("istft", x)
    if real.ndim < 2 or real.shape[-2] != n_fft // 2 + 1:
        expected = f"(…, {n_fft // 2 + 1}, pieces)"
        raise ShapeError("istft", "not the spectra of pieces", got=real.shape, expected=expected)
    pieces = irfft(Spectrum(real.mT, imag.mT), n=n_fft)
    *batch, count, _ = pieces.shape
    faded = None if window is None else _centered(window, n_fft)
    shape = pieces if faded is None else pieces * faded
    total = n_fft + hop * (count - 1)
    places: Any = _places(n_fft, hop, count, real).reshape((count * n_fft,))
    flat = shape.reshape((*batch, count * n_fft))
    out = real.zeros((*batch, total)).index_add(places, flat, axis=len(batch))
    start = n_fft // 2 if center else 0
    end = total - start if length is None else min(start + length, total)
    ones = real.zeros((n_fft,)) + 1.0 if faded is None else faded
    weight = _covered(ones.to_full_precision().square(), hop, count)[start:end]
    if end > start and may_look_at(weight) and not float(weight.detach().min()) >= _FAINT:
        raise ArgumentError("istft", "windows leave gaps", got=f"hop {hop}", expected="overlap")
    out = (out[..., start:end].to_full_precision() / weight).astype(real.dtype)
    missing = 0 if length is None else length - (end - start)
    return movement.concat([out, out.zeros((*batch, missing))], axis=-1) if missing > 0 else out


def _checked(op: str, n_fft: int, hop_length: int | None, window: Tensor | None) -> int:
    whole = NORMALIZERS["int"]
    n_fft = whole(n_fft, "n_fft", op, 0)
    hop = max(n_fft // 4, 1) if hop_length is None else whole(hop_length, "hop_length", op, 0)
    if n_fft < 1 or hop < 1:
        raise ArgumentError(op, "no pieces", got=f"n_fft {n_fft}, hop {hop}", expected="1 or more")
    if window is not None and not (window.ndim == 1 and 1 <= window.shape[0] <= n_fft):
        expected = f"({n_fft},), or shorter"
        raise ShapeError(op, "window does not fit", got=window.shape, expected=expected)
    return hop


def _centered(window: Tensor, n_fft: int) -> Tensor:
    """A shorter window in the middle of a piece, zeros beside it."""
    rest = n_fft - window.shape[0]
    return window.pad(((rest // 2, rest - rest // 2),)) if rest else window


def _covered(squares: Tensor, hop: int, count: int) -> Tensor:
    """What windows that follow one another by ``hop`` add up to."""
    n = squares.shape[0]
    parts = -(-n // hop)
    blocks = squares.pad(((0, parts * hop - n),)).reshape((parts, hop))
    rows, columns = np.arange(count + parts - 1)[:, None], np.arange(parts)
    meet = (rows >= columns) & (rows < columns + count)
    table: Tensor = asarray(meet.astype(np.float32), dtype=squares.dtype, device=squares.device)
    return (table @ blocks).reshape(((count + parts - 1) * hop,))[: n + hop * (count - 1)]


def _places(n: int, hop: int, count: int, like: Tensor) -> Tensor[Any]:
    table = np.arange(count)[:, None] * hop + np.arange(n)
    return asarray(table, dtype=like.device.default_int, device=like.device)
