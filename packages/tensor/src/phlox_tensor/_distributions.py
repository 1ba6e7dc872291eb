"""Distributions made of uniform and normal numbers, so that they are by counter as these are."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from math import ceil, erf, exp, inf, isfinite, log, prod, sqrt
from typing import Any, Final

from ._attributes import refuse_recorded
from ._backend import Backend
from ._called import as_called
from ._conversion import asarray
from ._creation import full, sizes
from ._draws import normal, permutation, randint, uniform
from ._dtype import DTypeLike
from ._errors import ArgumentError, ShapeError
from ._kinds import AnyKind, Float, Int
from ._recording import recording
from ._tensor import Tensor
from .shapes._broadcast import broadcast_shapes

Device = Backend | str | None
Shape = int | Sequence[int]

# Half of the smallest step between uniforms in float32, so that no logarithm is of 0.
_LEAST: Final = 2.0**-25
# A proposal of Marsaglia and Tsang is refused with a probability below 0.05, and below 0.05/α from
# α = 1 on, one of Hörmann's below 0.2. There are so many rounds that the last one stands for fewer
# than one number of 10⁷.
_REFUSED: Final = 0.05
_POISSON_ROUNDS: Final = 12
# Below this rate counts are found by adding up probabilities, of which so many are enough.
_SMALL_RATE: Final = 10.0
_TERMS: Final = 48


@as_called
def exponential(
    shape: Shape,
    scale: float = 1.0,
    *,
    dtype: DTypeLike | None = None,
    device: Device = None,
) -> Tensor[Float]:
    """Return exponentially distributed numbers of mean ``scale``.

    Raises:
        ArgumentError: for a negative scale.

    Example:
        >>> exponential((2, 3)).shape
        (2, 3)
    """
    _require("exponential", scale >= 0, f"scale {scale}", "scale >= 0")
    return (1.0 - uniform(shape, dtype=dtype, device=device)).log() * -scale


@as_called
def truncated_normal(
    shape: Shape,
    low: float = -2.0,
    high: float = 2.0,
    mean: float = 0.0,
    std: float = 1.0,
    *,
    dtype: DTypeLike | None = None,
    device: Device = None,
) -> Tensor[Float]:
    """Return normal numbers between two bounds, by the inverse of their distribution.

    Args:
        shape: of the result.
        low: the smallest number.
        high: the largest.
        mean: of the whole normal distribution.
        std: its standard deviation.
        dtype: element type; the default float type by default.
        device: where; the default device by default.

    Raises:
        ArgumentError: when the bounds are not in order, or hold next to nothing.

    Example:
        >>> float(truncated_normal((100,), 0.0, 1.0).min()) >= 0.0
        True
    """
    _require(
        "truncated_normal",
        low < high and std > 0,
        f"{low}, {high}, std {std}",
        "low < high, std > 0",
    )
    ends = [erf((bound - mean) / std / sqrt(2)) for bound in (low, high)]
    wide = ends[1] - ends[0] > 1e-6
    _require("truncated_normal", wide, f"{low} to {high}", "bounds within 4 std of the mean")
    unit = uniform(shape, *ends, dtype=dtype, device=device)
    return (unit.erfinv() * (std * sqrt(2)) + mean).clip(low, high)


def _parameters(
    op: str, shape: Shape, dtype: DTypeLike | None, device: Device, *given: Tensor | float
) -> list[Tensor]:
    """Parameters as tensors of the shape and type of the result."""
    dims = sizes(shape, op)
    tensors = [x for x in given if isinstance(x, Tensor)]
    if broadcast_shapes([dims, *(x.shape for x in tensors)], op) != dims:
        got = ", ".join(str(x.shape) for x in tensors)
        raise ShapeError(op, "parameters do not broadcast to shape", got=got, expected=dims)
    if tensors:
        device = tensors[0].device
        dtype = tensors[0].dtype if dtype is None else dtype
    like = full(dims, 0.0, dtype=dtype, device=device)
    return [
        (x if isinstance(x, Tensor) else full((), float(x), dtype=like.dtype, device=like.device))
        .astype(like.dtype)
        .broadcast_to(dims)
        for x in given
    ]


def _require_positive(op: str, **given: Tensor | float) -> None:
    """Numbers are looked at; tensors are not read for it."""
    for name, value in given.items():
        fits = isinstance(value, Tensor) or value > 0
        _require(op, fits, f"{name} {value}", f"{name} > 0")


@as_called
def gamma(
    shape: Shape,
    concentration: Tensor | float,
    scale: Tensor | float = 1.0,
    *,
    dtype: DTypeLike | None = None,
    device: Device = None,
) -> Tensor[Float]:
    """Return gamma distributed numbers of mean ``concentration·scale``. Marsaglia and Tsang, 2000.

    Parameters are numbers, or tensors that broadcast to ``shape``; a derivative flows to the scale.

    Raises:
        ArgumentError: for a concentration of 0 or less, or a negative scale; in tensors those of
            the concentration give nan.
        GradientError: for a concentration that a derivative should flow to.

    Example:
        >>> gamma((2, 3), 0.5).shape
        (2, 3)
    """
    _require_positive("gamma", concentration=concentration)
    refuse_recorded(concentration, "concentration", "gamma")
    number = 0.0 if isinstance(scale, Tensor) else scale
    _require("gamma", number >= 0, f"scale {number}", "scale >= 0")
    alpha, size = _parameters("gamma", shape, dtype, device, concentration, scale)
    return (_standard_gamma(alpha.detach(), concentration) * size).astype(alpha.dtype)


def _standard_gamma(alpha: Tensor, given: Tensor | float) -> Tensor:
    like: Any = {"dtype": alpha.to_full_precision().dtype, "device": alpha.device}
    alpha = alpha.to_full_precision()
    alpha = (alpha > 0).where(alpha, float("nan"))
    small = alpha < 1.0  # one more, times a power of a uniform
    third = small.where(alpha + 1.0, alpha) - 1.0 / 3.0
    narrow = 1.0 / (third * 9.0).sqrt()
    out, done = third, alpha.isnan()
    number = 0.0 if isinstance(given, Tensor) or not isfinite(given) else given
    for _ in range(ceil(log(1e-7) / log(_REFUSED / max(number, 1.0)))):
        x = normal(alpha.shape, **like)
        root = (x * narrow + 1.0).maximum(0.0)
        v = root * root * root  # a power takes as long as the rest of a round
        u = 1.0 - uniform(alpha.shape, **like)
        bound = x.square() * 0.5 + third * (1.0 - v + (v + _LEAST).log())
        kept = (v > 0) & (u.log() < bound)
        out = (done | ~kept).where(out, third * v)
        done = done | kept
    if number >= 1:
        return out
    boost = (1.0 - uniform(alpha.shape, **like)) ** (1.0 / alpha)
    return small.where(out * boost, out)


@as_called
def beta(
    shape: Shape,
    a: Tensor | float,
    b: Tensor | float,
    *,
    dtype: DTypeLike | None = None,
    device: Device = None,
) -> Tensor[Float]:
    """Return beta distributed numbers in [0, 1] of mean ``a / (a + b)``, from two gamma ones.

    Parameters are numbers, or tensors that broadcast to ``shape``.

    Raises:
        ArgumentError: for a number of 0 or less, which of a tensor gives nan.
        GradientError: for a parameter that a derivative should flow to.

    Example:
        >>> beta((2, 3), 2.0, 5.0).shape
        (2, 3)
    """
    _require_positive("beta", a=a, b=b)
    refuse_recorded(a, "a", "beta")
    refuse_recorded(b, "b", "beta")
    first, second = _parameters("beta", shape, dtype, device, a, b)
    one, other = _standard_gamma(first.detach(), a), _standard_gamma(second.detach(), b)
    return (one / (one + other)).astype(first.dtype)


@as_called
def poisson(
    shape: Shape,
    rate: Tensor | float,
    *,
    dtype: DTypeLike | None = None,
    device: Device = None,
) -> Tensor[Int]:
    """Return counts of events of mean ``rate``: a number, or a tensor that broadcasts to ``shape``.

    Small rates by adding up probabilities, others by Hörmann's transformed rejection (1993).

    Args:
        shape: of the result.
        rate: mean of the counts.
        dtype: an integer type; the default one by default.
        device: where; that of ``rate`` or the default device by default.

    Raises:
        ArgumentError: for a rate below 0, infinite or nan; in a compiled function nothing looks at
            those of a tensor.

    Example:
        >>> poisson((2, 3), 4.0).shape
        (2, 3)
    """
    (rates,) = _parameters("poisson", shape, None, device, rate)
    rates = rates.detach().to_full_precision()
    number = None if isinstance(rate, Tensor) else float(rate)
    if number is not None:
        _require("poisson", 0 <= number < inf, f"rate {rate}", "0 <= rate < inf")
    elif _may_look_at(rates):
        fits = bool(((rates >= 0) & rates.isfinite()).all())
        _require("poisson", fits, "a negative, infinite or nan rate", "0 <= rate < inf")
    if number is not None and number < _SMALL_RATE:
        out: Tensor[Any] = _few_of_one(number, rates)
    elif number is not None:
        out = _many(rates)
    else:
        large = rates >= _SMALL_RATE
        out = large.where(_many(rates.maximum(_SMALL_RATE)), _few(rates.minimum(_SMALL_RATE)))
    return out.astype(out.device.default_int if dtype is None else dtype)


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


def _many(rates: Tensor) -> Tensor:
    """Algorithm PTRS."""
    like: Any = {"dtype": rates.dtype, "device": rates.device}
    b = rates.sqrt() * 2.53 + 0.931
    a = b * 0.02483 - 0.059
    inverse = 1.1239 + 1.1328 / (b - 3.4)
    bound = 0.9277 - 3.6224 / (b - 2.0)
    out, done = rates.floor(), rates.isnan()
    for _ in range(_POISSON_ROUNDS):
        u, v = uniform(rates.shape, **like) - 0.5, 1.0 - uniform(rates.shape, **like)
        us = (0.5 - u.abs()).maximum(_LEAST)
        k = ((a * 2.0 / us + b) * u + rates + 0.43).floor()
        sure = (us >= 0.07) & (v <= bound)
        left = (v * inverse / (a / us.square() + b)).log()
        right = k * rates.log() - rates - (k.maximum(0.0) + 1.0).lgamma()
        kept = (k >= 0) & (sure | (((us >= 0.013) | (v <= us)) & (left <= right)))
        out = (done | ~kept).where(out, k)
        done = done | kept
    return out


def _gumbel(shape: Sequence[int], like: Tensor) -> Tensor:
    """Noise whose largest element, added to logits, is where a category is drawn."""
    wide = like.to_full_precision().dtype
    waits = -(1.0 - uniform(shape, dtype=wide, device=like.device)).log()
    return -waits.maximum(_LEAST).log()


@as_called
def categorical(logits: Tensor, shape: Shape = (), *, axis: int = -1) -> Tensor[Int]:
    """Return places along an axis, drawn with probabilities ``softmax(logits)``.

    Args:
        logits: logarithms of weights; -inf for what is never drawn.
        shape: how many draws for each line; they stand in front of the other axes.
        axis: along which the categories lie.

    Raises:
        ArgumentError: for a line with nan or inf, or of -inf alone; in a compiled function nothing
            looks at the numbers.

    Example:
        >>> categorical(zeros((4, 10)), (3,)).shape
        (3, 4)
    """
    dims = sizes(shape, "categorical")
    wide = logits.detach().to_full_precision()
    if not logits.ndim:
        raise ShapeError("categorical", "no categories", got=(), expected="at least one axis")
    if _may_look_at(wide):
        fits = bool(wide.max(axis=axis).isfinite().all())
        _require("categorical", fits, "nan, inf, or -inf alone", "a largest finite logit")
    return _drawn(wide, dims, axis - logits.ndim if axis >= 0 else axis)


def _drawn(logits: Tensor, shape: tuple[int, ...], axis: int) -> Tensor[Int]:
    """Places along an axis, which counts from the end, by logits that were looked at."""
    return (logits + _gumbel((*shape, *logits.shape), logits)).argmax(axis=axis)


@as_called
def multinomial(weights: Tensor, count: int, *, replacement: bool = True) -> Tensor[Int]:
    """Return places along the last axis, drawn by weights that need not sum to 1.

    Args:
        weights: not negative.
        count: how many draws for each line, along a last axis.
        replacement: whether one place may be drawn twice; else each draw is from what those before
            it left.

    Raises:
        ArgumentError: for a weight that is negative, infinite or nan; for a line of zeros alone,
            or, without replacement, for more draws than it has weights above 0. In a compiled
            function nothing looks at the numbers.

    Example:
        >>> multinomial(asarray([0.0, 1.0]), 3).tolist()
        [1, 1, 1]
    """
    if not weights.ndim:
        raise ShapeError("multinomial", "no places", got=(), expected="at least one axis")
    (count,) = sizes(count, "multinomial")
    n = weights.shape[-1]
    fits = replacement or count <= n
    _require("multinomial", fits, f"{count} of {n} places", "at most as many draws as places")
    wide = weights.detach().to_full_precision()
    if _may_look_at(wide):
        fits = bool(((wide >= 0) & wide.isfinite()).all())
        _require("multinomial", fits, "a negative, infinite or nan weight", "0 <= weight < inf")
        least = 1 if replacement else count
        fits = bool(((wide > 0).sum(axis=-1) >= least).all())
        _require("multinomial", fits, "fewer", f"{least} or more weights above 0 in each line")
    if replacement and wide.size:
        return _by_sums(wide, count)
    if replacement:
        return wide.zeros((*wide.shape[:-1], count)).astype(wide.device.default_int)
    noisy = wide.log() + _gumbel(wide.shape, wide)
    return noisy.argsort(axis=-1, descending=True)[..., :count]


def _by_sums(weights: Tensor, count: int) -> Tensor[Int]:
    """Places whose running sums are the first above uniform parts of the whole."""
    n = weights.shape[-1]
    # By the largest first, so that no sum overflows.
    sums = (weights / weights.max(axis=-1, keepdims=True)).cumsum(axis=-1)
    # As added up in parts, sums may fall, or rise where the weight is 0.
    sums = (weights > 0).where(sums, 0.0).cummax(axis=-1)[0]
    parts = uniform((*weights.shape[:-1], count), dtype=weights.dtype, device=weights.device)
    points = parts * sums[..., -1:]
    # As rounded, a point may be the whole: it then belongs to the last weight above 0.
    last = (sums < sums[..., -1:]).astype(weights.device.default_int).sum(axis=-1, keepdims=True)
    first, step = points.zeros().astype(weights.device.default_int), 1 << n.bit_length()
    while step := step >> 1:
        later = first + step
        below = sums.take_along_axis((later - 1).minimum(n - 1), axis=-1) <= points
        first = (below & (later <= n)).where(later, first)
    return first.minimum(last)


@as_called
def choice(
    x: Tensor[AnyKind],
    shape: Shape = (),
    *,
    replacement: bool = True,
    weights: Tensor | None = None,
) -> Tensor[AnyKind]:
    """Return elements of x, or rows of it, drawn along the first axis.

    Args:
        x: what to draw from.
        shape: how many.
        replacement: whether one may be drawn twice.
        weights: of the rows, not negative; equal ones by default.

    Raises:
        ArgumentError: for more than there are, without replacement, or for none to draw from.

    Example:
        >>> choice(asarray([7]), (2,)).tolist()
        [7, 7]
    """
    dims = sizes(shape, "choice")
    count = prod(dims)
    if not x.ndim or not x.shape[0]:
        raise ShapeError("choice", "nothing to draw from", got=x.shape, expected="(n, …)")
    n = x.shape[0]
    _require("choice", replacement or count <= n, f"{count} of {n}", "at most as many as there are")
    if weights is not None:
        if weights.shape != (n,):
            raise ShapeError("choice", "weights do not fit", got=weights.shape, expected=(n,))
        places = multinomial(weights, count, replacement=replacement)
    elif replacement:
        places = randint(count, 0, n, device=x.device)
    else:
        places = permutation(n, device=x.device)[:count]
    return x.take(places.reshape(dims), axis=0)


@as_called
def gumbel_softmax(
    logits: Tensor, temperature: float = 1.0, *, hard: bool = False, axis: int = -1
) -> Tensor[Float]:
    """Return softened one-hot draws of categories, with gradients. Jang et al., 2017.

    Args:
        logits: logarithms of weights.
        temperature: near 0 for nearly one-hot.
        hard: give one-hot rows, whose gradient is that of the soft ones.
        axis: along which the categories lie.

    Example:
        >>> gumbel_softmax(zeros((2, 3)), hard=True).sum(axis=1).tolist()
        [1.0, 1.0]
    """
    _require("gumbel_softmax", temperature > 0, f"temperature {temperature}", "temperature > 0")
    noisy = logits.to_full_precision() + _gumbel(logits.shape, logits)
    soft = (noisy / temperature).softmax(axis=axis)
    if hard:
        top = soft.argmax(axis=axis, keepdims=True)
        rows = soft.zeros().scatter(top, top.astype(soft.dtype) * 0 + 1, axis=axis)
        soft = rows + (soft - soft.detach())
    return soft.astype(logits.dtype)


def _may_look_at(x: Tensor) -> bool:
    """Whether numbers can be read here, which a replay of what is recorded could not do."""
    return recording() is None and x.device.is_readable(x.primitive)


def _require(op: str, holds: bool, got: str, expected: str) -> None:
    if not holds:
        raise ArgumentError(op, "parameters out of range", got=got, expected=expected)
