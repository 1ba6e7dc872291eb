"""Special functions; tests for special values, and their replacement."""

from __future__ import annotations

from math import inf, log, nan, pi, sqrt
from typing import Any, Final

import numpy as np

from .._errors.classes import ArgumentError
from .._op.records import case, refusal
from .._values.dtype import finfo, float32, float64
from .._values.kinds import Bool
from .._values.tensor import Tensor
from ..reference import special as ref
from ..reference._precision import in_float64
from ..shapes import special as shapes
from ..shapes._cody import LARGE_P, LARGE_Q, MIDDLE_P, MIDDLE_Q
from ._expansion import in_float32, widely
from ._families import elementwise

_X = "x: Float -> Float"
_SHIFT = 8  # from there on, Stirling's series is exact to float64 with eight terms
# B(2k) / (2k·(2k - 1)) and B(2k) / 2k of Stirling's series and its derivative.
_STIRLING = (
    1 / 12,
    -1 / 360,
    1 / 1260,
    -1 / 1680,
    1 / 1188,
    -691 / 360360,
    1 / 156,
    -3617 / 122400,
)
_DIGAMMA = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12, -3617 / 8160)


def _polynomial(x: Tensor, coefficients: tuple[float, ...]) -> Tensor:
    """Horner's rule; the first coefficient is that of the highest power."""
    out = x * coefficients[0] + coefficients[1]
    for c in coefficients[2:]:
        out = out * x + c
    return out


def _upward(x: Tensor) -> Tensor:
    """x, held where Stirling's series and its neighbors are finite."""
    return (x < 0.5).where(1 - x, x)


def _beside(x: Tensor, low: Tensor[Bool]) -> Tensor:
    """How far x is from the whole number next to it; 1/4, which is harmless, where not ``low``."""
    return low.where(x - x.detach().round(), 0.25)


deg2rad = elementwise(
    "deg2rad",
    _X,
    expand=widely(lambda x: x * (pi / 180)),
    numpy=in_float64(np.deg2rad),
    domain=(-360, 360),
    ulp=2,
    doc="Degrees as radians, elementwise: ``x·π / 180``.",
)


@elementwise.formula(
    _X,
    cases=(case((5,)), case((2, 3)), case((0, 2)), case(())),
    numpy=ref.digamma,
    domain=(0.3, 6),
    ulp=32,
    atol=32,
    doc="Derivative of ``lgamma``, elementwise; nan at negative whole numbers, -inf at 0, inf at "
    "-0.0.",
)
@widely
def digamma(x: Tensor) -> Tensor:
    low = x < 0.5
    at = _upward(x)
    steps = sum((1 / (at + i) for i in range(1, _SHIFT)), 1 / at)
    far = at + _SHIFT
    part = 1 / (far * far)
    series = _polynomial(part, _DIGAMMA[::-1]) * part
    value = far.log() - 0.5 / far - series - steps
    turn = pi * _beside(x, low)
    pole = low & (x == x.floor()) & (x != 0)
    mirrored = low.where(value - pi * turn.cos() / turn.sin(), value)
    value = (x == 0).where(-inf, pole.where(nan, mirrored))
    # The pole at zero is met from the side that the sign of zero names.
    return ((x == inf) | (x == 0) & x.signbit()).where(inf, value)


@elementwise.formula(
    _X,
    cases=(case((5,)), case((2, 3)), case((0, 2)), case(())),
    numpy=ref.erfc,
    ulp=32,
    doc="``1 - erf(x)``, elementwise, accurate far out. Cody, 1969.",
)
@widely
def erfc(x: Tensor) -> Tensor:
    a = x.abs()
    e = (-a * a).exp()
    middle = e * _polynomial(a.minimum(4.0), MIDDLE_P) / _polynomial(a.minimum(4.0), MIDDLE_Q)
    far = a.clip(4.0, 1e4)
    part = 1 / (far * far)
    tail = part * _polynomial(part, LARGE_P) / _polynomial(part, LARGE_Q)
    outer = e / far * (1 / sqrt(pi) - tail)
    value = (a <= 4).where(middle, outer)
    return (a < 0.46875).where(1 - x.erf(), (x < 0).where(2 - value, value))


