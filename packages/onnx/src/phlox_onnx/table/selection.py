"""Elements chosen by indices, masks and scores."""

from __future__ import annotations

from typing import Any, Final, Literal

import numpy as np

import phlox_tensor as px
from phlox_tensor import Tensor

from ._row import Host, Ints, Raw, Row, Scalar, row
from .axes import axis_of, index_type

T = Tensor[Any]


def gather(data: T, indices: T, *, axis: int = 0) -> T:
    return data.take(indices, axis=axis)


def _host_gather(data: Host, indices: Host, *, axis: int = 0) -> Host:
    return np.take(data, indices, axis=axis)


def gather_elements(data: T, indices: T, *, axis: int = 0) -> T:
    if data.shape != indices.shape:
        data = data[_corner(data, indices, axis)]
    return data.take_along_axis(indices, axis=axis)


def _corner(data: T, indices: T, axis: int) -> tuple[slice, ...]:
    """What the indices can reach: they may cover less of the other axes."""
    axis = axis_of("Gather", axis, data.ndim)
    return tuple(slice(None) if i == axis else slice(0, n) for i, n in enumerate(indices.shape))


def gather_nd(data: T, indices: T, *, batch_dims: int = 0) -> T:
    """Rows of indices point at elements or slices, behind axes that line up."""
    batch = indices.shape[:batch_dims]
    sizes = (*indices.shape[:-1], 1)
    columns = [indices]
    for axis in reversed(range(batch_dims)):
        line = px.arange(batch[axis], device=indices.device).astype(indices.dtype)
        shape = tuple(n if i == axis else 1 for i, n in enumerate(sizes))
        columns.insert(0, line.reshape(shape).broadcast_to(sizes))
    return px.gather_nd(data, px.concat(columns, axis=-1) if batch else indices)


Reduction = Literal["none", "add", "mul", "max", "min"]


def _update(reduction: Reduction) -> str:
    return "set" if reduction == "none" else reduction


def scatter_elements(
    data: T, indices: T, updates: T, *, axis: int = 0, reduction: Reduction = "none"
) -> T:
    axis = axis_of("Scatter", axis, data.ndim)
    corner = _corner(data, indices, axis)
    part = data[corner] if data.shape != indices.shape else data
    done = part.scatter(indices, updates, axis=axis, update=_update(reduction))
    return done if part.shape == data.shape else data.at[corner].set(done)


def scatter(data: T, indices: T, updates: T, *, axis: int = 0) -> T:
    """ScatterElements under its name of before version 11."""
    return scatter_elements(data, indices, updates, axis=axis)


def scatter_nd(data: T, indices: T, updates: T, *, reduction: Reduction = "none") -> T:
    return px.scatter_nd(data, indices, updates, _update(reduction))


def tensor_scatter(
    past_cache: T,
    update: T,
    write_indices: Host | None = None,
    *,
    axis: int = -2,
    mode: Literal["linear", "circular"] = "linear",
) -> T:
    """New rows in a cache, from a place of its own in each batch, round the end if circular."""
    axis = axis_of("TensorScatter", axis, past_cache.ndim)
    size, count = past_cache.shape[axis], update.shape[axis]
    batch = past_cache.shape[0]
    first = np.zeros(batch, np.int64) if write_indices is None else write_indices
    places = first.reshape(-1, 1) + np.arange(count)
    if mode == "circular":
        places = places % size
    sizes = [1] * update.ndim
    sizes[0], sizes[axis] = batch, count
    indices = np.broadcast_to(places.reshape(sizes), update.shape)
    at = px.asarray(indices, dtype=update.device.default_int, device=update.device)
    corner = tuple(slice(None) if i == axis else slice(0, n) for i, n in enumerate(update.shape))
    done = past_cache[corner].scatter(at, update, axis=axis)
    return done if done.shape == past_cache.shape else past_cache.at[corner].set(done)


def one_hot(indices: T, depth: Scalar, values: T, *, axis: int = -1) -> T:
    """Indices outside of the classes give rows of the off value."""
    count = int(depth)
    whole = indices if indices.dtype.kind == "Int" else indices.astype(index_type(indices))
    whole = (whole < 0).where(whole + count, whole)
    axis = axis_of("OneHot", axis, indices.ndim + 1)
    line = px.arange(count, device=indices.device).astype(whole.dtype)
    line = line.reshape((count, *(1,) * (indices.ndim - axis)))
    hot = whole.expand_dims(axis=axis) == line
    return hot.where(values[1], values[0])


