"""Resize and regions: elements at places between the elements."""

from __future__ import annotations

from typing import Any, Final, Literal

import numpy as np

import phlox_tensor as px
from phlox_tensor import Tensor

from .._errors import OnnxError
from ..read._limits import refuse_long
from ._row import Host, Ints, Row, row
from .axes import axis_of

T = Tensor[Any]

# Scales are float32, so sizes over sizes are seldom exactly they.
_SAME: Final = 2.0**-22


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
        # As others do, in float32: ten elements times 0.7 are seven.
        out[axis] = int(np.floor(np.float32(shape[axis]) * np.float32(scale)))
        by[axis] = float(scale)
    return out, by


def _trailing(shape: tuple[int, ...], out: list[int], by: list[float], crop: Ints) -> int:
    """The first axis that changes."""
    same = (n == m and s == 1 for n, m, s in zip(shape, out, by, strict=True))
    first = next((axis for axis, kept in enumerate(same) if not kept), len(shape))
    return min(first, *crop) if crop else first


def _region(roi: Host | None, rank: int, chosen: Ints) -> tuple[float, ...]:
    """All starts, then all ends, of every axis."""
    starts, ends = [0.0] * rank, [1.0] * rank
    if roi is not None and roi.size:
        for i, axis in enumerate(chosen):
            starts[axis], ends[axis] = float(roi[i]), float(roi[i + len(chosen)])
    return (*starts, *ends)


def _whole_sizes(X: T, size: tuple[int, ...], words: dict[str, Any]) -> T:
    """Whole numbers as they are: taken at the places that ``resize`` finds in their indices."""
    outside: T | None = None
    fill = words.pop("fill_value", 0.0)
    region = words.pop("region", ())
    for i, count in enumerate(size):
        axis = X.ndim - len(size) + i
        line = px.arange(X.shape[axis], dtype=px.float64, device=px.Numpy())
        own = {**words, "scale": words["scale"][i : i + 1]} if "scale" in words else words
        if region:
            own = {**own, "region": (region[i], region[i + len(size)]), "fill_value": -1.0}
        places = px.resize(line, (count,), **own).numpy().astype(np.int64)
        if (places < 0).any():
            behind = (count, *(1,) * (X.ndim - 1 - axis))
            here = px.asarray((places < 0).reshape(behind), device=X.device)
            outside = here if outside is None else outside | here
        at = px.asarray(np.maximum(places, 0), dtype=X.device.default_int, device=X.device)
        X = X.take(at, axis=axis)
    return X if outside is None else outside.where(int(fill), X)


def as_interpolate(mode: str, where: str, nearest: str, a: float) -> tuple[str, bool] | None:
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
    keep_aspect_ratio_policy: Literal["stretch", "not_larger", "not_smaller"] = "stretch",
    mode: Literal["nearest", "linear", "cubic"] = "nearest",
    nearest_mode: str = "round_prefer_floor",
) -> T:
    """``resize`` of the axes from the first that changes."""
    chosen = tuple(axis_of("Resize", a, X.ndim) for a in (axes or range(X.ndim)))
    crop = coordinate_transformation_mode == "tf_crop_and_resize"
    if scales is not None and not scales.size:
        scales = None
    out, by = _sizes(X.shape, chosen, scales, sizes, keep_aspect_ratio_policy)
    first = _trailing(X.shape, out, by, chosen if crop else ())
    for count in out[first:]:
        refuse_long("Resize", count)
    if first == X.ndim:
        return X
    if 0 in X.shape:
        return X.zeros(tuple(out))
    words: dict[str, Any] = {"coordinates": coordinate_transformation_mode, "mode": mode}
    if mode == "nearest":
        words |= {"rounding": nearest_mode}
    else:
        words |= {"antialias": bool(antialias), "exclude_outside": bool(exclude_outside)}
    if mode == "cubic":
        words |= {"cubic_coefficient": cubic_coeff_a}
    if crop:
        region = _region(roi, X.ndim, chosen)
        ends = region[X.ndim + first :]
        words |= {"fill_value": extrapolation_value, "region": region[first : X.ndim] + ends}
    if any(abs(n * s - m) > _SAME * m for n, s, m in zip(X.shape, by, out, strict=True)):
        words |= {"scale": tuple(by[first:])}
    size = tuple(out[first:])
    if X.dtype.kind == "Float":
        return px.resize(X, size, **words)
    if mode == "nearest":
        return _whole_sizes(X, size, words)
    return px.resize(X.astype(px.float32), size, **words).round().astype(X.dtype)


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


ROWS: Final[dict[str, Row]] = {
    "MaxRoiPool": row(22, max_roi_pool, file_sized=True),
    "Resize": row(19, resize, file_sized=True),
    "RoiAlign": row(22, roi_align, file_sized=True),
}
