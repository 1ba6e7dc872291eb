"""Mel filters, spectrograms, decibels and resampling, beside published values and plain sums."""

from __future__ import annotations

from math import ceil
from typing import Any

import numpy as np
import pytest

import phlox_tensor as pt
from phlox_tensor import ArgumentError, ShapeError, fft

RANDOM = np.random.default_rng(0)
# 40 frequencies from 0 to 11025 Hz, evenly spaced in Slaney's mels, as the documentation of
# librosa.mel_frequencies prints them.
SLANEY = [0.0, 85.317, 170.635, 255.952, 341.269, 426.586, 511.904, 597.221, 682.538, 767.855,
          853.173, 938.49, 1024.856, 1119.114, 1222.042, 1334.436, 1457.167, 1591.187, 1737.532,
          1897.337, 2071.84, 2262.393, 2470.47, 2697.686, 2945.799, 3216.731, 3512.582, 3835.643,
          4188.417, 4573.636, 4994.285, 5453.621, 5955.205, 6502.92, 7101.009, 7754.107, 8467.272,
          9246.028, 10096.408, 11025.0]  # fmt: skip
# Peaks of HTK's scale: evenly spaced in 2595·log10(1 + f/700).
HTK = 700 * (10 ** (np.linspace(0, 2595 * np.log10(1 + 8000 / 700), 12) / 2595) - 1)


