"""Random bits as uniform and normal numbers, truth values, integers and orders."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, inf, prod
from typing import Any, Final

import numpy as np

from .._call.operands import check_shape, require_dtype
from .._data.creation import number, sizes
from .._device.backend import Backend
from .._device.finding import as_device
from .._errors.called import as_called
from .._errors.classes import ArgumentError, KindError, UnknownArgumentError
from .._op.signature import REQUIRED
from .._values.dtype import DType, DTypeLike, as_dtype, finfo, number_for, uint32, uint64
from .._values.kinds import Bool, Float, Int
from .._values.number import call
from .._values.tensor import Tensor
from .state import drawing_device, generator

Device = Backend | str | None
_WORDS_PER_BLOCK = 4
# Uniforms of float32 are steps of 2**-24, each a part of 2**-16 of this much, or a smaller one.
_FINE: Final = 2.0**-8
_MISSING: Final[Any] = REQUIRED


def _device(device: Device) -> Backend:
    return drawing_device(as_device(device))


def _draw(words: int) -> tuple[int, int]:
    return generator().draw(-(-words // _WORDS_PER_BLOCK))


def float_type(dtype: DTypeLike | None, backend: Backend, op: str) -> DType:
    """Return the element type of a draw of floats.

    Raises:
        DTypeError: when the device lacks it.
    """
    chosen = backend.default_float if dtype is None else as_dtype(dtype, op)
    require_dtype(chosen, backend, op)
    if chosen.kind != "Float":
        raise KindError(op, "not a float type", got=chosen, expected="Float")
    return chosen


def _require_numbers(op: str, hint: str, *given: Any) -> None:
    """Refuse tensors of several numbers, of which each element would have its own."""
    for each in given:
        if isinstance(each, Tensor) and each.ndim:
            got, expected = f"a tensor of shape {each.shape}", "a number"
            raise ArgumentError(op, "not one number", got=got, expected=expected, hint=hint)


def _require_shape(op: str, given: tuple[Any, Any, Any], expected: str) -> None:
    """Refuse numbers in NumPy's order, where the shape is last and may be left out."""
    last = given[-1]
    if not isinstance(last, int | Sequence) and last != 1.0:
        return
    dims = last if isinstance(last, Sequence) else (last,) if type(last) is int else ()
    hint = f"px.random.{op}({tuple(dims)}, {given[0]}, {given[1]})"
    got = ", ".join(map(str, given))
    raise ArgumentError(op, "the shape comes first", got=got, expected=expected, hint=hint)


def _turned(shape: int | Sequence[int], low: float, high: float) -> str:
    """What to type where the ends stand the wrong way round, or low is a size of the shape."""
    if isinstance(shape, int) and isinstance(low, int) and high == 1.0:
        return f"px.random.uniform(({shape}, {low}))"
    return f"px.random.uniform({shape}, {high}, {low})"


def uniform(
    shape: int | Sequence[int],
    low: float = 0.0,
    high: float = 1.0,
    *,
    dtype: DTypeLike | None = None,
    device: Device = None,
) -> Tensor[Float]:
    """Return uniform numbers in [low, high).

    Raises:
        ArgumentError: when ``low`` is above ``high``, one of them is nan or infinite, or the type
            does not hold ``high - low``; for tensors of several, with what to type.

    Example:
        >>> bool((uniform((100,), low=2.0, high=3.0) >= 2.0).all())
        True
    """
    _require_numbers("uniform", "low + (high - low) * px.random.uniform(low.shape)", low, high)
    if not -inf < low <= high < inf:
        raise ArgumentError(
            "uniform",
            "an empty range" if low > high else "no range",
            got=f"low {low}, high {high}",
            expected="finite numbers, low <= high",
            hint=_turned(shape, low, high) if low > high else "px.random.uniform(shape, 0.0, 1.0)",
        )
    if type(shape) is int and shape < 2 and shape <= low and (low, high) != (0.0, 1.0):
        _require_shape("uniform", (shape, low, high), "shape, low, high")
    backend = _device(device)
    chosen, dims = float_type(dtype, backend, "uniform"), sizes(shape, "uniform")
    check_shape(dims, backend, "uniform")
    start, end = number(low, "low", "uniform"), number(high, "high", "uniform")
    if end - start > finfo(chosen).max:
        raise ArgumentError(
            "uniform",
            f"a range wider than {chosen}",
            got=f"low {low}, high {high}",
            expected=f"high - low <= {finfo(chosen).max}",
            hint="high * px.random.uniform(shape, -1.0, 1.0)",
        )
    key, counter = _draw(prod(dims) * (2 if chosen.name == "float64" else 1))
    out = Tensor[Float](backend.ops.random_uniform(dims, start, end, chosen, key, counter), backend)
    if (low == 0 and high == 1) or low == high:
        return out
    return out.minimum(call(_below, end, chosen))


