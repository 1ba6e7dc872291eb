"""Special functions, factorisations, transforms and chance beside SciPy, over drawn arguments."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pytest

import phlox as px

DRAWS: Final = 40 if os.environ.get("PHLOX_TEST_EXAMPLES") == "long" else 3
MANY: Final = 20_000
Rng = np.random.Generator


def _of(name: str) -> Any:
    """A part of SciPy, which has no types."""
    return importlib.import_module(f"scipy.{name}")


special, linalg, fft, signal, stats = (
    _of(name) for name in ("special", "linalg", "fft", "signal", "stats")
)

# Our function, SciPy's, the numbers between which arguments lie.
SPECIAL: Final[dict[str, tuple[Any, Any, float, float]]] = {
    "digamma": (px.digamma, special.digamma, -20.5, 60.0),
    "erf": (px.erf, special.erf, -7.0, 7.0),
    "erfc": (px.erfc, special.erfc, -7.0, 27.0),
    "erfinv": (px.erfinv, special.erfinv, -1.0, 1.0),
    "expm1": (px.expm1, special.expm1, -40.0, 40.0),
    "lgamma": (px.lgamma, special.gammaln, -20.5, 200.0),
    "log1p": (px.log1p, special.log1p, -1.0, 60.0),
    "log_sigmoid": (px.log_sigmoid, special.log_expit, -60.0, 60.0),
    "sigmoid": (px.sigmoid, special.expit, -60.0, 60.0),
}


def _near(found: Any, wanted: Any, what: str, tolerance: float = 1e-9) -> None:
    assert found.shape == np.shape(wanted), what
    np.testing.assert_allclose(found.numpy(), wanted, rtol=tolerance, atol=tolerance, err_msg=what)


@pytest.mark.parametrize("device", ["cpu", "numpy"])
@pytest.mark.parametrize("name", SPECIAL)
def test_special_functions(name: str, device: str) -> None:
    ours, theirs, low, high = SPECIAL[name]
    rng = np.random.default_rng(3)
    for count in (1, 7, 500):
        x = np.concatenate([rng.uniform(low, high, count), [low, high, np.nan]])
        with np.errstate(all="ignore"):
            wanted = theirs(x)
        found = ours(px.asarray(x, device=device)).numpy()
        # Between its zeros a function is small beside its terms.
        np.testing.assert_allclose(found, wanted, rtol=5e-13, atol=5e-14, err_msg=name)


def _square(rng: Rng) -> Any:
    n = int(rng.integers(1, 9))
    return rng.standard_normal((n, n)) + 2 * np.eye(n)


def _triangular(a: Any, b: Any) -> tuple[Any, Any]:
    wanted = linalg.solve_triangular(np.tril(a), b, lower=True)
    lower = px.asarray(np.tril(a))
    return px.linalg.solve_triangular(lower, px.asarray(b), upper=False), wanted


def test_factorisations() -> None:
    rng = np.random.default_rng(4)
    for _ in range(DRAWS):
        a = _square(rng)
        b = rng.standard_normal((len(a), int(rng.integers(1, 4))))
        x, y = px.asarray(a), px.asarray(b)
        _near(px.linalg.matrix_exp(x), linalg.expm(a), "expm", 1e-8)
        _near(px.linalg.solve(x, y), linalg.solve(a, b), "solve")
        found, wanted = _triangular(a, b)
        _near(found, wanted, "solve_triangular", 1e-7)
        _near(px.linalg.svdvals(x), linalg.svdvals(a), "svdvals")
        _near(px.linalg.pinv(x), linalg.pinv(a), "pinv", 1e-7)
        _near(px.linalg.det(x), linalg.det(a), "det")
        _near(px.kron(x, y), np.kron(a, b), "kron")
        definite = a @ a.T + np.eye(len(a))
        _near(
            px.linalg.cholesky(px.asarray(definite)), linalg.cholesky(definite, lower=True), "chol"
        )
        _near(px.linalg.eigvalsh(px.asarray(definite)), linalg.eigvalsh(definite), "eigvalsh")
        tall = rng.standard_normal((len(a) + 3, len(a)))
        right = rng.standard_normal(len(tall))
        best = px.linalg.lstsq(px.asarray(tall), px.asarray(right[:, None])).solution
        _near(best[:, 0], linalg.lstsq(tall, right)[0], "lstsq", 1e-8)


@pytest.mark.parametrize("name", ["fft", "hfft", "ifft", "ihfft", "irfft", "rfft"])
def test_transforms_of_any_length(name: str) -> None:
    rng = np.random.default_rng(5)
    for _ in range(DRAWS):
        rank = int(rng.integers(1, 4))
        shape = rng.integers(2, 12, rank)
        axis, n = int(rng.integers(-rank, rank)), int(rng.integers(2, 20))
        norm = str(rng.choice(["backward", "forward", "ortho"]))
        real = rng.standard_normal(shape)
        imag = rng.standard_normal(shape) if name in ("fft", "hfft", "ifft", "irfft") else 0 * real
        given: Any = px.fft.Spectrum(px.asarray(real), px.asarray(imag))
        given = given if imag.any() else px.asarray(real)
        array = real + 1j * imag if imag.any() else real
        found = getattr(px.fft, name)(given, n=n, axis=axis, norm=norm)
        wanted = getattr(fft, name)(array, n=n, axis=axis, norm=norm)
        what = f"{name} of {shape}, n {n}, axis {axis}, {norm}"
        if np.iscomplexobj(wanted):
            _near(found.imag, wanted.imag, what)
            found = found.real
        _near(found, wanted.real, what)


WINDOWS: Final[dict[str, tuple[Any, dict[str, float]]]] = {
    "bartlett": ("bartlett", {}),
    "blackman": ("blackman", {}),
    "cosine": ("cosine", {}),
    "exponential": (("exponential", None, 3.5), {"tau": 3.5}),
    "gaussian": (("gaussian", 2.5), {"std": 2.5}),
    "hamming": ("hamming", {}),
    "hann": ("hann", {}),
    "kaiser": (("kaiser", 8.6), {"beta": 8.6}),
    "nuttall": ("nuttall", {}),
}


@pytest.mark.parametrize("name", WINDOWS)
@pytest.mark.parametrize("periodic", [False, True])
def test_windows(name: str, periodic: bool) -> None:
    numbers: Any
    scipys, numbers = WINDOWS[name]
    for n in (1, 2, 3, 16, 31):
        found = px.fft.window(name, n, periodic=periodic, dtype=px.float64, **numbers)
        _near(found, signal.get_window(scipys, n, fftbins=periodic), f"{name} {n}")


def test_pieces_of_a_signal_under_a_window_of_scipy() -> None:
    rng = np.random.default_rng(6)
    for _ in range(DRAWS):
        n = 2 * int(rng.integers(2, 12))
        hop, length = int(rng.integers(1, n + 1)), int(rng.integers(2 * n, 6 * n))
        x, window = rng.standard_normal(length), signal.get_window("hamming", n)
        pieces = (length - n) // hop + 1
        found = px.fft.stft(
            px.asarray(x), n, hop_length=hop, window=px.asarray(window), center=False
        )
        starts = [window * x[k * hop : k * hop + n] for k in range(pieces)]
        wanted = np.fft.rfft(np.stack(starts, axis=1), axis=0)
        _near(found.real, wanted.real, "stft")
        _near(found.imag, wanted.imag, "stft")


# How we draw from a distribution of drawn parameters, and SciPy's.
CHANCE: Final[dict[str, Callable[[float, float], tuple[Any, Any]]]] = {
    "beta": lambda a, b: (px.random.beta(MANY, a, b), stats.beta(a, b)),
    "exponential": lambda a, b: (px.random.exponential(MANY, a), stats.expon(scale=a)),
    "gamma": lambda a, b: (px.random.gamma(MANY, a, b), stats.gamma(a, scale=b)),
    "normal": lambda a, b: (px.random.normal(MANY, a, b), stats.norm(a, b)),
    "truncated_normal": lambda a, b: (
        px.random.truncated_normal(MANY, -a, b),
        stats.truncnorm(-a, b),
    ),
    "uniform": lambda a, b: (px.random.uniform(MANY, -a, b), stats.uniform(-a, a + b)),
}


@pytest.mark.parametrize("name", CHANCE)
def test_numbers_follow_their_distribution(name: str) -> None:
    """By Kolmogorov and Smirnov's test; 1e-5 over some hundred draws is no chance."""
    px.seed(17)
    rng = np.random.default_rng(8)
    for _ in range(DRAWS):
        a, b = rng.uniform(0.3, 5.0, 2)
        drawn, wanted = CHANCE[name](float(a), float(b))
        found = stats.kstest(drawn.numpy().astype(np.float64), wanted.cdf)
        assert found.pvalue > 1e-5, f"{name} {a} {b}"


def test_counts_follow_poisson() -> None:
    px.seed(18)
    rng = np.random.default_rng(9)
    for _ in range(DRAWS):
        rate = float(rng.uniform(0.2, 30.0))
        drawn = px.random.poisson(MANY, rate).numpy()
        # Classes of the chi-squared test, each with enough to count.
        edges = stats.poisson(rate).ppf(np.linspace(0.1, 0.9, 9))
        edges = np.unique(edges)
        cumulative = np.append(stats.poisson(rate).cdf(edges), 1.0)
        wanted = np.diff(cumulative, prepend=0.0) * MANY
        classes = np.searchsorted(edges, drawn, side="left")
        counted = np.bincount(classes, minlength=len(wanted))
        assert stats.chisquare(counted, wanted).pvalue > 1e-5, rate
