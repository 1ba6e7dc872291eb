"""Fourier transforms, by NumPy's pocketfft."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._precision import widen

Array = np.ndarray[Any, Any]


def dft(re: Array, im: Array | None, axis: int, inverse: bool, half: bool) -> tuple[Array, Array]:
    wide: Any = widen(re)
    if not wide.shape[axis]:
        shape = (*wide.shape[:axis], int(half), *wide.shape[axis + 1 :])
        raw = np.zeros(shape, np.complex128)
    elif half:
        raw = np.fft.rfft(wide, axis=axis, norm="backward")
        raw = np.conj(raw) if inverse else raw
    else:
        whole = wide if im is None else wide + wide.dtype.type(1) * 1j * widen(im)
        raw = (np.fft.ifft if inverse else np.fft.fft)(
            whole, axis=axis, norm="forward" if inverse else "backward"
        )
    return np.real(raw).astype(re.dtype), np.imag(raw).astype(re.dtype)


def irdft(re: Array, im: Array, axis: int, n: int) -> Array:
    wide: Any = widen(re)
    whole = wide + wide.dtype.type(1) * 1j * widen(im)
    return np.asarray(np.fft.irfft(whole, n, axis=axis, norm="forward").astype(re.dtype))