def compress(input: T, condition: Host, *, axis: int | None = None) -> T:
    places = np.nonzero(condition)[0]
    data = input.flatten() if axis is None else input
    at = px.asarray(places, dtype=data.device.default_int, device=data.device)
    return data.take(at, axis=0 if axis is None else axis)


def non_zero(X: T) -> T:
    """The number of results depends on the elements, so they are read."""
    if not X.ndim:
        count = 1 if bool((X != 0) if X.dtype.kind != "Bool" else X) else 0
        return px.full((0, count), 0, dtype=index_type(X), device=X.device)
    return px.stack(list(px.nonzero(X)), axis=0).astype(index_type(X))


def host_unique(X: Host, axis: int | None, sorted_: int) -> tuple[Any, ...]:
    values, first, inverse, counts = np.unique(
        X, return_index=True, return_inverse=True, return_counts=True, axis=axis
    )
    inverse = inverse.reshape(-1)
    if not sorted_:
        order = np.argsort(first)
        rank = np.argsort(order)
        values = np.take(values, order, axis=0 if axis is None else axis)
        first, inverse, counts = first[order], rank[inverse], counts[order]
    return values, first, inverse, counts


def unique(X: Raw, *, axis: int | None = None, sorted: int = 1, device: Any) -> tuple[Any, ...]:
    """How many there are depends on the elements, so they are read."""
    host = X if isinstance(X, np.ndarray) else X.numpy()
    values, *places = host_unique(host, axis, sorted)
    out = px.asarray(values, device=device)
    return out, *(px.asarray(p.astype(np.int64), device=device) for p in places)


def _corners(boxes: Host, center: int) -> Host:
    if center:
        x, y, w, h = (boxes[..., i] for i in range(4))
        return np.stack([y - h / 2, x - w / 2, y + h / 2, x + w / 2], axis=-1)
    low = np.minimum(boxes[..., :2], boxes[..., 2:])
    return np.concatenate([low, np.maximum(boxes[..., :2], boxes[..., 2:])], axis=-1)


def _kept(boxes: Host, scores: Host, most: int, overlap: float, least: float | None) -> list[int]:
    order = np.argsort(-scores, kind="stable")
    if least is not None:
        order = order[scores[order] > least]
    area = np.prod(boxes[:, 2:] - boxes[:, :2], axis=1)
    out: list[int] = []
    for i in order:
        if len(out) >= most:
            break
        low = np.maximum(boxes[i, :2], boxes[out, :2])
        high = np.minimum(boxes[i, 2:], boxes[out, 2:])
        common = np.prod(np.maximum(high - low, 0), axis=1)
        if not (common > overlap * (area[i] + area[out] - common)).any():
            out.append(int(i))
    return out


def non_max_suppression(
    boxes: Host,
    scores: Host,
    max_output_boxes_per_class: Ints | None = None,
    iou_threshold: Scalar | None = None,
    score_threshold: Scalar | None = None,
    *,
    center_point_box: int = 0,
    device: Any,
) -> T:
    """How many boxes stay depends on them, so all are read at once, and not class by class."""
    most = max_output_boxes_per_class[0] if max_output_boxes_per_class else 0
    found: list[list[int]] = []
    for image in range(scores.shape[0]):
        corners = _corners(boxes[image], center_point_box)
        for kind in range(scores.shape[1]):
            kept = _kept(corners, scores[image, kind], most, iou_threshold or 0, score_threshold)
            found += [[image, kind, i] for i in kept]
    return px.asarray(np.array(found, np.int64).reshape(-1, 3), device=device)


ROWS: Final[dict[str, Row]] = {
    "Compress": row(28, compress),
    "Gather": row(13, gather, host=_host_gather, trained="data", movement=True, scalar=True),
    "GatherElements": row(13, gather_elements),
    "GatherND": row(13, gather_nd, scalar=True),
    "NonMaxSuppression": row(11, non_max_suppression),
    "NonZero": row(13, non_zero),
    "OneHot": row(28, one_hot, file_sized=True),
    "Scatter": row(11, scatter),
    "ScatterElements": row(18, scatter_elements),
    "ScatterND": row(18, scatter_nd),
    "TensorScatter": row(24, tensor_scatter),
    "Unique": row(28, unique),
}
