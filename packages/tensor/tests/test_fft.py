"""Fourier transforms beside NumPy: every function, length, axis and norm."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import phlox_tensor as pt
from phlox_tensor import ArgumentError, Numpy, ShapeError, fft
from phlox_tensor.ops.signal import dft, irdft

RANDOM = np.random.default_rng(0)
NORMS = ["backward", "forward", "ortho"]
# Of one factor, of several, prime and small, prime and beyond a product, split in several steps.
LENGTHS = [1, 2, 3, 8, 30, 67, 97, 128, 521, 1022, 4096]


def pair(array: np.ndarray[Any, Any]) -> fft.Spectrum:
    return fft.Spectrum(pt.asarray(array.real.copy()), pt.asarray(array.imag.copy()))


def close(got: Any, want: np.ndarray[Any, Any]) -> None:
    if isinstance(got, fft.Spectrum):
        close(got.real, np.real(want))
        close(got.imag, np.imag(want))
        return
    assert got.shape == want.shape
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-10, atol=1e-10 * (1 + want.size))


def drawn(*shape: int) -> np.ndarray[Any, Any]:
    return RANDOM.standard_normal(shape) + 1j * RANDOM.standard_normal(shape)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
def test_along_one_axis(name: str, norm: str) -> None:
    ours, numpys = getattr(fft, name), getattr(np.fft, name)
    for n, axis in ((None, -1), (3, 0), (7, 1), (4, -2)):
        if name in ("rfft", "ihfft"):
            x = RANDOM.standard_normal((5, 6))
            got = ours(pt.asarray(x), n=n, axis=axis, norm=norm)
        else:
            x = drawn(5, 6)
            got = ours(pair(x), n=n, axis=axis, norm=norm)
        close(got, numpys(x, n=n, axis=axis, norm=norm))


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn"])
def test_along_several_axes(name: str, norm: str) -> None:
    ours, numpys = getattr(fft, name), getattr(np.fft, name)
    for s, axes in ((None, None), (None, (0, 2)), ((4, 3), (1, 0)), ((2, 5), (-1, -2))):
        x = RANDOM.standard_normal((3, 4, 5)) if name == "rfftn" else drawn(3, 4, 5)
        given = pt.asarray(x) if name == "rfftn" else pair(x)
        close(ours(given, s=s, axes=axes, norm=norm), numpys(x, s=s, axes=axes, norm=norm))


@pytest.mark.parametrize("n", LENGTHS)
def test_the_expansion_has_every_length(n: int) -> None:
    x = drawn(2, n)
    assert dft.expand is not None
    for inverse in (False, True):
        found = dft.expand(*pair(x), 1, inverse, False)
        want = np.fft.ifft(x) * n if inverse else np.fft.fft(x)
        close(fft.Spectrum(*found), want)
    found = dft.expand(pt.asarray(x.real.copy()), None, 1, False, True)
    close(fft.Spectrum(*found), np.fft.rfft(x.real))
    assert irdft.expand is not None
    half = np.fft.rfft(x.real)
    close(irdft.expand(*pair(half), 1, n), x.real * n)


def test_real_numbers_alone_are_taken() -> None:
    x = RANDOM.standard_normal((2, 5))
    close(fft.fft(pt.asarray(x)), np.fft.fft(x))
    close(fft.irfft(pt.asarray(x)), np.fft.irfft(x))
    assert fft.fft(pt.ones(4, dtype="float16")).real.dtype is pt.float16


@pytest.mark.parametrize("n", [1, 4, 5])
def test_frequencies_and_shifts(n: int) -> None:
    with pt.use_device(Numpy(float="float64")):
        close(fft.fftfreq(n, d=0.5), np.fft.fftfreq(n, 0.5))
        close(fft.rfftfreq(n, d=0.5), np.fft.rfftfreq(n, 0.5))
    x = RANDOM.standard_normal((n, 3))
    for axes in (None, 0, (1,), (0, 1)):
        close(fft.fftshift(pt.asarray(x), axes=axes), np.fft.fftshift(x, axes))
        close(fft.ifftshift(pt.asarray(x), axes=axes), np.fft.ifftshift(x, axes))


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: fft.fft(pt.ones(3), norm="none"), ArgumentError, "backward, forward, ortho"),
        (lambda: fft.fft(pt.ones(3), n=0), ShapeError, "no length"),
        (lambda: fft.fft(pt.ones(3), axis=1), ShapeError, "axis"),
        (lambda: fft.fftn(pt.ones((3, 3)), axes=(0, 0)), ShapeError, "twice"),
        (lambda: fft.fftn(pt.ones((3, 3)), s=(2,), axes=(0, 1)), ShapeError, "sizes and axes"),
        (lambda: fft.ifft((pt.ones(3), pt.ones(2))), ShapeError, "parts differ"),
        (lambda: fft.ifft((pt.ones(3),)), ArgumentError, "pair"),  # type: ignore[arg-type]
        (lambda: fft.fftfreq(0), ShapeError, "no length"),
        (lambda: fft.fftfreq(float("inf")), ArgumentError, "n is not an integer"),  # type: ignore[arg-type]
        (lambda: fft.fft(pt.ones(4), n=4.0), ArgumentError, "n is not an integer"),  # type: ignore[arg-type]
        (lambda: fft.stft(pt.ones(64), 16.0), ArgumentError, "n_fft is not an integer"),  # type: ignore[arg-type]
        (lambda: fft.window("hann", 4.0), ArgumentError, "n is not an integer"),  # type: ignore[arg-type]
    ],
)
def test_what_does_not_fit_is_refused(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()


def pieces(x: np.ndarray[Any, Any], n: int, hop: int, weights: np.ndarray[Any, Any]) -> Any:
    starts = range(0, len(x) - n + 1, hop)
    return np.stack([np.fft.rfft(x[i : i + n] * weights) for i in starts], axis=1)


@pytest.mark.parametrize(("n", "hop"), [(8, 2), (9, 3), (16, 16)])
def test_spectra_of_pieces(n: int, hop: int) -> None:
    x, ones = RANDOM.standard_normal(61), np.ones(n)
    close(fft.stft(pt.asarray(x), n, hop_length=hop, center=False), pieces(x, n, hop, ones))
    weights = np.hanning(n + 1)[:-1]
    faded = fft.window("hann", n, dtype="float64")
    close(faded, weights)
    mirrored = np.pad(x, n // 2, mode="reflect")
    got = fft.stft(pt.asarray(np.stack([x, -x])), n, hop_length=hop, window=faded)
    want = pieces(mirrored, n, hop, weights)
    close(got, np.stack([want, -want]))


def test_a_signal_comes_back_from_its_pieces() -> None:
    x = pt.asarray(RANDOM.standard_normal((3, 64)))
    faded = fft.window("hann", 16, dtype="float64")
    found = fft.stft(x, 16, window=faded)
    close(fft.istft(found, 16, window=faded), x.numpy())
    close(fft.istft(found, 16, window=faded, length=50), x.numpy()[:, :50])
    assert fft.istft(found, 16, window=faded, length=90).shape == (3, 90)
    plain = fft.stft(x, 8, hop_length=8, center=False)
    close(fft.istft(plain, 8, hop_length=8, center=False), x.numpy())
    with pytest.raises(ArgumentError, match="leave gaps"):
        fft.istft(fft.stft(x, 4, hop_length=9), 4, hop_length=9)
    with pytest.raises(ShapeError, match="shorter"):
        fft.stft(pt.ones(3), 8, center=False)
    with pytest.raises(ShapeError, match="window"):
        fft.stft(x, 16, window=pt.ones(17))
    with pytest.raises(ShapeError, match="pieces"):
        fft.istft(found, 8)
    with pytest.raises(ArgumentError, match="no such window"):
        fft.window("bell", 4)


def test_a_shorter_window_is_in_the_middle_of_its_piece() -> None:
    x = pt.asarray(RANDOM.standard_normal(64))
    short = fft.window("hann", 11, dtype="float64")
    whole = pt.asarray(np.pad(short.numpy(), (2, 3)))
    found = fft.stft(x, 16, hop_length=3, window=short)
    close(found, fft.stft(x, 16, hop_length=3, window=whole).numpy())
    close(fft.istft(found, 16, hop_length=3, window=short), x.numpy()[:63])


def test_factors_come_before_the_rounding_to_half() -> None:
    """Sums beyond 65504 whose means float16 holds."""
    many = pt.ones(70000, dtype="float16")
    found = fft.fft(many, norm="forward")
    assert found.real.dtype is found.imag.dtype is pt.float16
    assert float(found.real[0]) == 1
    assert float(fft.rfft(many, norm="ortho").real[0]) == pytest.approx(70000**0.5, rel=1e-3)
    assert float(fft.ihfft(many).real[0]) == 1
    line = fft.Spectrum(many, pt.zeros_like(many))
    assert float(fft.ifft(line).real[0]) == 1
    assert float(fft.irfft(line, norm="backward")[0]) == 1
    square = pt.full((300, 300), 300.0, dtype="float16")
    for call in (fft.fftn, fft.rfftn):
        assert float(call(square, norm="forward").real[0, 0]) == 300
    assert fft.fftn(square, norm="forward").dtype is pt.float16
    assert float(fft.ifftn(square).real[0, 0]) == 300
    half = pt.full((300, 151), 300.0, dtype="float16")
    assert (fft.irfftn(half).dtype, float(fft.irfftn(half)[0, 0])) == (pt.float16, 300)


def test_axes_are_rounded_to_half_once() -> None:
    x = pt.asarray(RANDOM.standard_normal((9, 10)).astype(np.float16))
    wide = x.astype("float32")
    for name in ("fftn", "ifftn", "rfftn"):
        got, want = getattr(fft, name)(x), getattr(fft, name)(wide)
        for part, whole in zip(got, want, strict=True):
            np.testing.assert_array_equal(part.numpy(), whole.astype("float16").numpy())
    pair = fft.rfftn(x)
    got = fft.irfftn(pair)
    want = fft.irfftn(pair.astype("float32")).astype("float16")
    np.testing.assert_array_equal(got.numpy(), want.numpy())


def test_pieces_of_loud_signals_stay_within_half() -> None:
    loud = pt.full(4000, 600.0, dtype="float16")
    found = fft.stft(loud, 400, normalized=True)
    assert found.dtype is pt.float16
    assert float(found.real[0, 5]) == 12000
    back = fft.istft(found, 400, normalized=True)
    assert back.dtype is pt.float16
    np.testing.assert_allclose(back.numpy(), loud.numpy(), rtol=2e-3)
    faded = fft.window("hann", 400, dtype="float16")
    for window in (faded, faded * 200.0):
        assert fft.stft(loud, 400, window=window, normalized=True).real.dtype is pt.float16
    assert fft.stft(loud, 400, window=faded.astype("float32")).dtype is pt.float32


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_many_frequencies_are_those_of_wide_types(dtype: str) -> None:
    for name in ("fftfreq", "rfftfreq"):
        got = getattr(fft, name)(200000, dtype=dtype)
        want = pt.asarray(getattr(np.fft, name)(200000).astype(np.float32)).astype(dtype)
        assert got.dtype is want.dtype
        np.testing.assert_allclose(
            got.astype("float32").numpy(), want.astype("float32").numpy(), rtol=1e-6, atol=1e-9
        )