# M. Giles, "Approximating the erfinv function", 2010: single precision, two ranges.
_NEAR: Final = (
    2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087,
    -0.00125372503, -0.00417768164, 0.246640727, 1.50140941,
)  # fmt: skip
_FAR: Final = (
    -0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773,
    -0.0076224613, 0.00943887047, 1.00167406, 2.83297682,
)  # fmt: skip


def _erfinv_far(w: Tensor) -> Tensor:
    """Near 1, from ``erfc(x) = exp(-x²) / (x·√π)·(1 - 1/(2x²) + 3/(4x⁴) - …)``."""
    far = w.maximum(16.0)
    x = far.sqrt()
    for _ in range(3):
        part = 0.5 / x.square()
        x = (far + log(2 / sqrt(pi)) - x.log() + (1 - part + 3 * part * part).log()).sqrt()
    return x


@elementwise.formula(
    _X,
    cases=(case((5,)), case((2, 3)), case((0, 2)), case(())),
    numpy=ref.erfinv,
    domain=(-0.95, 0.95),
    ulp=32,
    doc="The x of which ``erf(x)`` is given, elementwise; ±inf at ±1, nan beyond. Giles, 2010.",
)
@widely
def erfinv(x: Tensor) -> Tensor:
    inside = x.abs() < 1
    y = inside.where(x, 0.0)
    w = -((1 - y) * (1 + y)).log()
    near = _polynomial(w.minimum(5.0) - 2.5, _NEAR)
    far = _polynomial(w.maximum(5.0).sqrt() - 3, _FAR)
    out = (w < 5).where(near, far) * y
    if x.dtype is float64:  # the polynomials are for float32; two steps of Newton's method
        out = (w < 16).where(out, (y < 0).where(-_erfinv_far(w), _erfinv_far(w)))
        for _ in range(2):
            gap = (y < 0).where((-out).erfc() - (1 + y), (1 - y) - out.erfc())
            gap = (y.abs() < 0.5).where(out.erf() - y, gap)
            out = out - gap * (out * out).exp() * (sqrt(pi) / 2)
    out = inside.where((y == 0).where(y, out), nan)  # a zero keeps its sign
    return (x == 1).where(inf, (x == -1).where(-inf, out))


def _like(x: Any, other: Any) -> Any:
    """A number as a 0-d tensor beside another."""
    return x if isinstance(x, Tensor) else other.zeros(()) + x


def _whole_gap(a: Tensor[Any], b: Tensor[Any]) -> tuple[Tensor, Tensor]:
    """How far integers are apart, and the size of the second, as floats.

    The gap is taken between integers, which floats may not hold; one that wraps is wide enough to
    be taken between floats.
    """
    device = a.device
    wide = float64 if float64 in device.dtypes else device.default_float
    high, low = a.maximum(b), a.minimum(b)
    gap = high - low
    far = high.astype(wide) - low.astype(wide)
    return (gap < 0).where(far, gap.astype(wide)), b.astype(wide).abs()


@elementwise.formula(
    "x1: Num, x2: Num; rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False -> Bool",
    numpy=ref.isclose,
    prepare=shapes.prepare_isclose,
    refuses=(
        refusal(ArgumentError, (2,), (2,), rtol=-1.0),
        refusal(ArgumentError, (2,), (2,), atol=nan),
    ),
    cases=(
        case((2, 3), (3,), rtol=0.5),
        case((), (4,), atol=1.0),
        case((5,), (5,), atol=1.0, equal_nan=True),
    ),
    method=False,
    doc="Whether ``|x1 - x2| <= atol + rtol·|x2|``, elementwise; infinities are near themselves "
    "alone, nan to nothing unless ``equal_nan``.",
)
def isclose(x1: Any, x2: Any, rtol: float, atol: float, equal_nan: bool) -> Tensor[Bool]:
    a, b = _like(x1, x2), _like(x2, x1)
    if a.dtype.kind == "Int":
        gap, size = _whole_gap(a, b)
        return gap <= atol + rtol * size
    a, b = a.to_full_precision(), b.to_full_precision()
    near: Tensor[Bool] = (a == b) | (b.isfinite() & ((a - b).abs() <= atol + rtol * b.abs()))
    return near | (a.isnan() & b.isnan()) if equal_nan else near


