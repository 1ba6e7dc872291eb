"""Fourier transforms, of any length, with real and imaginary parts side by side.

The functions and their arguments are those of the array API's extension; ``stft``, ``istft``,
``window``, mel filters and spectrograms, ``decibels`` and ``resample`` stand beside them. Tensors
are not complex, so what is complex there is a ``Spectrum`` here: a pair of tensors, in arguments as
in results. All runs on every backend and has derivatives.
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from ._data.spectrum import Spectrum as Spectrum
from ._elsewhere.spellings import unknown_member as _unknown_member
from ._signal.audio import decibels as decibels
from ._signal.audio import mel_filters as mel_filters
from ._signal.audio import mel_spectrogram as mel_spectrogram
from ._signal.audio import resample as resample
from ._signal.fourier import fft as fft
from ._signal.fourier import fftfreq as fftfreq
from ._signal.fourier import fftn as fftn
from ._signal.fourier import fftshift as fftshift
from ._signal.fourier import hfft as hfft
from ._signal.fourier import ifft as ifft
from ._signal.fourier import ifftn as ifftn
from ._signal.fourier import ifftshift as ifftshift
from ._signal.fourier import ihfft as ihfft
from ._signal.fourier import irfft as irfft
from ._signal.fourier import irfftn as irfftn
from ._signal.fourier import rfft as rfft
from ._signal.fourier import rfftfreq as rfftfreq
from ._signal.fourier import rfftn as rfftn
from ._signal.spectrogram import istft as istft
from ._signal.spectrogram import stft as stft
from ._signal.windows import window as window

if not _TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Say what to type for a name that is not here."""
        raise _unknown_member(name, __name__, [*globals()])
