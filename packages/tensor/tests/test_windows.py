"""Windows beside NumPy and their formulas, and the pieces of signals that they fade."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import phlox_tensor as pt
from phlox_tensor import ArgumentError, ShapeError, fft

RANDOM = np.random.default_rng(0)
PLACES = np.arange(9)
# Symmetric windows of 9.
KNOWN: dict[str, tuple[dict[str, float], np.ndarray[Any, Any]]] = {
    "bartlett": ({}, np.bartlett(9)),
    "blackman": ({}, np.blackman(9)),
    "cosine": ({}, np.sin(np.pi * (PLACES + 0.5) / 9)),
    "exponential": ({"tau": 2.5}, np.exp(-np.abs(PLACES - 4) / 2.5)),
    "gaussian": ({"std": 1.5}, np.exp(-((PLACES - 4) ** 2) / (2 * 1.5**2))),
    "hamming": ({}, np.hamming(9)),
    "hann": ({}, np.hanning(9)),
    "kaiser": ({"beta": 8.6}, np.kaiser(9, 8.6)),
    "nuttall": (
        {},
        0.3635819
        - 0.4891775 * np.cos(np.pi * PLACES / 4)
        + 0.1365995 * np.cos(np.pi * PLACES / 2)
        - 0.0106411 * np.cos(3 * np.pi * PLACES / 4),
    ),
}


@pytest.mark.parametrize("name", KNOWN)
def test_a_window_is_symmetric_or_goes_on_behind_its_end(name: str) -> None:
    numbers: Any
    numbers, want = KNOWN[name]
    found = fft.window(name, 9, periodic=False, dtype="float64", **numbers)
    np.testing.assert_allclose(found.numpy(), want, rtol=1e-12, atol=1e-15)
    found = fft.window(name, 8, dtype="float64", **numbers)
    np.testing.assert_allclose(found.numpy(), want[:-1], rtol=1e-12, atol=1e-15)
    assert fft.window(name, 1, **numbers).tolist() == [1.0]


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: fft.window("bell", 4), "no such window.*bartlett, blackman"),
        (lambda: fft.window("hann", 0), "no such window"),
        (lambda: fft.window("hann", 4, beta=2.0), "beta with 'kaiser' alone"),
        (lambda: fft.window("kaiser", 4, beta=2.0, std=1.0), "std with 'gaussian' alone"),
        (lambda: fft.window("kaiser", 4), "needs beta.*\n.*beta=12.0"),
        (lambda: fft.window("kaiser", 4, beta=-1.0), "beta is out of range"),
        (lambda: fft.window("gaussian", 4, std=0.0), "std is out of range"),
        (lambda: fft.window("exponential", 4, tau=float("nan")), "tau is out of range"),
    ],
)
def test_a_window_that_is_none_is_refused(call: Any, text: str) -> None:
    with pytest.raises(ArgumentError, match=text):
        call()


@pytest.mark.parametrize("beta", [0.0, 8.6, 499.0, 501.0, 699.0, 800.0, 1e6])
def test_a_window_of_kaiser_fades_as_fast_as_it_is_told(beta: float) -> None:
    got = fft.window("kaiser", 9, beta=beta, periodic=False, dtype="float64").numpy()
    assert np.isfinite(got).all()
    assert (got[4], got.tolist()) == (1.0, got[::-1].tolist())
    if beta < 700:  # beyond, NumPy leaves the range of floats
        np.testing.assert_allclose(got, np.kaiser(9, beta), rtol=1e-13)
    else:  # I₀ is an exponential there, over the root of what is beside it
        inside = np.sqrt(1 - 0.25**2)
        np.testing.assert_allclose(got[5], np.exp(beta * (inside - 1)) / inside**0.5, rtol=1e-3)


@pytest.mark.parametrize("mode", ["reflect", "symmetric", "edge", "circular", "constant"])
def test_half_a_piece_is_put_before_both_ends(mode: str) -> None:
    x = RANDOM.standard_normal((2, 20))
    names: dict[str, Any] = {"circular": "wrap"}
    padded = np.pad(x, ((0, 0), (4, 4)), mode=names.get(mode, mode))
    got = fft.stft(pt.asarray(x), 8, hop_length=3, pad_mode=mode)
    want = fft.stft(pt.asarray(padded), 8, hop_length=3, center=False)
    np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-12)
    with pytest.raises(ArgumentError, match="'reflect', 'symmetric'"):
        fft.stft(pt.asarray(x), 8, pad_mode="mirror")


@pytest.mark.parametrize("hop", [1, 3, 4, 5, 8])
def test_normalized_pieces_under_a_shorter_window_come_back(hop: int) -> None:
    x = pt.asarray(RANDOM.standard_normal((2, 40)))
    options: dict[str, Any] = {"hop_length": hop, "win_length": 9}
    found = fft.stft(x, 12, normalized=True, **options)
    inside = pt.asarray(np.pad(np.ones(9), (1, 2)))
    want = fft.stft(x, 12, hop_length=hop, window=inside).numpy() / np.sqrt(12)
    np.testing.assert_allclose(found.numpy(), want, atol=1e-12)
    back = fft.istft(found, 12, normalized=True, **options).numpy()
    np.testing.assert_allclose(back, x.numpy()[:, : back.shape[1]], atol=1e-12)


@pytest.mark.parametrize(("n", "hop"), [(8, 3), (8, 8), (8, 11), (7, 2), (1, 1)])
def test_pieces_of_any_hop_are_those_of_numpy(n: int, hop: int) -> None:
    x = RANDOM.standard_normal((2, 45))
    starts = range(0, 45 - n + 1, hop)
    want = np.stack([np.fft.rfft(x[:, i : i + n]) for i in starts], axis=-1)
    got = fft.stft(pt.asarray(x), n, hop_length=hop, center=False)
    np.testing.assert_allclose(got.numpy(), want, atol=1e-12)
    if hop <= n:
        back = fft.istft(got, n, hop_length=hop, center=False).numpy()
        np.testing.assert_allclose(back, x[:, : back.shape[1]], atol=1e-12)


def test_lengths_of_windows_are_held() -> None:
    x = pt.ones(64)
    with pytest.raises(ShapeError, match=r"\(9,\), as win_length says"):
        fft.stft(x, 16, win_length=9, window=pt.ones(8))
    for length in (0, 17):
        with pytest.raises(ArgumentError, match="win_length does not fit"):
            fft.stft(x, 16, win_length=length)
    assert fft.stft(x, 16, win_length=16).shape == (9, 17)
