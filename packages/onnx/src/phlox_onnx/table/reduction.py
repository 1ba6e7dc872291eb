"""Ops that make many elements one, and running sums."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any, Final

import numpy as np

import phlox_tensor as px
from phlox_tensor import Tensor

from ._row import Host, Ints, Row, row, whole
from .axes import axis_of, index_type

T = Tensor[Any]


def _axes(data: T, axes: Ints | None, empty_is_none: int) -> tuple[int, ...] | None:
    """The axes to reduce, or None for none at all."""
    if not axes:
        return None if empty_is_none else tuple(range(data.ndim))
    return tuple(axis_of("Reduce", axis, data.ndim) for axis in axes)


def reduced(
    function: Callable[..., Any],
    before: Callable[[Any], Any] | None = None,
    after: Callable[[Any], Any] | None = None,
) -> Callable[..., Any]:
    """The row of a reduction, with what is done to elements before and to the result after."""

    def run(
        data: T, axes: Ints | None = None, *, keepdims: int = 1, noop_with_empty_axes: int = 0
    ) -> T:
        chosen = _axes(data, axes, noop_with_empty_axes)
        out = before(data) if before else data
        if chosen:
            out = function(out, axis=chosen, keepdims=bool(keepdims))
        elif chosen is None and before is None and after is None:
            return out
        return (after(out) if after else out).astype(data.dtype)

    return run  # fmt: skip


def _extreme(name: str, low: bool) -> Callable[..., Any]:
    """Largest or smallest element; of none it is the least or greatest that the type has."""

    def run(x: T, *, axis: Any, keepdims: bool) -> T:
        if x.dtype.kind == "Bool":
            return (x.any if low else x.all)(axis=axis, keepdims=keepdims)
        if any(x.shape[a] == 0 for a in axis):
            shape = [1 if a in axis else n for a, n in enumerate(x.shape)]
            if not keepdims:
                shape = [n for a, n in enumerate(x.shape) if a not in axis]
            return px.full(shape, _least(x, low), dtype=x.dtype, device=x.device)
        return getattr(x, name)(axis=axis, keepdims=keepdims)

    return run


def _least(x: T, low: bool) -> Any:
    if x.dtype.kind == "Float":
        return -inf if low else inf
    limits = px.iinfo(x)
    return limits.min if low else limits.max


def _host_prod(
    data: Host, axes: Host | None = None, *, keepdims: int = 1, noop_with_empty_axes: int = 0
) -> Any:
    if (axes is None or not axes.size) and noop_with_empty_axes:
        return data
    chosen = whole(axes) if axes is not None and axes.size else None
    return np.asarray(np.prod(data, axis=chosen, keepdims=bool(keepdims)), data.dtype)


def _place(name: str) -> Callable[..., Any]:
    def run(data: T, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> T:
        if not select_last_index:
            return getattr(data, name)(axis=axis, keepdims=bool(keepdims)).astype(index_type(data))
        found = getattr(data.flip(axis=axis), name)(axis=axis, keepdims=bool(keepdims))
        return (data.shape[axis] - 1 - found).astype(index_type(data))

    return run


def _shifted(x: T, axis: int, exclusive: int, start: float) -> T:
    """The line of a running sum with a first element, and without the last one."""
    if not exclusive:
        return x
    n = x.shape[axis]
    shape = [1 if i == axis else k for i, k in enumerate(x.shape)]
    first = px.full(shape, start if x.dtype.kind == "Float" else int(start), dtype=x.dtype,
                    device=x.device)  # fmt: skip
    cut = tuple(slice(0, n - 1) if i == axis else slice(None) for i in range(x.ndim))
    return px.concat([first, x[cut]], axis=axis)


def _running(function: Callable[..., Any], start: float) -> Callable[..., Any]:
    def run(x: T, axis: Ints, *, exclusive: int = 0, reverse: int = 0) -> T:
        along = axis_of("Cum", axis[0], x.ndim)
        line = x.flip(axis=along) if reverse else x
        out = function(_shifted(line, along, exclusive, start), axis=along).astype(x.dtype)
        return out.flip(axis=along) if reverse else out

    return run


def top_k(X: T, K: Ints, *, axis: int = -1, largest: int = 1, sorted: int = 1) -> tuple[T, T]:
    """The elements come in order, whether that is asked for or not."""
    values, places = px.topk(X, K[0], axis=axis, largest=bool(largest))
    return values, places.astype(index_type(X))


def _log_sum_exp(x: T, *, axis: Any, keepdims: bool) -> T:
    if x.dtype.kind != "Float":
        return x.astype(x.device.default_float).exp().sum(axis=axis, keepdims=keepdims).log()
    if any(x.shape[a] == 0 for a in axis):
        return x.sum(axis=axis, keepdims=keepdims) - inf
    return x.logsumexp(axis=axis, keepdims=keepdims)


def _mean(x: T, *, axis: Any, keepdims: bool) -> T:
    if x.dtype.kind == "Float":
        return x.mean(axis=axis, keepdims=keepdims)
    count = int(np.prod([x.shape[a] for a in axis]))
    return x.sum(axis=axis, keepdims=keepdims) // count


def _log(x: T) -> T:
    return x.log() if x.dtype.kind == "Float" else x.astype(x.device.default_float).log()


def _root(x: T) -> T:
    return x.sqrt() if x.dtype.kind == "Float" else x.astype(x.device.default_float).sqrt()


def _sum(x: T, *, axis: Any, keepdims: bool) -> T:
    return x.sum(axis=axis, keepdims=keepdims)


def _prod(x: T, *, axis: Any, keepdims: bool) -> T:
    return x.prod(axis=axis, keepdims=keepdims)


ROWS: Final[dict[str, Row]] = {
    "ArgMax": row(13, _place("argmax")),
    "ArgMin": row(13, _place("argmin")),
    "CumProd": row(26, _running(px.cumulative_prod, 1.0)),
    "CumSum": row(14, _running(px.cumsum, 0.0)),
    "ReduceL1": row(18, reduced(_sum, px.abs), scalar=True),
    "ReduceL2": row(18, reduced(_sum, px.square, _root), scalar=True),
    "ReduceLogSum": row(28, reduced(_sum, None, _log), scalar=True),
    "ReduceLogSumExp": row(28, reduced(_log_sum_exp), scalar=True),
    "ReduceMax": row(20, reduced(_extreme("max", True)), scalar=True),
    "ReduceMean": row(18, reduced(_mean), scalar=True),
    "ReduceMin": row(20, reduced(_extreme("min", False)), scalar=True),
    "ReduceProd": row(18, reduced(_prod), host=_host_prod, scalar=True),
    "ReduceSum": row(13, reduced(_sum), scalar=True),
    "ReduceSumSquare": row(18, reduced(_sum, px.square), scalar=True),
    "TopK": row(24, top_k),
}
