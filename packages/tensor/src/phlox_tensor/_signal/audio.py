"""Sound: mel filters and their spectrograms, decibels, resampling."""

from __future__ import annotations

from math import ceil, gcd, isfinite, log, log10
from typing import Final

import numpy as np

from .._data.conversion import asarray
from .._data.spectrum import check_floats
from .._device.backend import Backend
from .._device.finding import as_device
from .._errors.called import as_called
from .._errors.classes import ArgumentError, ShapeError
from .._functions.composite import result_type
from .._values.dtype import DTypeLike
from .._values.tensor import Tensor
from ..ops import convolution_nd
from .spectrogram import stft
from .windows import window as make_window

_SCALES = ("htk", "slaney")
# Slaney, 1998: linear up to 1000 Hz, then 27 steps for each factor of 6.4.
_KNEE: Final = 1000.0
_LINEAR: Final = 3 / 200
_STEP: Final = log(6.4) / 27
# More weights than this, 64 MiB of float32, belong to rates that hardly have a common divisor.
_MOST_WEIGHTS: Final = 1 << 24


def _mels(frequency: float, scale: str) -> float:
    if scale == "htk":
        return 2595 * log10(1 + frequency / 700)
    if frequency < _KNEE:
        return frequency * _LINEAR
    return _KNEE * _LINEAR + log(frequency / _KNEE) / _STEP


def _hertz(mels: np.ndarray, scale: str) -> np.ndarray:
    if scale == "htk":
        return np.asarray(700 * (10 ** (mels / 2595) - 1))
    above = np.maximum(mels - _KNEE * _LINEAR, 0)
    return np.where(above > 0, _KNEE * np.exp(above * _STEP), mels / _LINEAR)