@elementwise.formula(
    "x1: Float, x2: Float, weight: Float -> Float",
    numpy=ref.lerp,
    ulp=4,
    atol=8,
    cases=(case((2, 3), (2, 3), (3,)), case((4,), (), ()), case((2, 1), (1, 3), (2, 3))),
    doc="``x1 + weight·(x2 - x1)``, elementwise; x2 itself for a weight of 1.",
)
@in_float32
def lerp(x1: Tensor, x2: Tensor, weight: Tensor) -> Tensor:
    wide = x2 - x1
    far = wide.isinf()  # between numbers of which only the difference leaves the range
    gap = far.where(0.0, wide)
    near = (weight < 0.5).where(x1 + weight * gap, x2 - gap * (1 - weight))
    # Beside an infinity a number counts by its sign, and times a large weight it could be another.
    start = (x2.isinf() & x1.isfinite()).where(x1.sign(), x1)
    end = (x1.isinf() & x2.isfinite()).where(x2.sign(), x2)
    return far.where(start * (1 - weight) + end * weight, near)


@elementwise.formula(
    _X,
    cases=(case((5,)), case((2, 3)), case((0, 2)), case(())),
    numpy=ref.lgamma,
    domain=(0.3, 6),
    ulp=32,
    atol=64,
    doc="``ln |Γ(x)|``, elementwise; inf at 0 and at negative whole numbers.",
)
@widely
def lgamma(x: Tensor) -> Tensor:
    low = x < 0.5
    at = _upward(x)
    product = at
    for i in range(1, _SHIFT):
        product = product * (at + i)
    far = at + _SHIFT
    close = at < 1e4  # far out the product would overflow, and Stirling's series is exact at once
    base = close.where(far, at)
    part = 1 / (base * base)
    series = _polynomial(part, _STIRLING[::-1]) / base
    value = (base - 0.5) * base.log() - base + 0.5 * log(2 * pi) + series
    value = value - close.where(product, 1.0).log()
    rest = _beside(x, low)
    turn = pi * rest
    near = turn.abs() < 1e-4  # there sin(t) / t is 1 to the last digit of float32, and nearly so
    ratio = near.where(1 - turn * turn / 6, turn.sin() / near.where(1.0, turn))
    value = low.where(-rest.abs().log() - ratio.log() - value, value)
    pole = low & (x == x.floor())
    return (pole | x.isinf()).where(inf, value)


def _sum_of_shares(running: Tensor, batch: Tensor, share: Any, factor: float) -> Tensor:
    return running * (1.0 - share) + batch * (factor * share)


def _moved(running: Any, batch: Any, share: Any, factor: float) -> Tensor:
    like = running if isinstance(running, Tensor) else batch
    narrow = like.dtype.itemsize < float32.itemsize
    formula = widely(_sum_of_shares) if narrow else _sum_of_shares
    return formula(running, batch, share, factor)


moving_average = elementwise(
    "moving_average",
    "running: Float, batch: Float; share: float = 0.1, factor: float = 1.0 -> Float",
    expand=_moved,
    with_tensors=_moved,
    numpy=ref.moving_average,
    ulp=4,
    atol=8,
    cases=(case((3,), (3,), share=0.1), case((2, 3), (3,), share=0.25, factor=1.5)),
    internal=True,
    doc="``running·(1 - share) + batch·factor·share``: how statistics of batches move.",
)


@elementwise.formula(
    "x: Float; nan: float = 0.0, posinf: float? = None, neginf: float? = None -> Float",
    numpy=ref.nan_to_num,
    cases=(case((7,)), case((2, 3), nan=1.0, posinf=2.0, neginf=-2.0)),
    doc="x with numbers in place of nan and infinities; by default 0 and the largest finite ones.",
)
def nan_to_num(x: Tensor, number: float, posinf: float | None, neginf: float | None) -> Tensor:
    limits = finfo(x.dtype)
    high, low = float(limits.max), float(limits.min)
    if posinf is None and neginf is None:
        # Held between the largest numbers first: nan stays nan there, and may become an infinity.
        return x.isnan().where(number, x.clip(low, high))
    high = high if posinf is None else posinf
    low = low if neginf is None else neginf
    finite = (x == inf).where(high, (x == -inf).where(low, x))
    return x.isnan().where(number, finite)


rad2deg = elementwise(
    "rad2deg",
    _X,
    expand=widely(lambda x: x * (180 / pi)),
    numpy=in_float64(np.rad2deg),
    domain=(-7, 7),
    ulp=2,
    doc="Radians as degrees, elementwise: ``x·180 / π``.",
)
