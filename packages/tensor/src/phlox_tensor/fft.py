"""Fourier transforms, of any length, with real and imaginary parts side by side.

The functions and their arguments are those of the array API's extension; ``stft``, ``istft``,
``window``, mel filters and spectrograms, ``decibels`` and ``resample`` stand beside them. Tensors
are not complex, so what is complex there is a ``Spectrum`` here: a pair of tensors, in arguments as
in results. All runs on every backend and has derivatives.
"""

from typing import TYPE_CHECKING

from ._data.spectrum import Spectrum
from ._elsewhere.spellings import unknown_member as _unknown_member
from ._signal.audio import decibels, mel_filters, mel_spectrogram, resample
from ._signal.fourier import (
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
from ._signal.spectrogram import istft, stft
from ._signal.windows import window

__all__ = [
    "Spectrum",
    "decibels",
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
    "mel_filters",
    "mel_spectrogram",
    "resample",
    "rfft",
    "rfftfreq",
    "rfftn",
    "stft",
    "window",
]


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Say what to type for a name that is not here."""
        raise _unknown_member(name, __name__, __all__)
