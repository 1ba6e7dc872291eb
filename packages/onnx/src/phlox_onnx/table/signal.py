"""Fourier transforms as products with their matrix, and windows."""

from __future__ import annotations

from math import pi
from typing import Any, Final

import numpy as np

import phlox_tensor as px
from phlox_tensor import Tensor

from .._row import Ints, Row, Scalar, since
from .elementwise import to_type

T = Tensor[Any]


def _wide(x: T) -> Any:
    """Sums over all frequencies are made in float64 where the device has it."""
    return px.float64 if px.float64 in x.device.dtypes else px.float32


def _waves(n: int, count: int, inverse: int, like: T) -> tuple[T, T]:
    """Cos and sin of 2π·t·k / n for n times and ``count`` frequencies."""
    turns = np.outer(np.arange(n), np.arange(count)) % n
    angle = 2 * pi / n * turns
    both = (np.cos(angle), np.sin(angle) if inverse else -np.sin(angle))
    return (
        px.asarray(both[0], dtype=_wide(like), device=like.device),
        px.asarray(both[1], dtype=_wide(like), device=like.device),
    )


def _fitted(x: T, n: int) -> T:
    """The last axis cut, or filled with zeros."""
    have = x.shape[-1]
    if have > n:
        return x[..., :n]
    return x.pad((*((0, 0),) * (x.ndim - 1), (0, n - have)), 0.0) if have < n else x


def dft(
    input: T,
    dft_length: Ints | None = None,
    axis: Ints | None = None,
    *,
    inverse: int = 0,
    onesided: int = 0,
) -> T:
    """The last axis is real and imaginary part, or the real part alone."""
    along = (axis[0] if axis else -2) % input.ndim
    x = input.astype(_wide(input))
    real = px.moveaxis(x[..., 0], along, -1)
    imaginary = px.moveaxis(x[..., 1], along, -1) if x.shape[-1] == 2 else None
    if inverse and onesided:
        out = _to_real(real, imaginary, dft_length[0] if dft_length else 2 * (real.shape[-1] - 1))
        return px.moveaxis(out, -1, along).expand_dims(axis=-1).astype(input.dtype)
    n = dft_length[0] if dft_length else real.shape[-1]
    count = n // 2 + 1 if onesided else n
    cos, sin = _waves(n, count, inverse, input)
    real = _fitted(real, n)
    a, b = real @ cos, real @ sin
    if imaginary is not None:
        imaginary = _fitted(imaginary, n)
        a, b = a - imaginary @ sin, b + imaginary @ cos
    if inverse:
        a, b = a / n, b / n
    parts = [px.moveaxis(v, -1, along) for v in (a, b)]
    return px.stack(parts, axis=-1).astype(input.dtype)


def _to_real(real: T, imaginary: T | None, n: int) -> T:
    """The real signal of n times whose first frequencies these are."""
    count = n // 2 + 1
    real = _fitted(real, count)
    cos, sin = _waves(n, count, 1, real)
    twice = np.full(count, 2.0)
    twice[0] = 1.0
    if n % 2 == 0:
        twice[-1] = 1.0
    weights = px.asarray(twice / n, dtype=real.dtype, device=real.device)
    out = (real * weights) @ cos.mT
    if imaginary is not None:
        out = out - (_fitted(imaginary, count) * weights) @ sin.mT
    return out


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
        angle = 2 * pi * np.arange(n) / (n if periodic else max(1, n - 1))
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
    "BlackmanWindow": since(17, _window(0.42, -0.5, 0.08)),
    "DFT": since(20, dft),
    "HammingWindow": since(17, _window(25 / 46, -21 / 46)),
    "HannWindow": since(17, _window(0.5, -0.5)),
    "MelWeightMatrix": since(17, mel_weight_matrix),
    "STFT": since(17, stft),
}
