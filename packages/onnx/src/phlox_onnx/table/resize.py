"""Resize and regions: elements at places between the elements."""

from __future__ import annotations

from itertools import product
from typing import Any, Final

import numpy as np

import phlox_tensor as px
from phlox_tensor import Tensor

from .._errors import OnnxError
from .._limits import refuse_long
from .._row import Host, Ints, Row, since

T = Tensor[Any]


def _places(count: int, n: int, scale: float, mode: str, region: tuple[float, float]) -> Any:
    """Where each element of the result lies in a line of n."""
    refuse_long("Resize", count)
    x = np.arange(count, dtype=np.float64)
    wide = scale * n
    half = (x + 0.5) / scale - 0.5
    if mode == "align_corners":
        return np.zeros(count) if wide == 1 else x * (n - 1) / (wide - 1)
    if mode == "asymmetric":
        return x / scale
    if mode == "tf_crop_and_resize":
        span = (region[1] - region[0]) * (n - 1)
        inside = np.full(count, span / 2) if wide == 1 else x * span / (wide - 1)
        return inside + region[0] * (n - 1)
    if mode == "half_pixel_symmetric":
        return n / 2 * (1 - count / wide) + half
    if mode == "pytorch_half_pixel":
        return np.full(count, -0.5) if wide == 1 else half
    if mode == "half_pixel":
        return half
    if mode == "tf_half_pixel_for_nn":
        return (x + 0.5) / scale
    raise OnnxError("Resize", "unknown mode", got=repr(mode), expected="half_pixel")


def _keys(x: Any, a: float) -> Any:
    """Keys' cubic kernel."""
    x = np.abs(x)
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return np.where(x <= 1, near, np.where(x < 2, far, 0.0))


def _nearest(ratio: Any, mode: str) -> Any:
    """The weight of the right one of two neighbors; a place on an element is at its ratio 1."""
    on = ratio == 1
    choices = {
        "round_prefer_floor": ratio > 0.5,
        "round_prefer_ceil": ratio >= 0.5,
        "floor": on,
        "ceil": ratio > 0,
    }
    if mode not in choices:
        raise OnnxError("Resize", "unknown nearest_mode", got=repr(mode), expected="floor")
    right = (choices[mode] | on).astype(np.float64)
    return np.stack([1 - right, right], axis=1)


def _taps(
    at: Any, n: int, scale: float, mode: str, nearest: str, a: float, antialias: int, inside: int
) -> tuple[Any, Any]:
    """For each place the elements that are read, and their weights."""
    first = np.ceil(at) - 1
    ratio = at - first
    if mode == "nearest":
        offsets = np.arange(2)
        weights = _nearest(ratio, nearest)
    else:
        reach = {"linear": 1, "cubic": 2}[mode]
        narrow = min(scale, 1.0) if antialias else 1.0
        start = int(np.floor(-reach / narrow) + 1)
        offsets = np.arange(start, start + 2 * (1 - start))
        off = (offsets - ratio[:, None]) * narrow
        weights = np.clip(1 - np.abs(off), 0, 1) if mode == "linear" else _keys(off, a)
        if antialias:
            weights = weights / weights.sum(axis=1, keepdims=True)
    positions = (first[:, None] + offsets).astype(np.int64)
    if inside:
        weights = np.where((positions >= 0) & (positions < n), weights, 0.0)
        weights = weights / weights.sum(axis=1, keepdims=True)
    return np.clip(positions, 0, n - 1), weights


def _one_axis(x: T, axis: int, positions: Any, weights: Any) -> T:
    device = x.device
    shape = (-1, *(1,) * (x.ndim - 1 - axis))
    total = None
    for at, weight in zip(positions.T, weights.T, strict=True):
        if not weight.any():
            continue
        indices = px.asarray(at, dtype=device.default_int, device=device)
        part = x.take(indices, axis=axis)
        if not (weight == 1).all():
            part = part * px.asarray(weight.reshape(shape), dtype=x.dtype, device=device)
        total = part if total is None else total + part
    assert total is not None
    return total


def _sizes(
    shape: tuple[int, ...], axes: Ints, scales: Host | None, sizes: Ints | None, policy: str
) -> tuple[list[int], list[float]]:
    """Sizes and scales of all axes."""
    out, by = list(shape), [1.0] * len(shape)
    if sizes is not None and len(sizes):
        ratios = [s / shape[axis] for axis, s in zip(axes, sizes, strict=True)]
        if policy != "stretch":
            one = min(ratios) if policy == "not_larger" else max(ratios)
            ratios = [one] * len(axes)
            sizes = tuple(int(np.floor(one * shape[axis] + 0.5)) for axis in axes)
        for axis, s, ratio in zip(axes, sizes, ratios, strict=True):
            out[axis], by[axis] = s, ratio
        return out, by
    if scales is None:
        raise OnnxError("Resize", "neither scales nor sizes", expected="one of them")
    for axis, scale in zip(axes, scales.reshape(-1), strict=True):
        out[axis], by[axis] = int(np.floor(shape[axis] * float(scale))), float(scale)
    return out, by


