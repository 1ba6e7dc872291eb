"""``gradcheck``: derivatives against central differences, of any order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from typing import Any, NamedTuple

import numpy as np

from phlox_tensor import ArgumentError, GradientError, Tensor, asarray, finfo, tree

from ._levels import as_tensor, base_device, describe, is_float, require_arguments
from ._transform import vjp

Array = np.ndarray[Any, Any]
Function = Callable[..., Any]


class _Settings(NamedTuple):
    eps: float | None
    rtol: float | None
    atol: float | None
    weighted: bool = False  # whether what is differentiated is a sum of outputs by random weights


def gradcheck(
    function: Function,
    args: Any,
    order: int = 1,
    *,
    eps: float | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    kwargs: dict[str, Any] | None = None,
) -> bool:
    """Compare the derivatives of ``function`` at ``args`` with central differences.

    Several outputs are weighted with fixed random numbers and summed, so that one pass covers them;
    each element of each Float tensor among ``args`` is moved by ``eps``. ``order=2`` checks the
    gradient as a function in the same way, and so on. Use float64 where the device has it.

    Args:
        function: gives a Float tensor, or a tuple, list or dict of tensors.
        args: the arguments; tuples, lists and dicts of tensors among them.
        order: the highest derivative to check.
        eps: the step, relative to elements larger than 1; by default the cube root of the
            machine epsilon, where errors of rounding and of the formula are equally small.
        rtol: allowed relative difference; by default 50 times the root of the machine epsilon.
        atol: allowed absolute difference; by default the same.
        kwargs: further arguments by name, which are constants.

    Returns:
        True.

    Raises:
        ArgumentError: for an order below 1.
        GradientError: naming the element that differs most, and the two values.

    Example:
        >>> import phlox_tensor as pt
        >>> x = pt.asarray([1.0, 2.0], device=pt.Numpy(float="float64"))
        >>> gradcheck(lambda x: (x.exp() * x).sum(), (x,), order=2)
        True
    """
    if type(order) is not int or order < 1:
        raise ArgumentError("gradcheck", "order", got=repr(order), expected="at least 1")
    if not isinstance(args, Tensor):
        require_arguments("gradcheck", args)
    named = kwargs or {}
    given = (args,) if isinstance(args, Tensor) else tuple(args)
    base = base_device("gradcheck", (given, named))
    given = tree.map(lambda leaf: as_tensor(leaf, base), given)
    places = [leaf for leaf in tree.leaves(given) if is_float(leaf)]
    if not places:
        raise GradientError(
            "gradcheck",
            "nothing to differentiate",
            got=", ".join(describe(each) for each in given) or "no arguments",
            expected="Float tensors",
            hint='x.astype("float64")',
        )

    def flat(*tensors: Tensor[Any]) -> tuple[Tensor[Any], ...]:
        rest = iter(tensors)
        out = function(*tree.map(lambda t: next(rest) if is_float(t) else t, given), **named)
        return tuple(leaf for leaf in tree.leaves(out) if is_float(leaf))

    if eps is not None and not 0 < eps < inf:
        raise ArgumentError("gradcheck", "a step that goes nowhere", got=eps, expected="eps > 0")
    _check(flat, places, 1, order, _Settings(eps, rtol, atol))
    return True


def _check(
    function: Function, xs: list[Tensor[Any]], order: int, last: int, settings: _Settings
) -> None:
    values, pull = vjp(function, *xs)
    if not values:
        raise GradientError("gradcheck", "the function gives no Float tensor")
    random = np.random.default_rng(len(xs))
    single = sum(v.size for v in values) == 1  # whose numbers are to be read as they are
    weights = [np.ones(v.shape) if single else random.standard_normal(v.shape) for v in values]
    seeds = tuple(
        asarray(w, dtype=v.dtype, device=v.device) for w, v in zip(weights, values, strict=True)
    )
    gradients = pull(seeds)
    for number, (x, gradient) in enumerate(zip(xs, gradients, strict=True)):
        _compare(function, xs, number, x, gradient, weights, order, settings)
    if order < last:

        def gradient_of(*tensors: Tensor[Any]) -> tuple[Tensor[Any], ...]:
            points, cotangents = tensors[: len(xs)], tensors[len(xs) :]
            return vjp(function, *points)[1](tuple(cotangents))

        deeper = settings if single else settings._replace(weighted=True)
        _check(gradient_of, [*xs, *seeds], order + 1, last, deeper)


def _compare(
    function: Function,
    xs: Sequence[Tensor[Any]],
    number: int,
    x: Tensor[Any],
    gradient: Tensor[Any],
    weights: Sequence[Array],
    order: int,
    settings: _Settings,
) -> None:
    epsilon = float(finfo(x.dtype).eps)
    step = epsilon ** (1 / 3) if settings.eps is None else settings.eps
    tolerance = 50 * epsilon**0.5
    rtol = tolerance if settings.rtol is None else settings.rtol
    atol = tolerance if settings.atol is None else settings.atol
    point = x.numpy().astype(np.float64)
    found = gradient.numpy().astype(np.float64)
    wanted = np.zeros(point.shape)

    def slopes(index: tuple[int, ...]) -> list[Array]:
        size = step * max(1.0, abs(float(point[index])))
        low, high = point.copy(), point.copy()
        low[index] -= size
        high[index] += size
        low, high = (a.astype(x.dtype.numpy).astype(np.float64) for a in (low, high))
        # Subtracted before they are summed: large outputs that stay drown nothing.
        pairs = zip(outputs(high), outputs(low), strict=True)
        return [(above - below) / (high[index] - low[index]) for above, below in pairs]

    def outputs(array: Array) -> list[Array]:
        moved = asarray(array, dtype=x.dtype, device=x.device)
        outs = function(*xs[:number], moved, *xs[number + 1 :])
        return [out.numpy().astype(np.float64) for out in outs]

    for index in np.ndindex(point.shape):
        moved = zip(weights, slopes(index), strict=True)
        wanted[index] = sum(float(np.sum(w * slope)) for w, slope in moved)
    gap = np.abs(found - wanted) - rtol * np.abs(wanted) - atol
    gap = np.where(np.isnan(gap), np.inf, gap)
    if gap.size and gap.max() > 0:
        worst = np.unravel_index(int(np.argmax(gap)), gap.shape)
        place = tuple(int(i) for i in worst)
        what = f"derivative of order {order} differs at argument {number}, element {place}"
        got, right = float(found[worst]), float(wanted[worst])
        several = sum(w.size for w in weights) > 1  # a sum by weights says little to a reader
        entry = several and _entry(function, xs, (number, *place), slopes(place), rtol, atol)
        if entry:
            where, got, right = entry
            what += f", of {where}"
        random = settings.weighted or (several and not entry)
        by = ", of the outputs by random weights" if random else ""
        raise GradientError(
            "gradcheck", what, got=got, expected=f"{right} by central differences{by}"
        )


def _entry(
    function: Function,
    xs: Sequence[Tensor[Any]],
    place: tuple[int, ...],
    slopes: Sequence[Array],
    rtol: float,
    atol: float,
) -> tuple[str, float, float] | None:
    """The first element of an output whose derivative differs: where it is, and both numbers."""
    values, pull = vjp(function, *xs)
    for at, slope in enumerate(slopes):
        for index in np.ndindex(slope.shape):
            seeds = [np.zeros(v.shape) for v in values]
            seeds[at][index] = 1.0
            ones = (
                asarray(s, dtype=v.dtype, device=v.device)
                for s, v in zip(seeds, values, strict=True)
            )
            found = float(pull(tuple(ones))[place[0]].numpy()[place[1:]])
            wanted = float(slope[index])
            if not abs(found - wanted) <= rtol * abs(wanted) + atol:
                return f"output {at}, element {index}", found, wanted
    return None
