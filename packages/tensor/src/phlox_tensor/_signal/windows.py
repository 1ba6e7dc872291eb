"""Windows, which fade pieces of a signal in and out."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import pi
from typing import Any, Final

import numpy as np

from .._data.conversion import asarray
from .._device.backend import Backend
from .._device.finding import as_device
from .._errors.called import as_called
from .._errors.classes import ArgumentError
from .._op.attributes import NORMALIZERS
from .._values.dtype import DTypeLike
from .._values.tensor import Tensor

Array = np.ndarray[Any, Any]
_FAR: Final = 500.0  # from where on an asymptotic series has all digits


def _cosines(*parts: float) -> Callable[[Array, int], Array]:
    """A sum of cosines of whole turns: Harris, 1978; Nuttall, 1981."""
    return partial(_summed, parts)


def _summed(parts: tuple[float, ...], places: Array, span: int) -> Array:
    turn = 2 * pi * places / max(span, 1)
    return np.asarray(sum(part * np.cos(k * turn) for k, part in enumerate(parts)))


def _bartlett(places: Array, span: int) -> Array:
    return np.asarray(1 - np.abs(2 * places / max(span, 1) - 1))


def _cosine(places: Array, span: int) -> Array:
    return np.sin(pi * (places + 0.5) / (span + 1))


def _exponential(places: Array, span: int, tau: float) -> Array:
    return np.exp(-np.abs(places - span / 2) / tau)


def _gaussian(places: Array, span: int, std: float) -> Array:
    return np.exp(-(((places - span / 2) / std) ** 2) / 2)


def _kaiser(places: Array, span: int, beta: float) -> Array:
    """Kaiser and Schafer, 1980."""
    inside = np.maximum(0, 1 - (2 * places / max(span, 1) - 1) ** 2)
    x, top = beta * np.sqrt(inside), np.asarray(beta)
    return np.asarray(_scaled_bessel(x) / _scaled_bessel(top) * np.exp(x - top))


def _scaled_bessel(x: Array) -> Array:
    """``exp(-x)·I₀(x)`` for x from 0 on, where I₀ itself leaves the range of floats at 713.

    Far out by the asymptotic series: Abramowitz and Stegun, 1964, 9.7.1; six terms are enough.
    """
    near = np.minimum(x, _FAR)
    far = np.maximum(x, _FAR)
    series, term = np.ones_like(far), np.ones_like(far)
    for k in range(1, 6):
        term = term * (2 * k - 1) ** 2 / (8 * k * far)
        series = series + term
    return np.where(x <= _FAR, np.exp(-near) * np.i0(near), series / np.sqrt(2 * pi * far))


# From places and the distance of the first from the last, which a periodic window does not reach.
_WINDOWS: Final[dict[str, Callable[..., Array]]] = {
    "bartlett": _bartlett,
    "blackman": _cosines(0.42, -0.5, 0.08),
    "cosine": _cosine,
    "exponential": _exponential,
    "gaussian": _gaussian,
    "hamming": _cosines(0.54, -0.46),
    "hann": _cosines(0.5, -0.5),
    "kaiser": _kaiser,
    "nuttall": _cosines(0.3635819, -0.4891775, 0.1365995, -0.0106411),
}
# The one argument that such a window has.
_SHAPES: Final = {"exponential": "tau", "gaussian": "std", "kaiser": "beta"}


@as_called
def window(
    name: str,
    n: int,
    /,
    *,
    periodic: bool = True,
    beta: float | None = None,
    std: float | None = None,
    tau: float | None = None,
    dtype: DTypeLike | None = None,
    device: Backend | str | None = None,
) -> Tensor:
    """Return a window of ``n`` numbers.

    The names are those of SciPy and PyTorch: ``"bartlett"``, ``"blackman"``, ``"cosine"``,
    ``"exponential"``, ``"gaussian"``, ``"hamming"``, ``"hann"``, ``"kaiser"``, ``"nuttall"``.

    Args:
        name: which.
        n: how many.
        periodic: as if it went on after its end, which transforms want; else symmetric.
        beta: only of ``"kaiser"``, which needs it: how fast it fades; 0 is no fading.
        std: only of ``"gaussian"``, which needs it: the deviation, in samples.
        tau: only of ``"exponential"``, which needs it: samples in which it falls to 1/e.
        dtype: element type; the default float type by default.
        device: where; the default device by default.

    Raises:
        ArgumentError: for another name, n below 1, a number that the window does not have, and
            one that is missing or not in its range.

    Example:
        >>> window("hann", 4).tolist()
        [0.0, 0.5, 1.0, 0.5]
    """
    n = NORMALIZERS["int"](n, "n", "window", 0)
    if name not in _WINDOWS or n < 1:
        expected = f"{', '.join(_WINDOWS)}; n >= 1"
        raise ArgumentError("window", "no such window", got=f"{name!r}, {n}", expected=expected)
    shape = _shape_of(name, n, {"beta": beta, "std": std, "tau": tau})
    span = n if periodic else n - 1
    values = _WINDOWS[name](np.arange(n), span, **shape) if n > 1 else np.ones(1)
    backend = as_device(device)
    return asarray(values, dtype=backend.default_float if dtype is None else dtype, device=backend)


def _shape_of(name: str, n: int, given: dict[str, float | None]) -> dict[str, float]:
    """The number that the window has.

    Raises:
        ArgumentError: for one that it has not, and where its own is missing or out of range.
    """
    own = _SHAPES.get(name)
    for key, value in given.items():
        if key != own and value is not None:
            owner = next(each for each, of in _SHAPES.items() if of == key)
            expected = f"{key} with {owner!r} alone"
            raise ArgumentError("window", f"{name!r} has no {key}", got=value, expected=expected)
    if own is None:
        return {}
    number = given[own]
    if number is None:
        hint = f'px.fft.window("{name}", {n}, {own}=12.0)'
        raise ArgumentError("window", f"{name!r} needs {own}", got=None, expected=own, hint=hint)
    number = float(number)
    fits = 0 <= number < float("inf") if own == "beta" else 0 < number < float("inf")
    if not fits:
        expected = "0 or more, and finite" if own == "beta" else "above 0, and finite"
        raise ArgumentError("window", f"{own} is out of range", got=number, expected=expected)
    return {own: number}
