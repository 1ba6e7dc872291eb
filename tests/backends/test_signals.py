"""Signals on every device: the same values, derivatives, and lanes of vmap."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import phlox as px
from phlox import fft

RANDOM = np.random.default_rng(0)
LINES = RANDOM.standard_normal((2, 40))


def _mel(x: px.Tensor) -> px.Tensor:
    filters = fft.mel_filters(4, 16, 8000.0, dtype=x.dtype, device=x.device)
    return fft.decibels(fft.mel_spectrogram(x, filters, 16, hop_length=5), floor=1e-3)


def _resampled(x: px.Tensor) -> px.Tensor:
    return fft.resample(x, 3, 2)


def _back(x: px.Tensor) -> px.Tensor:
    faded = fft.window("hann", 8, dtype=x.dtype, device=x.device)
    return fft.istft(fft.stft(x, 8, window=faded), 8, window=faded)


CALLS = pytest.mark.parametrize("call", [_back, _mel, _resampled])
Call = Callable[[px.Tensor], px.Tensor]


@CALLS
def test_devices_agree(call: Call) -> None:
    want = call(px.asarray(LINES, device=px.Numpy())).numpy()
    for name in ("cpu", "wgpu"):
        got = call(px.asarray(LINES.astype(np.float32), device=name)).numpy()
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


@CALLS
def test_derivatives_of_two_orders(call: Call) -> None:
    x = px.asarray(LINES[:, :12], device="numpy")
    if call is _mel:
        x = px.asarray(LINES[:1, :20], device="numpy")
    px.gradcheck(lambda x: call(x).sin().sum(), (x,))
    px.gradcheck(lambda x: call(x).sin().sum(), (x,), order=2)


@pytest.mark.parametrize("hop", [4, 5])
def test_derivatives_reach_the_window_through_its_squares(hop: int) -> None:
    x = px.asarray(LINES, device="numpy")
    weights = px.asarray(RANDOM.uniform(0.5, 1.5, 16), device="numpy")

    def back(w: px.Tensor) -> px.Tensor:
        return fft.istft(fft.stft(x, 16, hop_length=hop), 16, hop_length=hop, window=w)

    px.gradcheck(lambda w: (back(w) ** 2).sum(), (weights,))
    np.testing.assert_allclose(px.compile(back)(weights).numpy(), back(weights).numpy(), atol=1e-12)
    np.testing.assert_allclose(
        px.vmap(back)(px.stack([weights, weights + 1])).numpy()[0],
        back(weights).numpy(),
        atol=1e-12,
    )


@CALLS
def test_lanes_are_calls(call: Call) -> None:
    x = px.asarray(LINES, device="numpy")
    got = px.vmap(call)(x).numpy()
    np.testing.assert_allclose(got, px.stack([call(line) for line in x]).numpy(), atol=1e-12)


@pytest.mark.parametrize("device", ["cpu", "numpy", "wgpu"])
@pytest.mark.parametrize("axis", [0, 1])
def test_lines_of_one_element_with_gaps_between_them(device: str, axis: int) -> None:
    x = px.asarray([[1.0, 2.0], [3.0, 4.0]], device=device)
    got = fft.fft(x if axis else x.mT, n=1, axis=axis)
    assert got.real.numpy().ravel().tolist() == [1.0, 3.0]
    assert not got.imag.numpy().any()