def _below(high: float, dtype: DType) -> float:
    """The largest number below ``high``, to which sums are rounded too."""
    there = np.asarray(high, dtype.numpy)
    if there < high:
        return float(there)
    return float(np.nextafter(there, np.asarray(-inf, dtype.numpy)))


def normal(
    shape: int | Sequence[int],
    mean: float = 0.0,
    std: float = 1.0,
    *,
    dtype: DTypeLike | None = None,
    device: Device = None,
) -> Tensor[Float]:
    """Return normal numbers of the given mean and standard deviation.

    Raises:
        ArgumentError: for two integers alone, which are a shape to other libraries; for a negative
            standard deviation, an infinite one or nan; for a number that the type does not hold;
            for tensors of several numbers, with what to type.

    Example:
        >>> normal((2, 3), mean=1.0, std=0.5).shape
        (2, 3)
    """
    _require_numbers("normal", "mean + std * px.random.normal(mean.shape)", mean, std)
    if not 0 <= std < inf:
        raise ArgumentError(
            "normal",
            "a negative standard deviation" if std < 0 else "no standard deviation",
            got=std,
            expected="std >= 0, and finite",
            hint="std=1.0",
        )
    if type(shape) is int and type(mean) is int and mean != 0:
        if std == 1.0:
            raise ArgumentError(
                "normal",
                "two integers, which may mean a shape or a mean",
                got=f"{shape}, {mean}",
                hint=f"px.random.normal(({shape}, {mean})), or mean={float(mean)}",
            )
        if shape < 2:
            _require_shape("normal", (shape, mean, std), "shape, mean, std")
    backend = _device(device)
    chosen, dims = float_type(dtype, backend, "normal"), sizes(shape, "normal")
    check_shape(dims, backend, "normal")
    center: Any = number(mean, "mean", "normal")
    spread: Any = number(std, "std", "normal")
    most = finfo(chosen).max
    if abs(center) > most or spread > most:  # one by one: a recording is for their order else
        got = f"mean {mean}, std {std}"
        raise ArgumentError("normal", f"not of {chosen}", got=got, expected=f"at most {most}")
    pairs = (prod(dims) + 1) // 2
    key, counter = _draw(pairs * (4 if chosen.name == "float64" else 2))
    out = backend.ops.random_normal(dims, center, spread, chosen, key, counter)
    return Tensor(out, backend)


@as_called
def bernoulli(
    shape: int | Sequence[int], probability: float = 0.5, *, device: Device = None
) -> Tensor[Bool]:
    """Return True with the given probability, element by element.

    Raises:
        ArgumentError: for what is no probability; for a tensor of several, with what to type.

    Example:
        >>> bernoulli((2,), 1.0).tolist()
        [True, True]
    """
    hint = "px.random.uniform(probability.shape) < probability"
    _require_numbers("bernoulli", hint, probability)
    if not 0.0 <= probability <= 1.0:
        raise ArgumentError(
            "bernoulli", "not a probability", got=probability, expected="0 <= p <= 1"
        )
    unit = uniform(shape, dtype="float32", device=device)
    if _FINE <= probability <= 1 - _FINE:
        return unit < probability
    # A second number tells between the two steps of the first around the probability.
    given = number(probability, "probability", "bernoulli")
    step, part = call(_whole_steps, given), call(_part_of_a_step, given)
    rest = uniform(shape, dtype="float32", device=device)
    return (unit < step) | ((unit == step) & (rest < part))


def _whole_steps(probability: float) -> float:
    return floor(probability * 2.0**24) / 2.0**24


def _part_of_a_step(probability: float) -> float:
    return float(probability * 2.0**24 % 1)


