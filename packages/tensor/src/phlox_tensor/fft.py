"""Fourier transforms, of any length, with real and imaginary parts side by side.

The functions and their arguments are those of the array API's extension; ``stft``, ``istft`` and
``window`` stand beside them. Tensors are not complex, so what is complex there is a ``Spectrum``
here: a pair of tensors, in arguments as in results. All runs on every backend and has derivatives.
"""

from ._fourier import (
    Spectrum,
    fft,
    fftfreq,
    fftn,
    fftshift,
    hfft,
    ifft,
    ifftn,
    ifftshift,
    ihfft,
    irfft,
    irfftn,
    rfft,
    rfftfreq,
    rfftn,
)
from ._spectrogram import istft, stft, window

__all__ = [
    "Spectrum",
    "fft",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfftn",
    "istft",
    "rfft",
    "rfftfreq",
    "rfftn",
    "stft",
    "window",
]