def _simple(mode: str, where: str, nearest: str, a: float) -> tuple[str, bool] | None:
    """What ``interpolate`` calls a way of counting, if it has it."""
    if mode == "nearest":
        return ("nearest", False) if (where, nearest) == ("asymmetric", "floor") else None
    if mode == "cubic" and a != -0.75:
        return None
    corners = where == "align_corners"
    return (mode, corners) if corners or where in ("half_pixel", "pytorch_half_pixel") else None


def resize(
    X: T,
    roi: Host | None = None,
    scales: Host | None = None,
    sizes: Ints | None = None,
    *,
    antialias: int = 0,
    axes: Ints | None = None,
    coordinate_transformation_mode: str = "half_pixel",
    cubic_coeff_a: float = -0.75,
    exclude_outside: int = 0,
    extrapolation_value: float = 0.0,
    keep_aspect_ratio_policy: str = "stretch",
    mode: str = "nearest",
    nearest_mode: str = "round_prefer_floor",
) -> T:
    """Axis by axis a sum of elements, each read at its places."""
    where = coordinate_transformation_mode
    chosen = tuple(a % X.ndim for a in (axes or range(X.ndim)))
    if scales is not None and not scales.size:
        scales = None
    out, by = _sizes(X.shape, chosen, scales, sizes, keep_aspect_ratio_policy)
    exact = all(abs(n * s - m) < 1e-6 for n, s, m in zip(X.shape, by, out, strict=True))
    simple = _simple(mode, where, nearest_mode, cubic_coeff_a)
    images = X.ndim == 4 and tuple(out[:2]) == X.shape[:2] and min(out) > 1
    images = images and X.dtype.kind == "Float" and out[2:] != list(X.shape[2:])
    if simple and images and exact and not (antialias or exclude_outside):
        return px.interpolate(X, tuple(out[2:]), *simple)
    wide = X if X.dtype.kind == "Float" or mode == "nearest" else X.astype(px.float32)
    for axis in reversed(chosen):
        region = (0.0, 1.0)
        if roi is not None and roi.size:
            i = chosen.index(axis)
            region = (float(roi[i]), float(roi[i + len(chosen)]))
        n, count = X.shape[axis], out[axis]
        if n == count and by[axis] == 1 and where != "tf_crop_and_resize":
            continue
        at = _places(count, n, by[axis], where, region)
        a = cubic_coeff_a
        taps = _taps(at, n, by[axis], mode, nearest_mode, a, antialias, exclude_outside)
        wide = _one_axis(wide, axis, *taps)
        if where == "tf_crop_and_resize":
            beyond = (at < 0) | (at > n - 1)
            shape = (-1, *(1,) * (X.ndim - 1 - axis))
            mask = px.asarray(beyond.reshape(shape), device=X.device)
            wide = mask.where(extrapolation_value, wide)
    return wide if wide.dtype is X.dtype else wide.round().astype(X.dtype)


def _samples(
    rois: Host, size: int, cells: int, ratio: int, axis: int, half: float, least: float
) -> tuple[Any, Any]:
    """Where each box reads along an axis: (boxes, cells, samples), and how many count."""
    low, high = rois[:, axis] - half, rois[:, axis + 2] - half
    length = np.maximum(high - low, least) if least else high - low
    cell = length / cells
    counts = np.full(len(rois), ratio) if ratio else np.ceil(length / cells).astype(int)
    most = max(1, int(counts.max(initial=1)))
    refuse_long("RoiAlign", max(1, len(rois)), cells, most)
    k = np.arange(most)
    share = (k + 0.5) / np.maximum(counts, 1)[:, None]
    at = low[:, None, None] + cell[:, None, None] * (np.arange(cells)[:, None] + share[:, None])
    return at, k < counts[:, None]


def roi_align(
    X: T,
    rois: Host,
    batch_indices: Host,
    *,
    coordinate_transformation_mode: str = "half_pixel",
    mode: str = "avg",
    output_height: int = 1,
    output_width: int = 1,
    sampling_ratio: int = 0,
    spatial_scale: float = 1.0,
) -> T:
    """Boxes are read, since how often a cell is sampled follows from its size."""
    aligned = coordinate_transformation_mode == "half_pixel"
    half, least = (0.5, 0.0) if aligned else (0.0, 1.0)
    boxes = rois.astype(np.float64) * spatial_scale
    height, width = X.shape[2:]
    found = []
    cells = ((1, output_height, height), (0, output_width, width))
    (ys, in_y), (xs, in_x) = (
        _samples(boxes, n, count, sampling_ratio, axis, half, least) for axis, count, n in cells
    )
    for i, image in enumerate(batch_indices.astype(int)):
        y = ys[i][:, in_y[i]]
        x = xs[i][:, in_x[i]]
        picture = X[int(image)]
        found.append(_cells(picture, y, x, height, width, mode))
    return px.stack(found, axis=0)