def randint(
    shape: int | Sequence[int],
    low: int,
    high: int = _MISSING,
    *,
    dtype: DTypeLike | None = None,
    device: Device = None,
) -> Tensor[Int]:
    """Return integers in [low, high), each with nearly equal probability.

    No probability is off by more than a part in 2**16: a range up to there is taken of a word of
    32 bits, a wider one of 64 bits, and of 96 beyond 2**32, where the device draws these.

    Raises:
        ArgumentError: when the range is empty, or wider than the device draws.
        DTypeError: when the type does not hold the range.
        KindError: for a type that is no integer.
        UnknownArgumentError: for two numbers alone, with what to type.

    Example:
        >>> bool((randint((100,), 0, 10) < 10).all())
        True
    """
    if high is _MISSING:
        raise _two_alone(shape, low)
    backend = _device(device)
    if isinstance(high, Sequence) or (type(shape) is int and shape < min(low, 2)):
        _require_shape("randint", (shape, low, high), "shape, low, high")
    bits = 63 if uint64 in backend.dtypes else 31
    if not 0 < high - low <= 2**bits:
        expected = f"0 < high - low <= 2**{bits}"
        raise ArgumentError("randint", "range", got=(low, high), expected=expected)
    dims = sizes(shape, "randint")
    check_shape(dims, backend, "randint")
    chosen = backend.default_int if dtype is None else as_dtype(dtype, "randint")
    require_dtype(chosen, backend, "randint")
    if chosen.kind != "Int":
        raise KindError("randint", "not an integer type", got=chosen, expected="Int")
    for end in (low, high - 1):
        number_for(end, chosen, "randint")
    # The offset wraps into place: int8 does not hold 200, but it holds -100 + 200.
    offsets = _offsets(prod(dims), high - low, backend).astype(chosen).reshape(dims)
    return offsets + low


def _two_alone(shape: Any, low: Any) -> UnknownArgumentError:
    """NumPy's order without a shape, PyTorch's without a low end, or ours without one."""
    got = f"{shape}, {low}"
    if isinstance(shape, Sequence) or isinstance(low, Sequence):
        dims, end = (shape, low) if isinstance(shape, Sequence) else (low, shape)
        shape, low, dims = 0, end, tuple(dims)
    else:
        dims = ()
    return UnknownArgumentError(
        "randint",
        "an argument is missing",
        got=got,
        expected="shape, low, high",
        hint=f"px.random.randint({dims}, {shape}, {low})",
    )


def _offsets(count: int, span: int, backend: Backend) -> Tensor[Any]:
    """Whole numbers below ``span``: ``floor(span·u)``, the words being digits of u in [0, 1)."""
    each = 1 if span <= 2**16 else 2 if span <= 2**32 else 3
    words = _words(count * each, backend)
    if each == 1:
        return words % span
    digits = [words[place::each] for place in reversed(range(each))]
    wide = uint64 in backend.dtypes
    digits = [digit.astype(uint64) for digit in digits] if wide else digits
    out, times = digits[0].zeros(), _times_wide if wide else _times_narrow
    for digit in digits:
        out = times(digit, span, out)
    return out


def _times_wide(digit: Tensor[Any], span: int, carry: Tensor[Any]) -> Tensor[Any]:
    """``(digit·span + carry) >> 32`` in uint64, of a digit below 2**32 and a carry below span."""
    high, low = divmod(span, 2**32)
    if span <= 2**32:
        return (digit * span + carry) >> 32
    return digit * high + (carry >> 32) + ((digit * low + (carry & 0xFFFFFFFF)) >> 32)


def _times_narrow(digit: Tensor[Any], span: int, carry: Tensor[Any]) -> Tensor[Any]:
    """The same in uint32, by halves of words; the span is below 2**32."""
    high, low = divmod(span, 2**16)
    first, second = digit & 0xFFFF, digit >> 16
    middle = second * low + ((first * low) >> 16)
    other = first * high + (middle & 0xFFFF)
    above = second * high + (middle >> 16) + (other >> 16)
    below = digit * span
    return above + (below + carry < below).astype(above.dtype)


@as_called
def permutation(n: int, *, device: Device = None) -> Tensor[Int]:
    """Return 0..n-1 in random order.

    Raises:
        ArgumentError: for a tensor, of which it is no order, with what to type.

    Example:
        >>> sorted(permutation(4).tolist())
        [0, 1, 2, 3]
    """
    _require_numbers("permutation", "x[px.random.permutation(len(x))]", n)
    backend = _device(device)
    (n,) = sizes(n, "permutation")
    return _words(n, backend).argsort()


def first_of_permutation(n: int, count: int, device: Device) -> Tensor[Int]:
    """Return ``permutation(n)[:count]``, without putting the others in order."""
    _, places = _words(n, _device(device)).topk(count, largest=False)
    return places


def _words(count: int, backend: Backend) -> Tensor[Any]:
    key, counter = _draw(count)
    return Tensor(backend.ops.random_bits(count, key, counter, uint32), backend)
