"""Spectra of overlapping pieces of a signal."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from .._data.conversion import asarray
from .._data.spectrum import Complex, Spectrum, as_pair, check_floats
from .._errors.called import as_called
from .._errors.classes import ArgumentError, ShapeError
from .._functions.composite import result_type
from .._op.attributes import NORMALIZERS
from .._random.parameters import may_look_at
from .._values.tensor import Tensor
from ..ops import movement
from .fourier import irfft, rfft

# Where fewer windows than this add up, their sum is no divisor.
_FAINT: Final = 1e-11
_PADS: Final = ("reflect", "symmetric", "edge", "circular", "constant")


@as_called
def stft(
    x: Tensor,
    n_fft: int,
    /,
    *,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
) -> Spectrum:
    """Return the spectra of overlapping pieces: (…, n_fft//2 + 1, pieces) of (…, length).

    Args:
        x: real numbers along the last axis.
        n_fft: length of a piece.
        hop_length: from one piece to the next; a quarter of a piece by default.
        win_length: length of the window; its own, or ``n_fft``, by default. A shorter one is for
            the middle of a piece, of which the rest is 0.
        window: (win_length,), what pieces are multiplied with; ones by default.
        center: put half a piece before both ends, so that piece k is around ``k·hop_length``.
        pad_mode: what is put there: a mode of ``pad_border``, or ``"constant"``, zeros.
        normalized: divide by ``sqrt(n_fft)``.

    Raises:
        ArgumentError: for another mode, and lengths below 1.
        ShapeError: when the signal is shorter than a piece, or the window does not fit.

    Example:
        >>> stft(ones(64), 16).real.shape
        (9, 17)
    """
    check_floats("stft", x)
    hop, window = _checked("stft", n_fft, hop_length, win_length, window, x)
    if not x.ndim:
        raise ShapeError("stft", "no signal", got=(), expected="(…, length)")
    if pad_mode not in _PADS:
        expected = ", ".join(map(repr, _PADS))
        raise ArgumentError("stft", "unknown pad_mode", got=repr(pad_mode), expected=expected)
    if center:
        x = _bordered(x, n_fft, pad_mode)
    length = x.shape[-1]
    if length < n_fft:
        raise ShapeError("stft", "shorter than a piece", got=length, expected=f"{n_fft} or more")
    pieces = _cut(x, n_fft, hop, 1 + (length - n_fft) // hop)
    norm = "ortho" if normalized else "backward"
    if window is None:
        return rfft(pieces, norm=norm).mT
    dtype = result_type(pieces, window)
    wide = pieces.to_full_precision() * window.to_full_precision()
    return rfft(wide, norm=norm).mT.astype(dtype)


@as_called
def istft(
    x: Complex,
    n_fft: int,
    /,
    *,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    normalized: bool = False,
    length: int | None = None,
) -> Tensor:
    """Return the signal whose ``stft`` comes nearest to x. Griffin and Lim, 1984.

    Args:
        x: (…, n_fft//2 + 1, pieces), as of ``stft``.
        n_fft: length of a piece.
        hop_length: as of ``stft``.
        win_length: as of ``stft``.
        window: as of ``stft``.
        center: as of ``stft``.
        normalized: as of ``stft``.
        length: the length of the signal, cut off or filled with zeros; by default of the pieces.

    Raises:
        ArgumentError: when the windows leave gaps; in a compiled function nothing looks at those
            that are arguments.
        ShapeError: when x is of pieces of another length, or the window does not fit.

    Example:
        >>> istft(stft(ones(64), 16), 16).shape
        (64,)
    """
    real, imag = as_pair("istft", x)
    hop, window = _checked("istft", n_fft, hop_length, win_length, window, real)
    if real.ndim < 2 or real.shape[-2] != n_fft // 2 + 1:
        expected = f"(…, {n_fft // 2 + 1}, pieces)"
        raise ShapeError("istft", "not the spectra of pieces", got=real.shape, expected=expected)
    norm = "ortho" if normalized else "backward"
    pieces = irfft(Spectrum(real.mT, imag.mT).to_full_precision(), n=n_fft, norm=norm)
    *batch, count, _ = pieces.shape
    pieces = pieces if window is None else pieces * window.to_full_precision()
    total = n_fft + hop * (count - 1)
    start = n_fft // 2 if center else 0
    end = total - start if length is None else min(start + length, total)
    weights = real.zeros((n_fft,)) + 1.0 if window is None else window
    weight = _covered(weights.to_full_precision().square(), hop, count)[start:end]
    if end > start and may_look_at(weight) and not float(weight.detach().min()) >= _FAINT:
        raise ArgumentError("istft", "windows leave gaps", got=f"hop {hop}", expected="overlap")
    out = _added(pieces, hop)[..., start:end]
    out = (out / weight).astype(real.dtype)
    missing = 0 if length is None else length - (end - start)
    return movement.concat([out, out.zeros((*batch, missing))], axis=-1) if missing > 0 else out


def _checked(
    op: str,
    n_fft: int,
    hop_length: int | None,
    win_length: int | None,
    window: Tensor | None,
    like: Tensor,
) -> tuple[int, Tensor | None]:
    """From one piece to the next, and a window as long as a piece."""
    if window is not None:
        check_floats(op, window, "window")
    whole = NORMALIZERS["int"]
    n_fft = whole(n_fft, "n_fft", op, 0)
    hop = max(n_fft // 4, 1) if hop_length is None else whole(hop_length, "hop_length", op, 0)
    if n_fft < 1 or hop < 1:
        raise ArgumentError(op, "no pieces", got=f"n_fft {n_fft}, hop {hop}", expected="1 or more")
    if win_length is not None:
        count = whole(win_length, "win_length", op, 0)
        if not 1 <= count <= n_fft:
            expected = f"1 to {n_fft}, the length of a piece"
            raise ArgumentError(op, "win_length does not fit", got=count, expected=expected)
        window = like.zeros((count,)) + 1.0 if window is None and count < n_fft else window
        if window is not None and window.shape != (count,):
            expected = f"({count},), as win_length says"
            raise ShapeError(op, "window does not fit", got=window.shape, expected=expected)
    if window is None:
        return hop, None
    if not (window.ndim == 1 and 1 <= window.shape[0] <= n_fft):
        expected = f"({n_fft},), or shorter"
        raise ShapeError(op, "window does not fit", got=window.shape, expected=expected)
    rest = n_fft - window.shape[0]
    return hop, window.pad(((rest // 2, rest - rest // 2),)) if rest else window


def _bordered(x: Tensor, n_fft: int, mode: str) -> Tensor:
    """Half a piece before both ends."""
    half = n_fft // 2
    if mode == "constant":
        return x.pad(((half, half),))
    least = {"edge": 1, "reflect": half + 1}.get(mode, half)
    if x.shape[-1] < least:
        expected = f"{least} or more for {mode!r}; center=False takes pieces of {n_fft}"
        raise ShapeError("stft", "shorter than half a piece", got=x.shape, expected=expected)
    return x.pad_border(((half, half),), mode)


def _cut(x: Tensor, n: int, hop: int, count: int) -> Tensor:
    """``count`` pieces of ``n``, one ``hop`` after the other: rows of hops beside each other."""
    parts = -(-n // hop)
    rest = (count + parts - 1) * hop - x.shape[-1]
    x = x.pad(((0, rest),)) if rest > 0 else x[..., : x.shape[-1] + rest]
    rows = x.reshape((*x.shape[:-1], count + parts - 1, hop))
    beside = [rows[..., part : part + count, :] for part in range(parts)]
    return movement.concat(beside, axis=-1)[..., :n]


def _added(pieces: Tensor, hop: int) -> Tensor:
    """What overlapping pieces add up to."""
    *batch, count, n = pieces.shape
    parts = -(-n // hop)
    missing = parts * hop - n
    pieces = pieces.pad(((0, missing),)) if missing else pieces
    rows = pieces.reshape((*batch, count, parts, hop))
    out = rows[..., 0, :].pad(((0, parts - 1), (0, 0)))
    for part in range(1, parts):
        out = out + rows[..., part, :].pad(((part, parts - 1 - part), (0, 0)))
    return out.reshape((*batch, (count + parts - 1) * hop))[..., : n + hop * (count - 1)]


def _covered(squares: Tensor, hop: int, count: int) -> Tensor:
    """What windows that follow one another by ``hop`` add up to."""
    n = squares.shape[0]
    parts = -(-n // hop)
    blocks = squares.pad(((0, parts * hop - n),)).reshape((parts, hop))
    rows, columns = np.arange(count + parts - 1)[:, None], np.arange(parts)
    meet = (rows >= columns) & (rows < columns + count)
    table: Tensor[Any] = asarray(
        meet.astype(np.float32), dtype=squares.dtype, device=squares.device
    )
    return (table @ blocks).reshape(((count + parts - 1) * hop,))[: n + hop * (count - 1)]
