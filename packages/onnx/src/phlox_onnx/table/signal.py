"""Fourier transforms, and windows."""

from __future__ import annotations

from math import pi
from typing import Any, Final

import numpy as np

import phlox_tensor as px
from phlox_tensor import Tensor

from ..read._limits import refuse_long
from ..read._types import to_type
from ._row import Ints, Row, Scalar, row
from .axes import axis_of

T = Tensor[Any]


def _wide(x: T) -> Any:
    """Sums over all frequencies are made in float64 where the device has it."""
    return px.float64 if px.float64 in x.device.dtypes else px.float32


def dft(
    input: T,
    dft_length: Ints | None = None,
    axis: Ints | None = None,
    *,
    inverse: int = 0,
    onesided: int = 0,
) -> T:
    """The last axis is real and imaginary part, or the real part alone."""
    along = axis_of("DFT", axis[0] if axis else -2, input.ndim)
    n = dft_length[0] if dft_length else None
    parts = px.unstack(input.astype(_wide(input)), axis=-1)
    x: Any = parts if len(parts) == 2 else parts[0]
    if inverse and onesided:
        real = px.fft.irfft(x, n=n, axis=along)
        return real.expand_dims(axis=-1).astype(input.dtype)
    if onesided and len(parts) == 1:
        out = px.fft.rfft(x, n=n, axis=along)
    else:
        out = (px.fft.ifft if inverse else px.fft.fft)(x, n=n, axis=along)
        if onesided:
            first = (*(slice(None),) * along, slice(0, out.real.shape[along] // 2 + 1))
            out = px.fft.Spectrum(out.real[first], out.imag[first])
    return px.stack(list(out), axis=-1).astype(input.dtype)


def stft(
    signal: T,
    frame_step: Ints,
    window: T | None = None,
    frame_length: Ints | None = None,
    *,
    onesided: int = 1,
) -> T:
    """Frames of a signal (batch, time, 1 or 2), each times the window, as frequencies."""
    n = window.shape[0] if window is not None else (frame_length or (signal.shape[1],))[0]
    step = frame_step[0]
    x = signal.expand_dims(axis=-1) if signal.ndim == 2 else signal
    frames = (x.shape[1] - n) // step + 1
    places = np.arange(frames)[:, None] * step + np.arange(n)
    at = px.asarray(places, dtype=x.device.default_int, device=x.device)
    cut = x.take(at, axis=1)  # (batch, frames, n, 1 or 2)
    if window is not None:
        cut = cut * window.reshape((n, 1))
    return dft(cut, (n,), (2,), onesided=onesided)


def _window(*terms: float) -> Any:
    """A sum of cosines, over one period or up to its end."""

    def run(size: Scalar, *, output_datatype: int = 1, periodic: int = 1, device: Any) -> T:
        n = int(size)
        refuse_long("window", n)
        with np.errstate(invalid="ignore"):  # one element up to its end is 0 / 0, as the text says
            angle = 2 * pi * np.arange(n) / np.float64(n if periodic else n - 1)
        total = sum(term * np.cos(i * angle) for i, term in enumerate(terms))
        return px.asarray(total, dtype=to_type(output_datatype), device=device)

    return run


def mel_weight_matrix(
    num_mel_bins: Scalar,
    dft_length: Scalar,
    sample_rate: Scalar,
    lower_edge_hertz: Scalar,
    upper_edge_hertz: Scalar,
    *,
    output_datatype: int = 1,
    device: Any,
) -> T:
    """Triangles over the frequencies of a transform, even on the mel scale."""
    bins = int(num_mel_bins)
    count = int(dft_length) // 2 + 1
    refuse_long("MelWeightMatrix", max(1, count), bins + 2)
    low, high = (2595 * np.log10(1 + f / 700) for f in (lower_edge_hertz, upper_edge_hertz))
    step = (high - low) / (bins + 2)
    mels = np.arange(bins + 2) * step + low
    edges = ((int(dft_length) + 1) * (700 * (10 ** (mels / 2595) - 1))) // sample_rate
    edges = edges.astype(int)
    out = np.zeros((count, bins))
    for i in range(bins):
        first, middle, last = edges[i : i + 3]
        if middle == first:
            out[middle, i] = 1
        else:
            at = np.arange(first, middle + 1)
            out[at, i] = (at - first) / (middle - first)
        if last != middle:
            at = np.arange(middle, last)
            out[at, i] = (last - at) / (last - middle)
    return px.asarray(out, dtype=to_type(output_datatype), device=device)


ROWS: Final[dict[str, Row]] = {
    "BlackmanWindow": row(17, _window(0.42, -0.5, 0.08), file_sized=True),
    "DFT": row(20, dft, file_sized=True),
    "HammingWindow": row(17, _window(25 / 46, -21 / 46), file_sized=True),
    "HannWindow": row(17, _window(0.5, -0.5), file_sized=True),
    "MelWeightMatrix": row(17, mel_weight_matrix, file_sized=True),
    "STFT": row(17, stft, file_sized=True),
}