def _line(at: Any, n: int) -> tuple[Any, Any]:
    """Two neighbors and their weights, none for what is beyond the edge by more than one."""
    inside = (at >= -1) & (at <= n)
    clamped = np.clip(at, 0, n - 1)
    low = np.minimum(np.floor(clamped), n - 1).astype(int)
    high = np.minimum(low + 1, n - 1)
    ratio = clamped - low
    weights = np.stack([(1 - ratio) * inside, ratio * inside], axis=-1)
    return np.stack([low, high], axis=-1), weights


def _cells(picture: T, y: Any, x: Any, height: int, width: int, mode: str) -> T:
    """One box: (C, cells of y, cells of x)."""
    device, dtype = picture.device, picture.dtype
    (rows, row_weights), (columns, column_weights) = _line(y, height), _line(x, width)
    shape = (*rows.shape, *columns.shape)
    spread = (slice(None), slice(None), slice(None), None, None, None)
    flat = rows[spread] * width + columns
    weights = row_weights[spread] * column_weights
    places = px.asarray(
        np.broadcast_to(flat, shape).reshape(-1), dtype=device.default_int, device=device
    )
    taken = picture.reshape((picture.shape[0], -1)).take(places, axis=1)
    values = taken.reshape((picture.shape[0], *shape))
    parts = values * px.asarray(np.broadcast_to(weights, shape), dtype=dtype, device=device)
    if mode == "avg":
        return parts.sum(axis=(3, 6)).mean(axis=(2, 4))
    return parts.max(axis=(3, 6)).max(axis=(2, 4))


def max_roi_pool(X: T, rois: Host, *, pooled_shape: Ints, spatial_scale: float = 1.0) -> T:
    """The largest element of each cell of a box; boxes are read."""
    height, width = X.shape[2:]
    rows, columns = pooled_shape
    found = []
    for image, *corners in rois.tolist():
        x1, y1, x2, y2 = (int(np.floor(v * spatial_scale + 0.5)) for v in corners)
        h, w = max(y2 - y1 + 1, 1), max(x2 - x1 + 1, 1)
        cells = []
        for i in range(rows):
            for j in range(columns):
                top, bottom = (
                    min(max(v + y1, 0), height) for v in (i * h // rows, -(-(i + 1) * h // rows))
                )
                left, right = (
                    min(max(v + x1, 0), width)
                    for v in (j * w // columns, -(-(j + 1) * w // columns))
                )
                cell = X[int(image), :, top:bottom, left:right]
                cells.append(cell.max(axis=(1, 2)) if cell.size else cell.sum(axis=(1, 2)))
        found.append(px.stack(cells, axis=1).reshape((X.shape[1], rows, columns)))
    return px.stack(found, axis=0)


def _reflected(at: T, n: int, align: bool) -> T:
    """Places reflected at the edges until they are inside."""
    low, span = (0.0, float(n - 1)) if align else (-0.5, float(n))
    if span == 0:
        return at * 0.0
    off = (at - low).abs()
    turns = (off / span).detach().floor()
    rest = off - turns * span
    even = turns - 2 * (turns * 0.5).floor() == 0
    return (even.where(rest, span - rest) + low).clip(0.0, n - 1.0)


def _neighbors(at: T, n: int, align: bool, mode: str, padding: str) -> list[tuple[T, T]]:
    """Whole places along an axis and their weights."""
    at = (at + 1) / 2 * (n - 1) if align else ((at + 1) * n - 1) / 2
    if padding == "border":
        at = at.clip(0.0, n - 1.0)
    elif padding == "reflection":
        at = _reflected(at, n, align)
    if mode == "nearest":
        whole = at.detach().round()
        places = [(whole, at.zeros() + 1)]
    else:
        low = at.detach().floor()
        places = [(low, low + 1 - at), (low + 1, at - low)]
    out = []
    for place, weight in places:
        inside = ((place >= 0) & (place <= n - 1)).astype(weight.dtype)
        out.append((place.clip(0.0, n - 1.0).astype(at.device.default_int), weight * inside))
    return out


def volumes(X: T, grid: T, align: bool, mode: str, padding: str) -> T:
    """Volumes (N, C, D, H, W) read at places (N, D', H', W', 3), x first."""
    if mode not in ("linear", "nearest"):
        raise OnnxError("GridSample", "no such mode for volumes", got=repr(mode), expected="linear")
    n, c, *plane = X.shape
    table = X.reshape((n, c, -1))
    lines = [
        _neighbors(grid[..., 2 - i], size, align, mode, padding) for i, size in enumerate(plane)
    ]
    total = None
    for (z, a), (y, b), (x, w) in product(*lines):
        flat = ((z * plane[1] + y) * plane[2] + x).reshape((n, 1, -1))
        flat = flat.broadcast_to((n, c, flat.shape[2]))
        part = table.take_along_axis(flat, axis=2) * (a * b * w).reshape((n, 1, -1))
        total = part if total is None else total + part
    assert total is not None
    return total.reshape((n, c, *grid.shape[1:4]))


ROWS: Final[dict[str, Row]] = {
    "MaxRoiPool": since(22, max_roi_pool, grows=True),
    "Resize": since(19, resize, grows=True),
    "RoiAlign": since(22, roi_align, grows=True),
}
