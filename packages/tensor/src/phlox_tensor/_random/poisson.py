"""Counts of events, drawn at float precision from rates of any size."""

from __future__ import annotations

from itertools import accumulate
from math import exp, inf, log, pi, sqrt
from typing import Any, Final

from .._call.operands import require_dtype
from .._data.conversion import asarray
from .._errors.called import as_called
from .._errors.classes import DTypeError, KindError
from .._values.dtype import DType, DTypeLike, as_dtype, iinfo
from .._values.kinds import Int
from .._values.tensor import Tensor
from .draws import uniform
from .parameters import LEAST, Device, Shape, may_look_at, parameters, require

# Hörmann's proposals are refused with a probability below 0.2. There are so many rounds that the
# last one stands for fewer than one number of 10⁷.
_ROUNDS: Final = 12
# Below this rate counts are found by adding up probabilities, of which so many are enough.
_SMALL_RATE: Final = 10.0
_TERMS: Final = 48
# So many standard deviations hold what Hörmann's proposals give.
_FAR: Final = 12.0
# Up to this relative distance its powers give the penalty, up to this one; from this rate on no
# likely count is farther away.
_NEAR: Final = 0.05
_SERIES: Final = 1e4
_POWERS: Final = 7


@as_called
def poisson(
    shape: Shape,
    rate: Tensor | float,
    *,
    dtype: DTypeLike | None = None,
    device: Device = None,
) -> Tensor[Int]:
    """Return counts of events of mean ``rate``: a number, or a tensor that broadcasts to ``shape``.

    Small rates by adding up probabilities, others by Hörmann's transformed rejection (1993) of the
    distance from the rate. A tensor's rates are exact to its type.

    Args:
        shape: the shape of the result.
        rate: mean of the counts.
        dtype: an integer type; the default one by default.
        device: where; that of ``rate`` or the default device by default.

    Raises:
        ArgumentError: for a rate below 0, infinite or nan; in a compiled function nothing looks at
            those of a tensor.
        DTypeError: when the type does not hold ``rate + 12·√rate``; not looked at there either.
        KindError: for a type that is no integer.

    Example:
        >>> poisson((2, 3), 4.0).shape
        (2, 3)
    """
    (rates,) = parameters("poisson", shape, None, device, rate)
    rates = rates.detach().to_full_precision()
    chosen = rates.device.default_int if dtype is None else as_dtype(dtype, "poisson")
    require_dtype(chosen, rates.device, "poisson")
    if chosen.kind != "Int":
        raise KindError("poisson", "not an integer type", got=chosen, expected="Int")
    if not isinstance(rate, Tensor):
        number = float(rate)
        require("poisson", 0 <= number < inf, f"rate {rate}", "0 <= rate < inf")
        _require_held(number, chosen)
        if number < _SMALL_RATE:
            return _few_of_one(number, rates).astype(chosen)
        return _many(rates, int(number), number - int(number), number).astype(chosen)
    if may_look_at(rates) and rates.size:
        fits = bool(((rates >= 0) & rates.isfinite()).all())
        require("poisson", fits, "a negative, infinite or nan rate", "0 <= rate < inf")
        _require_held(float(rates.max()), chosen)
    more = rates.maximum(_SMALL_RATE)
    whole = more.floor()
    many = _many(more, whole.astype(rates.device.default_int), more - whole, None)
    few = _few(rates.minimum(_SMALL_RATE)).astype(many.dtype)
    return (rates >= _SMALL_RATE).where(many, few).astype(chosen)


def _require_held(rate: float, dtype: DType) -> None:
    top = rate + _FAR * sqrt(rate)
    if rate >= _SMALL_RATE and top > iinfo(dtype).max:
        raise DTypeError(
            "poisson",
            "counts out of range",
            got=f"rate {rate}",
            expected=f"rate + {_FAR:g}·√rate <= {iinfo(dtype).max}, which {dtype} holds",
        )


def _few(rates: Tensor) -> Tensor:
    """How many sums of probabilities are below a uniform."""
    unit = uniform(rates.shape, dtype=rates.dtype, device=rates.device)
    term = (-rates).exp()
    total, out = term, rates.zeros()
    for k in range(1, _TERMS):
        out = out + (unit >= total).astype(rates.dtype)
        term = term * rates / float(k)
        total = total + term
    return out


def _few_of_one(rate: float, rates: Tensor) -> Tensor[Int]:
    """The same of one rate, whose sums of probabilities are known before."""
    term = exp(-rate)
    terms = [term := term * rate / k if k else term for k in range(_TERMS - 1)]
    like: Any = {"dtype": rates.dtype, "device": rates.device}
    unit = uniform(rates.shape, **like)
    return asarray(list(accumulate(terms)), **like).searchsorted(unit, side="right")


def _many(
    rates: Tensor, whole: Tensor[Int] | int, part: Tensor | float, rate: float | None
) -> Tensor[Int]:
    """Algorithm PTRS, of counts as their distances from the whole part of their rate."""
    like: Any = {"dtype": rates.dtype, "device": rates.device}
    b = rates.sqrt() * 2.53 + 0.931
    a = b * 0.02483 - 0.059
    inverse = 1.1239 + 1.1328 / (b - 3.4)
    bound = 0.9277 - 3.6224 / (b - 2.0)
    least = part - rates - 0.5  # below the distance of a count of 0, however that is rounded
    size = rates.log() + 0.5 * log(2 * pi)
    out, done = rates.zeros(), rates.isnan()
    for _ in range(_ROUNDS):
        u, v = uniform(rates.shape, **like) - 0.5, 1.0 - uniform(rates.shape, **like)
        us = (0.5 - u.abs()).maximum(LEAST)
        k = ((a * 2.0 / us + b) * u + (part + 0.43)).floor()
        sure = (us >= 0.07) & (v <= bound)
        left = (v * inverse / (a / us.square() + b)).log()
        likely = ((us >= 0.013) | (v <= us)) & (left <= _log_odds(k - part, rates, size, rate))
        kept = (k >= least) & (sure | likely)
        out = (done | ~kept).where(out, k)
        done = done | kept
    return out.astype(rates.device.default_int) + whole


def _log_odds(distance: Tensor, rates: Tensor, size: Tensor, rate: float | None) -> Tensor:
    """Logarithm of the probability of ``rates + distance``, by Stirling's series of one more.

    ``λ·((1+e)·log(1+e) - e)`` of the relative distance e loses no digits where rates are large, as
    ``k·log λ - λ - log k!`` does. Loader, 2000.
    """
    e = (distance + 1.0) / rates
    more = (e + 1.0) * rates
    if rate is None:
        penalty = (e.abs() < _NEAR).where(_near(e), _far(e))
    else:
        penalty = _far(e) if rate < _SERIES else _near(e)
    rest = 1.0 / more
    series = rest * (1.0 / 12.0 - rest * rest * (1.0 / 360.0 - rest * rest * (1.0 / 1260.0)))
    return more.log() * 0.5 - rates * penalty - size - series


def _far(e: Tensor) -> Tensor:
    return (1.0 + e) * e.maximum(-1.0).log1p() - e


def _near(e: Tensor) -> Tensor:
    """The same by powers of e."""
    powers = e * (-1.0 / (_POWERS * (_POWERS - 1))) + 1.0 / ((_POWERS - 1) * (_POWERS - 2))
    for n in range(_POWERS - 2, 1, -1):
        powers = powers * -e + 1.0 / (n * (n - 1))
    return powers * e * e
