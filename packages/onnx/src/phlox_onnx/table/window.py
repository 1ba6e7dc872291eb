"""Convolutions, pools and other windows."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from math import ceil, inf, prod
from typing import Any, Final, Literal, TypedDict, Unpack

import phlox_tensor as px
from phlox_tensor import Tensor

from .._errors import OnnxError
from ._row import Ints, Row, row
from .axes import each_axis
from .resize import ROWS as RESIZE

T = Tensor[Any]
Sides = tuple[tuple[int, int], ...]
AutoPad = Literal["NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"]
Power = Literal[1, 2, 3, 4, 5, 6, 7, 8, 9]

_CONV = {1: px.conv1d, 2: px.conv2d, 3: px.conv3d}
_CONV_TRANSPOSE = {1: px.conv_transpose1d, 2: px.conv_transpose2d, 3: px.conv_transpose3d}
_MAX_POOL = {
    1: px.max_pool1d_with_indices,
    2: px.max_pool2d_with_indices,
    3: px.max_pool3d_with_indices,
}
_MAX_POOL_ALONE = {1: px.max_pool1d, 2: px.max_pool2d, 3: px.max_pool3d}
_AVG_POOL = {1: px.avg_pool1d, 2: px.avg_pool2d, 3: px.avg_pool3d}
_LP_POOL = {1: px.lp_pool1d, 2: px.lp_pool2d, 3: px.lp_pool3d}


_WIDEST: Final = 1 << 16  # places of a window that are looked at one after the other


def _for(table: dict[int, Any], op: str, rank: int) -> Any:
    if rank not in table:
        raise OnnxError(op, "windows over so many axes", got=rank, expected="1, 2 or 3")
    return table[rank]


def _window_steps(
    op: str, rank: int, strides: Ints | None, dilations: Ints | None
) -> tuple[Ints, Ints]:
    return each_axis(op, strides, rank, 1), each_axis(op, dilations, rank, 1)


def _refuse_other_kernel(op: str, kernel: Ints | None, W: T) -> None:
    if kernel and tuple(kernel) != tuple(W.shape[2:]):
        what = "kernel_shape is not that of the weights"
        raise OnnxError(op, what, got=kernel, expected=W.shape[2:])


def sides(
    sizes: tuple[int, ...],
    kernel: Ints,
    strides: Ints,
    dilations: Ints,
    auto_pad: str,
    pads: Ints | None,
) -> Sides:
    """What is added before and after each axis."""
    n = len(kernel)
    if auto_pad in ("NOTSET", ""):
        given = each_axis("pads", pads, 2 * n, 0)
        return tuple((given[i], given[i + n]) for i in range(n))
    if auto_pad == "VALID":
        return ((0, 0),) * n
    out = []
    for size, k, s, d in zip(sizes, kernel, strides, dilations, strict=True):
        total = max(0, (ceil(size / s) - 1) * s + d * (k - 1) + 1 - size)
        small, large = total // 2, total - total // 2
        out.append((small, large) if auto_pad == "SAME_UPPER" else (large, small))
    return tuple(out)


class Windows(TypedDict, total=False):
    """What convolutions say of their windows."""

    auto_pad: AutoPad
    dilations: Ints | None
    group: int
    kernel_shape: Ints | None
    pads: Ints | None
    strides: Ints | None


class Pools(TypedDict, total=False):
    """What pools say of their windows."""

    auto_pad: AutoPad
    ceil_mode: int
    dilations: Ints | None
    pads: Ints | None
    strides: Ints | None


def conv(X: T, W: T, B: T | None = None, **how: Unpack[Windows]) -> T:
    rank = X.ndim - 2
    stride, dilation = _window_steps("Conv", rank, how.get("strides"), how.get("dilations"))
    _refuse_other_kernel("Conv", how.get("kernel_shape"), W)
    auto_pad, pads = how.get("auto_pad", "NOTSET"), how.get("pads")
    padding = sides(X.shape[2:], W.shape[2:], stride, dilation, auto_pad, pads)
    function = _for(_CONV, "Conv", rank)
    return function(X, W, B, stride, padding, dilation, how.get("group", 1))


def conv_transpose(
    X: T,
    W: T,
    B: T | None = None,
    *,
    auto_pad: AutoPad = "NOTSET",
    dilations: Ints | None = None,
    group: int = 1,
    kernel_shape: Ints | None = None,
    output_padding: Ints | None = None,
    output_shape: Ints | None = None,
    pads: Ints | None = None,
    strides: Ints | None = None,
) -> T:
    """``output_shape`` says what is cut from the sides; what is missing is added behind."""
    rank = X.ndim - 2
    stride, dilation = _window_steps("ConvTranspose", rank, strides, dilations)
    _refuse_other_kernel("ConvTranspose", kernel_shape, W)
    extra = each_axis("ConvTranspose", output_padding, rank, 0)
    sizes, kernel = X.shape[2:], W.shape[2:]
    axes = list(zip(sizes, kernel, stride, dilation, extra, strict=True))
    full = [(n - 1) * s + d * (k - 1) + 1 + e for n, k, s, d, e in axes]
    if output_shape is None and auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        output_shape = tuple(n * s for n, s in zip(sizes, stride, strict=True))
    if output_shape is not None:
        total = [f - wanted for f, wanted in zip(full, output_shape[-rank:], strict=True)]
        upper = auto_pad == "SAME_UPPER"
        padding = tuple((t // 2, t - t // 2) if upper else (t - t // 2, t // 2) for t in total)
    else:
        padding = sides(sizes, kernel, stride, dilation, auto_pad, pads)
    function = _for(_CONV_TRANSPOSE, "ConvTranspose", rank)
    none = ((0, 0),) * rank
    fits = all(a >= 0 and b >= 0 for a, b in padding)
    fits = fits and all(e < max(s, d) for e, s, d in zip(extra, stride, dilation, strict=True))
    if fits:
        return function(X, W, B, stride, padding, extra, dilation=dilation, groups=group)
    out: T = function(X, W, B, stride, none, (0,) * rank, dilation=dilation, groups=group)
    grown = tuple((max(0, -a), max(0, e - b)) for (a, b), e in zip(padding, extra, strict=True))
    cut = tuple(
        slice(max(0, a), n - max(0, b - e))
        for (a, b), e, n in zip(padding, extra, out.shape[2:], strict=True)
    )
    out = out[(slice(None), slice(None), *cut)]
    if not any(any(pair) for pair in grown):
        return out
    bias = None if B is None else B.reshape((-1, *(1,) * rank))
    bare = out if bias is None else out - bias
    padded = bare.pad(((0, 0), (0, 0), *grown), 0.0)
    return padded if bias is None else padded + bias


def max_pool(
    X: T,
    *,
    kernel_shape: Ints,
    storage_order: Literal[0, 1] = 0,
    outputs: int,
    **how: Unpack[Pools],
) -> Any:
    """Places count over the whole tensor."""
    rank, ceil_mode = X.ndim - 2, how.get("ceil_mode", 0)
    stride, dilation, padding = _pool_windows("MaxPool", X, kernel_shape, how)
    given = (kernel_shape, stride, padding, dilation, bool(ceil_mode))
    if outputs == 1:
        wide = any(2 * max(pair) > k for pair, k in zip(padding, kernel_shape, strict=True))
        if wide:
            size, grown = _window_sizes(
                X.shape[2:], kernel_shape, stride, padding, dilation, ceil_mode
            )
            return _largest(X, kernel_shape, stride, dilation, size, grown)
        return _for(_MAX_POOL_ALONE, "MaxPool", rank)(X, *given)
    values, places = _for(_MAX_POOL, "MaxPool", rank)(X, *given)
    plane = X.shape[2:]
    if storage_order:
        places = _by_columns(places, plane)
    count = X.shape[0] * X.shape[1]
    first = px.arange(count, device=X.device).astype(places.dtype) * prod(plane)
    places = places + first.reshape((*X.shape[:2], *(1,) * rank))
    whole = px.int64 if px.int64 in X.device.dtypes else X.device.default_int
    return values, places.astype(whole)


def _pool_windows(op: str, X: T, kernel: Ints, how: Pools) -> tuple[Ints, Ints, Sides]:
    """Steps, distances and padding of the windows of a pool."""
    rank = X.ndim - 2
    stride, dilation = _window_steps(op, rank, how.get("strides"), how.get("dilations"))
    each_axis(op, kernel, rank, 1)
    auto_pad, pads = how.get("auto_pad", "NOTSET"), how.get("pads")
    return stride, dilation, sides(X.shape[2:], kernel, stride, dilation, auto_pad, pads)


def _by_columns(places: T, plane: tuple[int, ...]) -> T:
    """Places of a plane counted with the first axis the quickest."""
    out, stride = None, 1
    rest = places
    columns = []
    for n in reversed(plane):
        columns.append(rest % n)
        rest = rest // n
    for column, n in zip(reversed(columns), plane, strict=True):
        part = column * stride
        out = part if out is None else out + part
        stride *= n
    assert out is not None
    return out


def _over_windows(
    how: Callable[[T, T], T], x: T, kernel: Ints, stride: Ints, dilation: Ints, size: Ints
) -> T:
    """What one axis after the other makes of the elements in each window.

    Raises:
        OnnxError: when windows are longer than any that are slid.
    """
    _refuse_wide(sum(kernel))
    for axis, (k, s, d, n) in enumerate(zip(kernel, stride, dilation, size, strict=True), 2):
        before = (slice(None),) * axis
        parts = (x[(*before, slice(i * d, i * d + (n - 1) * s + 1, s))] for i in range(k))
        x = reduce(how, parts)
    return x


def _refuse_wide(places: int) -> None:
    if places > _WIDEST:
        got, most = f"{places:,} places", f"at most {_WIDEST:,}"
        raise OnnxError("pool", "a window is too large", got=got, expected=most)


def _window_sizes(
    plane: tuple[int, ...], kernel: Ints, stride: Ints, padding: Sides, dilation: Ints, up: int
) -> tuple[Ints, Sides]:
    """Sizes of the result, and the padding that the last window needs."""
    out, grown = [], []
    for n, k, s, (low, high), d in zip(plane, kernel, stride, padding, dilation, strict=True):
        room, reach = n + low + high, d * (k - 1) + 1
        count = -(-(room - reach) // s) + 1 if up else (room - reach) // s + 1
        if up and (count - 1) * s >= n + low:
            count -= 1
        if min(k, s, d, count) < 1:
            got = f"a window of {k} in steps of {s}, dilated by {d}"
            raise OnnxError("pool", "windows that do not fit", got=got, expected=f"in {room}")
        out.append(count)
        grown.append((low, max(high, (count - 1) * s + reach - n - low)))
    return tuple(out), tuple(grown)


def _summed(x: T, kernel: Ints, stride: Ints, dilation: Ints, size: Ints, grown: Sides) -> T:
    padded = x.pad(((0, 0), (0, 0), *grown), 0.0)
    return _over_windows(px.add, padded, kernel, stride, dilation, size)


def _largest(x: T, kernel: Ints, stride: Ints, dilation: Ints, size: Ints, grown: Sides) -> T:
    least = -inf if x.dtype.kind == "Float" else px.iinfo(x).min
    padded = x.pad(((0, 0), (0, 0), *grown), least)
    return _over_windows(px.maximum, padded, kernel, stride, dilation, size)


def average_pool(
    X: T, *, kernel_shape: Ints, count_include_pad: int = 0, **how: Unpack[Pools]
) -> T:
    rank, ceil_mode = X.ndim - 2, how.get("ceil_mode", 0)
    stride, dilation, padding = _pool_windows("AveragePool", X, kernel_shape, how)
    if _is_plain(kernel_shape, dilation, padding) and rank in _AVG_POOL:
        given = (kernel_shape, stride, padding, bool(ceil_mode), bool(count_include_pad))
        return _AVG_POOL[rank](X, *given)  # type: ignore[operator]
    size, grown = _window_sizes(X.shape[2:], kernel_shape, stride, padding, dilation, ceil_mode)
    one = px.ones((1, 1, *X.shape[2:]), device=X.device).astype(X.dtype)
    if count_include_pad:
        one = one.pad(((0, 0), (0, 0), *padding), 1.0)
        grown_one = tuple((0, g - p) for (_, g), (_, p) in zip(grown, padding, strict=True))
    else:
        grown_one = grown
    counts = _summed(one, kernel_shape, stride, dilation, size, grown_one)
    return _summed(X, kernel_shape, stride, dilation, size, grown) / counts


def _is_plain(kernel: Ints, dilation: Ints, padding: Any) -> bool:
    """Whether windows are as the ops of pooling have them."""
    fits = all(2 * max(pair) <= k for pair, k in zip(padding, kernel, strict=True))
    return fits and max(dilation) == 1


def lp_pool(X: T, *, kernel_shape: Ints, p: Power = 2, **how: Unpack[Pools]) -> T:
    rank, ceil_mode = X.ndim - 2, how.get("ceil_mode", 0)
    stride, dilation, padding = _pool_windows("LpPool", X, kernel_shape, how)
    if _is_plain(kernel_shape, dilation, padding) and rank in _LP_POOL:
        return _LP_POOL[rank](
            X, kernel_shape, p=float(p), stride=stride, padding=padding, ceil_mode=bool(ceil_mode)
        )  # type: ignore[operator]
    size, grown = _window_sizes(X.shape[2:], kernel_shape, stride, padding, dilation, ceil_mode)
    total = _summed(X.abs() ** float(p), kernel_shape, stride, dilation, size, grown)
    return total ** (1.0 / p)


def _everywhere(X: T) -> tuple[int, ...]:
    return tuple(range(2, X.ndim))


def global_lp_pool(X: T, *, p: int = 2) -> T:
    powers = X.abs() ** float(p)
    return powers.sum(axis=_everywhere(X), keepdims=True) ** (1.0 / p)


def max_unpool(
    X: T,
    I: T,  # noqa: E741 - the name of the schema
    output_shape: Ints | None = None,
    *,
    kernel_shape: Ints,
    pads: Ints | None = None,
    strides: Ints | None = None,
) -> T:
    """Places count over the whole tensor that was pooled, and not over each of its planes."""
    rank = X.ndim - 2
    each_axis("MaxUnpool", kernel_shape, rank, 1)
    stride = each_axis("MaxUnpool", strides, rank, 1)
    padding = each_axis("MaxUnpool", pads, 2 * rank, 0)
    plane = tuple(
        (n - 1) * s - padding[i] - padding[i + rank] + k
        for i, (n, s, k) in enumerate(zip(X.shape[2:], stride, kernel_shape, strict=True))
    )
    shape = (*X.shape[:2], *plane)
    flat = px.full((prod(shape),), 0.0, dtype=X.dtype, device=X.device)
    out = flat.scatter(I.flatten(), X.flatten(), axis=0).reshape(shape)
    if output_shape is None or tuple(output_shape) == shape:
        return out
    grown = tuple((0, wanted - n) for wanted, n in zip(output_shape, shape, strict=True))
    return out.pad(grown, 0.0)


def grid_sample(
    X: T,
    grid: T,
    *,
    align_corners: int = 0,
    mode: Literal["linear", "nearest", "cubic"] = "linear",
    padding_mode: str = "zeros",
) -> T:
    names = {"linear": "bilinear", "cubic": "bicubic", "nearest": "nearest"}
    return px.grid_sample(X, grid, names.get(mode, mode), padding_mode, bool(align_corners))


def affine_grid(theta: T, size: Ints, *, align_corners: int = 0) -> T:
    return px.affine_grid(theta, size, bool(align_corners))


def col2im(
    input: T,
    image_shape: Ints,
    block_shape: Ints,
    *,
    dilations: Ints | None = None,
    pads: Ints | None = None,
    strides: Ints | None = None,
) -> T:
    """Columns added up to what they were taken from, over any number of axes."""
    rank = len(image_shape)
    each_axis("Col2Im", block_shape, rank, 1)
    stride, dilation = _window_steps("Col2Im", rank, strides, dilations)
    given = each_axis("Col2Im", pads, 2 * rank, 0)
    sizes = tuple(zip(given[:rank], given[rank:], strict=True))
    n, block = input.shape[0], prod(block_shape)
    _refuse_wide(block)
    if rank == 2 and input.dtype.kind == "Float":
        how: dict[str, Any] = {"stride": stride, "padding": sizes, "dilation": dilation}
        return px.fold(input, image_shape, block_shape, **how)  # type: ignore[arg-type]
    channels = input.shape[1] // block
    room = [s + given[i] + given[i + rank] for i, s in enumerate(image_shape)]
    counts = [
        (r - d * (k - 1) - 1) // s + 1
        for r, k, s, d in zip(room, block_shape, stride, dilation, strict=True)
    ]
    parts = input.reshape((n, channels, block, *counts))
    out = px.full((n, channels, *room), 0.0, dtype=input.dtype, device=input.device)
    for place in range(block):
        index: list[slice] = []
        rest = place
        for axis in reversed(range(rank)):
            first = (rest % block_shape[axis]) * dilation[axis]
            last = first + (counts[axis] - 1) * stride[axis] + 1
            index.insert(0, slice(first, last, stride[axis]))
            rest //= block_shape[axis]
        out = out.at[(slice(None), slice(None), *index)].add(parts[:, :, place])
    cut = tuple(slice(given[i], given[i] + s) for i, s in enumerate(image_shape))
    return out[(slice(None), slice(None), *cut)]


def deform_conv(
    X: T,
    W: T,
    offset: T,
    B: T | None = None,
    mask: T | None = None,
    *,
    dilations: Ints | None = None,
    group: int = 1,
    kernel_shape: Ints | None = None,
    offset_group: int = 1,
    pads: Ints | None = None,
    strides: Ints | None = None,
) -> T:
    """The number of groups of offsets has to follow from their channels."""
    _refuse_other_kernel("DeformConv", kernel_shape, W)
    if offset.shape[1] != 2 * offset_group * W.shape[2] * W.shape[3]:
        got = f"{offset.shape[1]} channels of offsets for {offset_group} groups"
        raise OnnxError("DeformConv", "offset_group does not fit the offsets", got=got)
    stride, dilation = _window_steps("DeformConv", 2, strides, dilations)
    padding = sides(X.shape[2:], W.shape[2:], stride, dilation, "NOTSET", pads)
    both = (padding[0], padding[1])
    return px.deform_conv2d(
        X, offset, W, mask, B, (stride[0], stride[1]), both, (dilation[0], dilation[1]), group
    )


def global_average_pool(X: T) -> T:
    return X.mean(axis=_everywhere(X), keepdims=True)


def global_max_pool(X: T) -> T:
    return X.max(axis=_everywhere(X), keepdims=True)


ROWS: Final[dict[str, Row]] = {
    "AffineGrid": row(20, affine_grid, file_sized=True),
    "AveragePool": row(22, average_pool, file_sized=True),
    "Col2Im": row(18, col2im, file_sized=True),
    "Conv": row(22, conv, trained="W B", file_sized=True, bias="input"),
    "ConvTranspose": row(22, conv_transpose, trained="W B", file_sized=True, bias="input"),
    "DeformConv": row(22, deform_conv, trained="W B", file_sized=True),
    "GlobalAveragePool": row(22, global_average_pool),
    "GlobalLpPool": row(22, global_lp_pool),
    "GlobalMaxPool": row(22, global_max_pool),
    "GridSample": row(22, grid_sample),
    "LpPool": row(22, lp_pool, file_sized=True),
    "MaxPool": row(22, max_pool, file_sized=True),
    "MaxUnpool": row(22, max_unpool, file_sized=True),
    **RESIZE,
}