@as_called
def mel_filters(
    n_mels: int,
    n_fft: int,
    sample_rate: float,
    /,
    *,
    f_min: float = 0.0,
    f_max: float | None = None,
    scale: str = "htk",
    area: bool = False,
    dtype: DTypeLike | None = None,
    device: Backend | str | None = None,
) -> Tensor:
    """Return triangles (n_mels, n_fft//2 + 1) that weigh the frequencies of ``rfft``.

    Each rises from the peak of the one before and falls to that of the next; peaks are evenly
    spaced in mels. A triangle between two neighboring frequencies of ``rfft`` is all 0: take
    fewer or a larger n_fft.

    Args:
        n_mels: how many.
        n_fft: length of what is transformed.
        sample_rate: samples in a second.
        f_min: where the first begins, in hertz.
        f_max: where the last ends; half of the sample rate by default.
        scale: ``"htk"``, ``2595·log10(1 + f/700)``, or ``"slaney"``, linear up to 1000 Hz.
        area: divide each by half of its width in hertz, so that noise gives equal numbers.
        dtype: element type; the default float type by default.
        device: where; the default device by default.

    Raises:
        ArgumentError: for another scale, sizes below 1, and frequencies out of order or beyond
            half of the sample rate.

    Example:
        >>> mel_filters(3, 8, 8000.0).shape
        (3, 5)

    O'Shaughnessy, 1987; Slaney, Auditory Toolbox, 1998.
    """
    last = sample_rate / 2 if f_max is None else f_max
    if scale not in _SCALES:
        expected = ", ".join(map(repr, _SCALES))
        raise ArgumentError("mel_filters", "unknown scale", got=repr(scale), expected=expected)
    if n_mels < 1 or n_fft < 1:
        got = f"n_mels {n_mels}, n_fft {n_fft}"
        raise ArgumentError("mel_filters", "no filters", got=got, expected="1 or more")
    if not 0 <= f_min < last <= sample_rate / 2:
        got, expected = f"{f_min} to {last}", f"0 <= f_min < f_max <= {sample_rate / 2}"
        raise ArgumentError("mel_filters", "frequencies do not fit", got=got, expected=expected)
    evenly = np.linspace(_mels(f_min, scale), _mels(last, scale), n_mels + 2)
    edges = _hertz(evenly, scale)[:, None]
    places = np.arange(n_fft // 2 + 1) * (sample_rate / n_fft)
    rising = (places - edges[:-2]) / (edges[1:-1] - edges[:-2])
    falling = (edges[2:] - places) / (edges[2:] - edges[1:-1])
    found = np.maximum(0, np.minimum(rising, falling))
    if area:
        found = found * (2 / (edges[2:] - edges[:-2]))
    backend = as_device(device)
    return asarray(found, dtype=backend.default_float if dtype is None else dtype, device=backend)


@as_called
def mel_spectrogram(
    x: Tensor,
    filters: Tensor,
    n_fft: int,
    /,
    *,
    hop_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    power: float = 2.0,
) -> Tensor:
    """Return what filters find in overlapping pieces of a signal: (…, filters, pieces).

    Args:
        x: real numbers along the last axis.
        filters: (filters, n_fft//2 + 1), as of ``mel_filters``.
        n_fft: length of a piece.
        hop_length: as of ``stft``.
        window: (n_fft,), what pieces are multiplied with; a Hann window by default.
        center: as of ``stft``.
        power: the power of absolute values: 2 for energy, 1 for amplitude.

    Raises:
        ShapeError: when the filters are of another n_fft, or ``stft`` refuses the pieces.

    Example:
        >>> mel_spectrogram(ones(64), mel_filters(3, 16, 8000.0), 16).shape
        (3, 17)
    """
    check_floats("mel_spectrogram", x)
    check_floats("mel_spectrogram", filters, "filters")
    if filters.ndim != 2 or filters.shape[1] != n_fft // 2 + 1:
        expected = f"(filters, {n_fft // 2 + 1})"
        raise ShapeError(
            "mel_spectrogram",
            "filters do not fit",
            got=filters.shape,
            expected=expected,
            hint=f"px.fft.mel_filters(80, {n_fft}, sample_rate)",
        )
    if window is None:
        window = make_window("hann", n_fft, dtype=x.dtype, device=x.device)
    dtype = result_type(x, window, filters)
    x, filters = x.to_full_precision(), filters.to_full_precision()
    found = stft(x, n_fft, hop_length=hop_length, window=window, center=center)
    if power == 2:
        return (filters @ (found.real.square() + found.imag.square())).astype(dtype)
    size = found.abs()
    return (filters @ (size if power == 1 else size**power)).astype(dtype)


@as_called
def decibels(x: Tensor, /, *, floor: float = 1e-10, span: float | None = None) -> Tensor:
    """Return ``10·log10(max(x, floor))`` of energies; amplitudes give half of it.

    Args:
        x: energies, such as of ``mel_spectrogram``.
        floor: what smaller ones count as.
        span: raise what is more than this below the largest of the last two axes.

    Raises:
        ArgumentError: for a floor or a span that is not positive.

    Example:
        >>> decibels(asarray([[100.0, 1.0, 0.0]]), span=40.0).round().tolist()
        [[20.0, 0.0, -20.0]]
    """
    if not (floor > 0 and isfinite(floor)) or (span is not None and not span > 0):
        got = f"floor {floor}, span {span}"
        raise ArgumentError("decibels", "not positive", got=got, expected="numbers > 0")
    found = x.to_full_precision().maximum(floor).log10() * 10.0  # float16 has no 1e-10
    if span is None:
        return found.astype(x.dtype)
    axes = (-2, -1) if x.ndim > 1 else None
    return found.maximum(found.max(axis=axes, keepdims=True) - span).astype(x.dtype)


def _interpolating(old: int, new: int, width: int, rolloff: float) -> tuple[np.ndarray, int]:
    """Weights (new, old + 2·reach) of samples around ``old`` of them for ``new`` others."""
    cutoff = rolloff * min(1.0, new / old)
    reach = ceil(width / cutoff)
    places = np.arange(new)[:, None] * (old / new) - np.arange(-reach, old + reach)
    turns = np.clip(places * cutoff, -width, width)
    fade = np.cos(np.pi * turns / (2 * width)) ** 2
    return cutoff * np.sinc(turns) * fade, reach


@as_called
def resample(
    x: Tensor, old_rate: int, new_rate: int, /, *, width: int = 6, rolloff: float = 0.99
) -> Tensor:
    """Return a signal at another rate: ``ceil(length·new/old)`` samples along the last axis.

    Sums of samples around each place, by a sinc that fades as a Hann window, which keeps
    frequencies up to half of the lower rate. In front of the signal and behind it stand zeros.

    Args:
        x: real numbers along the last axis.
        old_rate: samples of x in a second, or in any other time.
        new_rate: samples of the result in the same time.
        width: zero crossings of the sinc on each side; more for a sharper edge.
        rolloff: the edge, as a part of half of the lower rate.

    Raises:
        ArgumentError: for rates below 1, and for rates with so small a common divisor that their
            weights would take more than 64 MiB.
        ShapeError: for a 0-d tensor.

    Example:
        >>> resample(ones(10), 2, 3).shape
        (15,)

    Smith, Digital Audio Resampling, 2002.
    """
    if old_rate < 1 or new_rate < 1:
        got = f"{old_rate} and {new_rate}"
        raise ArgumentError("resample", "no rates", got=got, expected="1 or more")
    if width < 1 or not 0 < rolloff <= 1:
        got, expected = f"width {width}, rolloff {rolloff}", "width >= 1, 0 < rolloff <= 1"
        raise ArgumentError("resample", "no filter", got=got, expected=expected)
    if not x.ndim:
        raise ShapeError("resample", "no signal", got=(), expected="(…, length)")
    common = gcd(old_rate, new_rate)
    old, new = old_rate // common, new_rate // common
    if old == new or not x.size:
        return x if old == new else x.zeros((*x.shape[:-1], ceil(x.shape[-1] * new / old)))
    if new * old > _MOST_WEIGHTS:
        raise ArgumentError(
            "resample",
            "rates without common divisor",
            got=f"{old} and {new}",
            expected=f"a product of at most {_MOST_WEIGHTS}",
            hint="px.fft.resample(x, 441, 480)",
        )
    weights, reach = _interpolating(old, new, width, rolloff)
    *batch, length = x.shape
    kernel = asarray(weights[:, None, :], dtype=x.dtype, device=x.device)
    lines = x.reshape((-1, 1, length)).pad(((0, 0), (0, 0), (reach, reach + old)), 0.0)
    found = convolution_nd.conv1d(lines, kernel, stride=old)
    flat = found.mT.reshape((*batch, found.shape[-1] * new))
    return flat[..., : -(-length * new // old)]
