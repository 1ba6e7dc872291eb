"""Distributions made of uniform and normal numbers, which a counter makes."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, erf, erfc, isfinite, log, pi, prod, sqrt
from typing import Any, Final

from .._data.creation import sizes
from .._errors.called import as_called
from .._errors.classes import ShapeError
from .._op.attributes import refuse_recorded
from .._values.dtype import DTypeLike, finfo
from .._values.kinds import AnyKind, Float, Int
from .._values.tensor import Tensor
from .draws import first_of_permutation, normal, randint, uniform
from .parameters import (
    LEAST,
    Device,
    Shape,
    may_look_at,
    of_the_result,
    parameters,
    require,
    require_positive,
)

# A proposal of Marsaglia and Tsang is refused with a probability below 0.05, and below 0.05/α from
# α = 1 on. There are so many rounds that the last one stands for fewer than one number of 10⁷.
_REFUSED: Final = 0.05
# Bounds beyond this many deviations are found by the complement of the distribution, of which
# float32 holds this much.
_TAIL: Final = 2.0
_LEAST_PART: Final = 1e-28
# Where an infinite bound is cut: float64 draws none farther out.
_OUTERMOST: Final = 9.0
# Steps from the nearest number whose erf is not 1 to the farthest that is drawn.
_STEPS: Final = 5


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
        ArgumentError: for a negative scale, or one that the type does not hold.

    Example:
        >>> exponential((2, 3)).shape
        (2, 3)
    """
    require("exponential", scale >= 0, f"scale {scale}", "scale >= 0")
    like = of_the_result("exponential", dtype, device)
    most = finfo(like.dtype).max
    require("exponential", scale <= most, f"scale {scale}", f"scale <= {most}, of {like.dtype}")
    unit = uniform(shape, dtype=like.to_full_precision().dtype, device=device)
    return ((1.0 - unit).log() * -scale).astype(like.dtype)


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
        shape: the shape of the result.
        low: the smallest number.
        high: the largest.
        mean: the mean of the whole normal distribution.
        std: its standard deviation.
        dtype: element type; the default float type by default.
        device: where; the default device by default.

    Raises:
        ArgumentError: when the bounds are not in order, or hold next to nothing.

    Example:
        >>> float(truncated_normal((100,), 0.0, 1.0).min()) >= 0.0
        True
    """
    require(
        "truncated_normal",
        low < high and std > 0,
        f"{low}, {high}, std {std}",
        "low < high, std > 0",
    )
    like = of_the_result("truncated_normal", dtype, device)
    wide = like.to_full_precision().dtype
    start, end = ((bound - mean) / (std * sqrt(2)) for bound in (low, high))
    if min(abs(start), abs(end)) * sqrt(2) < _TAIL or start < 0 < end:
        out = uniform(shape, erf(start), erf(end), dtype=wide, device=device).erfinv()
    else:
        near, far = sorted((abs(start), abs(end)))
        fits = erfc(near) - erfc(far) > _LEAST_PART
        require("truncated_normal", fits, f"{low} to {high}", "bounds within 10 std of the mean")
        out = _tail(uniform(shape, erfc(far), erfc(near), dtype=wide, device=device))
        out = out if start > 0 else -out
    least, most = (mean + side * _OUTERMOST * std for side in (-1, 1))
    bounds = (low if isfinite(low) else least), (high if isfinite(high) else most)
    return (out * (std * sqrt(2)) + mean).clip(*bounds).astype(like.dtype)


def _tail(part: Tensor) -> Tensor:
    """The x above 0 whose ``erfc(x)`` is given, by Newton's method on its logarithm."""
    part = part.maximum(_LEAST_PART * LEAST)
    out = (1.0 - part).minimum(1.0 - 2 * LEAST).erfinv()
    for _ in range(_STEPS):
        there = out.erfc()
        out = out + (there / part).log() * there * (out * out).exp() * (sqrt(pi) / 2)
    return out


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
    require_positive("gamma", concentration=concentration)
    refuse_recorded(concentration, "concentration", "gamma")
    number = 0.0 if isinstance(scale, Tensor) else scale
    require("gamma", number >= 0, f"scale {number}", "scale >= 0")
    alpha, size = parameters("gamma", shape, dtype, device, concentration, scale)
    out, unit = _standard_gamma(alpha.detach(), concentration)
    if unit is not None:
        wide = alpha.detach().to_full_precision()
        out = out * (wide < 1).where(unit ** (1.0 / wide), 1.0)
    return (out * size).astype(alpha.dtype)