@pytest.mark.parametrize(
    ("scale", "edges"), [("slaney", np.array(SLANEY)), ("htk", HTK)], ids=["slaney", "htk"]
)
@pytest.mark.parametrize("area", [False, True])
def test_filters_are_triangles_between_the_peaks(scale: str, edges: Any, area: bool) -> None:
    rate, n = 2 * edges[-1], 1 << 15
    found = fft.mel_filters(
        len(edges) - 2, n, rate, scale=scale, area=area, dtype="float64"
    ).numpy()
    assert found.shape == (len(edges) - 2, n // 2 + 1)
    places = np.arange(n // 2 + 1) * rate / n
    for i, line in enumerate(found):
        want = np.interp(places, edges[i : i + 3], [0, 1, 0], left=0, right=0)
        if area:
            want *= 2 / (edges[i + 2] - edges[i])
        np.testing.assert_allclose(line, want, atol=3e-5 * want.max())
        if area:
            assert line.sum() * rate / n == pytest.approx(1, rel=1e-4)


def test_filters_take_a_band_a_type_and_a_device() -> None:
    found = fft.mel_filters(
        4, 64, 8000.0, f_min=500.0, f_max=2000.0, dtype="float16", device="numpy"
    )
    assert found.dtype is pt.float16
    outside = np.abs(np.arange(33) * 125 - 1250) >= 750
    assert not found.numpy()[:, outside].any()


def test_a_mel_spectrogram_is_filters_times_spectra() -> None:
    x = RANDOM.standard_normal((2, 200))
    filters = fft.mel_filters(5, 32, 8000.0, dtype="float64")
    fade = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(32) / 32)
    for center, padded in ((True, np.pad(x, ((0, 0), (16, 16)), mode="reflect")), (False, x)):
        starts = range(0, padded.shape[1] - 31, 10)
        pieces = np.stack([padded[:, i : i + 32] * fade for i in starts], axis=1)
        size = np.abs(np.fft.rfft(pieces))
        for power in (1.0, 2.0, 3.0):
            want = np.einsum("mf,nkf->nmk", filters.numpy(), size**power)
            got = fft.mel_spectrogram(
                pt.asarray(x), filters, 32, hop_length=10, center=center, power=power
            )
            np.testing.assert_allclose(got.numpy(), want, rtol=1e-9, atol=1e-9)
    plain = fft.mel_spectrogram(pt.asarray(x), filters, 32, window=pt.ones(32, dtype="float64"))
    spectra = fft.stft(pt.asarray(x), 32).abs()
    np.testing.assert_allclose(plain.numpy(), (filters @ spectra.square()).numpy(), rtol=1e-9)


def test_decibels_have_a_floor_and_a_span() -> None:
    x = pt.asarray([[1000.0, 1.0], [1e-3, 0.0]], dtype="float64")
    np.testing.assert_allclose(fft.decibels(x).numpy(), [[30, 0], [-30, -100]], rtol=1e-12)
    np.testing.assert_allclose(fft.decibels(x, floor=1.0).numpy(), [[30, 0], [0, 0]])
    np.testing.assert_allclose(fft.decibels(x, span=50).numpy(), [[30, 0], [-20, -20]])
    both = pt.stack([x, x * 10.0])
    np.testing.assert_allclose(fft.decibels(both, span=50).numpy()[1], [[40, 10], [-10, -10]])
    assert fft.decibels(x[0, 0], span=1.0).item() == pytest.approx(30)


@pytest.mark.parametrize("power", [1.0, 2.0, 3.0])
def test_energies_of_half_are_summed_wide(power: float) -> None:
    loud = 3 * np.sin(np.arange(4000) * 0.3)
    x = pt.asarray(loud.astype(np.float16))
    filters = fft.mel_filters(40, 400, 16000.0, area=True, dtype="float16")
    got = fft.mel_spectrogram(x, filters, 400, power=power)
    assert got.dtype is pt.float16
    window = fft.window("hann", 400, dtype="float16").astype("float32")
    wide = fft.mel_spectrogram(
        x.astype("float32"), filters.astype("float32"), 400, window=window, power=power
    )
    np.testing.assert_array_equal(got.numpy(), wide.astype("float16").numpy())
    assert not got.isnan().any()


def test_decibels_of_half_keep_their_floor() -> None:
    x = pt.asarray([0.0, 1.0, 100.0], dtype="float16")
    assert fft.decibels(x).tolist() == [-100.0, 0.0, 20.0]
    assert fft.decibels(x, span=30.0).tolist() == [-10.0, 0.0, 20.0]
    assert fft.decibels(x, span=1e9).dtype is pt.float16


def plain_sum(x: Any, old: int, new: int, width: int, rolloff: float) -> Any:
    """Each sample as the sum of all others, weighed by a sinc under a Hann window."""
    cutoff = rolloff * min(1.0, new / old)
    out = np.zeros(ceil(len(x) * new / old))
    for m in range(len(out)):
        turns = (m * old / new - np.arange(len(x))) * cutoff
        near = np.abs(turns) < width
        fade = np.cos(np.pi * turns / (2 * width)) ** 2
        out[m] = np.sum(np.where(near, np.sinc(turns) * fade, 0) * x) * cutoff
    return out


@pytest.mark.parametrize(("old", "new"), [(2, 3), (3, 2), (1, 4), (6, 2), (160, 147), (8, 8)])
@pytest.mark.parametrize("options", [{}, {"width": 3, "rolloff": 0.8}])
def test_resampling_is_a_sum_of_sincs(old: int, new: int, options: Any) -> None:
    x = RANDOM.standard_normal((2, 61))
    got = fft.resample(pt.asarray(x), old, new, **options).numpy()
    assert got.shape == (2, ceil(61 * new / old))
    for line, own in zip(got, x, strict=True):
        want = (
            own
            if old == new
            else plain_sum(own, old, new, **({"width": 6, "rolloff": 0.99} | options))
        )
        np.testing.assert_allclose(line, want, atol=1e-12)


@pytest.mark.parametrize(("old", "new"), [(16000, 22050), (44100, 16000)])
def test_a_tone_keeps_its_pitch_and_height(old: int, new: int) -> None:
    tone = np.sin(2 * np.pi * 700 * np.arange(3000) / old)
    got = fft.resample(pt.asarray(tone), old, new, width=32).numpy()
    middle = slice(len(got) // 4, -len(got) // 4)
    want = np.sin(2 * np.pi * 700 * np.arange(len(got)) / new)
    np.testing.assert_allclose(got[middle], want[middle], atol=1e-5)


def test_nothing_gives_nothing_at_any_rate() -> None:
    assert fft.resample(pt.zeros((2, 0)), 2, 3).shape == (2, 0)
    assert fft.resample(pt.zeros((0, 4)), 2, 3).shape == (0, 6)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: fft.mel_filters(4, 32, 8000.0, scale="bark"), ArgumentError, "'htk', 'slaney'"),
        (lambda: fft.mel_filters(0, 32, 8000.0), ArgumentError, "no filters"),
        (lambda: fft.mel_filters(4, 32, 8000.0, f_max=5000.0), ArgumentError, "f_max <= 4000"),
        (lambda: fft.mel_filters(4, 32, 8000.0, f_min=4000.0), ArgumentError, "do not fit"),
        (lambda: fft.mel_spectrogram(pt.ones(64), pt.ones((3, 8)), 16), ShapeError, "9"),
        (lambda: fft.decibels(pt.ones(2), floor=0.0), ArgumentError, "not positive"),
        (lambda: fft.decibels(pt.ones(2), span=-1.0), ArgumentError, "not positive"),
        (lambda: fft.resample(pt.ones(4), 0, 2), ArgumentError, "no rates"),
        (lambda: fft.resample(pt.ones(4), 1, 2, width=0), ArgumentError, "no filter"),
        (lambda: fft.resample(pt.ones(()), 1, 2), ShapeError, "no signal"),
        (lambda: fft.resample(pt.ones(4), 10007, 10009), ArgumentError, "common divisor"),
    ],
)
def test_what_does_not_fit_is_refused(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()