def _standard_gamma(alpha: Tensor, given: Tensor | float) -> tuple[Tensor, Tensor | None]:
    """Numbers, and uniform ones whose power of 1/α is to be multiplied with them where α < 1."""
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
        bound = x.square() * 0.5 + third * (1.0 - v + (v + LEAST).log())
        kept = (v > 0) & (u.log() < bound)
        out = (done | ~kept).where(out, third * v)
        done = done | kept
    return out, None if number >= 1 else 1.0 - uniform(alpha.shape, **like)


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
        ArgumentError: for a number of 0 or less; elements of a tensor give nan.
        GradientError: for a parameter that a derivative should flow to.

    Example:
        >>> beta((2, 3), 2.0, 5.0).shape
        (2, 3)
    """
    require_positive("beta", a=a, b=b)
    refuse_recorded(a, "a", "beta")
    refuse_recorded(b, "b", "beta")
    first, second = parameters("beta", shape, dtype, device, a, b)
    (one, up), (other, down) = (
        _standard_gamma(x.detach(), given) for x, given in ((first, a), (second, b))
    )
    # The powers of small parameters leave the range of floats, their logarithms do not.
    gap = _log_power(down, second) - _log_power(up, first)
    return (1.0 / (1.0 + other / one * gap.exp())).astype(first.dtype)


def _log_power(unit: Tensor | None, parameter: Tensor) -> Tensor:
    """Logarithm of what ``_standard_gamma`` leaves to be multiplied."""
    wide = parameter.detach().to_full_precision()
    return wide.zeros() if unit is None else (wide < 1).where(unit.log() / wide, 0.0)


def _gumbel(shape: Sequence[int], like: Tensor) -> Tensor:
    """Noise whose largest element, added to logits, is where a category is drawn."""
    wide = like.to_full_precision().dtype
    waits = -(1.0 - uniform(shape, dtype=wide, device=like.device)).log()
    return -waits.maximum(LEAST).log()


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
    if may_look_at(wide):
        fits = bool(wide.max(axis=axis).isfinite().all())
        require("categorical", fits, "nan, inf, or -inf alone", "a largest finite logit")
    if prod(dims) > 1 and wide.size:
        lines = wide.moveaxis(axis, -1)
        weights = (lines - lines.max(axis=-1, keepdims=True)).exp()
        return _by_sums(weights, prod(dims)).moveaxis(-1, 0).reshape((*dims, *lines.shape[:-1]))
    noisy = wide + _gumbel((*dims, *wide.shape), wide)
    return noisy.argmax(axis=axis - wide.ndim if axis >= 0 else axis)


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
    require("multinomial", fits, f"{count} of {n} places", "at most as many draws as places")
    wide = weights.detach().to_full_precision()
    if may_look_at(wide):
        fits = bool(((wide >= 0) & wide.isfinite()).all())
        require("multinomial", fits, "a negative, infinite or nan weight", "0 <= weight < inf")
        least = 1 if replacement else count
        fits = bool(((wide > 0).sum(axis=-1) >= least).all())
        require("multinomial", fits, "fewer", f"{least} or more weights above 0 in each line")
    if replacement and wide.size:
        return _by_sums(wide, count)
    if replacement:
        return wide.zeros((*wide.shape[:-1], count)).astype(wide.device.default_int)
    noisy = wide.log() + _gumbel(wide.shape, wide)
    _, places = noisy.topk(count)
    return places


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
        weights: the weights of the rows, not negative; equal ones by default.

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
    require("choice", replacement or count <= n, f"{count} of {n}", "at most as many as there are")
    if weights is not None:
        if weights.shape != (n,):
            raise ShapeError("choice", "weights do not fit", got=weights.shape, expected=(n,))
        places = multinomial(weights, count, replacement=replacement)
    elif replacement:
        places = randint(count, 0, n, device=x.device)
    else:
        places = first_of_permutation(n, count, x.device)
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
    require("gumbel_softmax", temperature > 0, f"temperature {temperature}", "temperature > 0")
    noisy = logits.to_full_precision() + _gumbel(logits.shape, logits)
    soft = (noisy / temperature).softmax(axis=axis)
    if hard:
        top = soft.argmax(axis=axis, keepdims=True)
        rows = soft.zeros().scatter(top, top.astype(soft.dtype) * 0 + 1, axis=axis)
        soft = rows + (soft - soft.detach())
    return soft.astype(logits.dtype)
