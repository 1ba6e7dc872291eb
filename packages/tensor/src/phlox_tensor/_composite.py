"""Functions made of ops, written by hand: shapes, joining, splitting, linear algebra."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ._attributes import normalize_axis
from ._call import single
from ._errors import ArgumentError, ShapeError
from ._kinds import AnyKind, Float, NumKind
from ._tensor import Tensor
from .ops import binary, contraction, movement, reduction
from .shapes._broadcast import broadcast_shapes

Axes = int | Sequence[int] | None


def expand_dims(x: Tensor[AnyKind], /, axis: int = 0) -> Tensor[AnyKind]:
    """Add an axis of size 1 at ``axis``."""
    place: int = normalize_axis(axis, "expand_dims", x.ndim + 1)
    return movement.reshape(x, (*x.shape[:place], 1, *x.shape[place:]))


def squeeze(x: Tensor[AnyKind], /, axis: Axes = None) -> Tensor[AnyKind]:
    """Drop axes of size 1: the ones given, or all.

    Raises:
        ShapeError: when an axis given has another size.
    """
    if axis is None:
        axes = [i for i, n in enumerate(x.shape) if n == 1]
    else:
        given = (axis,) if isinstance(axis, int) else axis
        axes = [normalize_axis(a, "squeeze", x.ndim) for a in given]
        if any(x.shape[a] != 1 for a in axes):
            raise ShapeError("squeeze", "axis is not of size 1", got=f"{x.shape}, axis {axis}")
    return movement.reshape(x, tuple(n for i, n in enumerate(x.shape) if i not in axes))


def flatten(x: Tensor[AnyKind], /, start_axis: int = 0, end_axis: int = -1) -> Tensor[AnyKind]:
    """Join the axes from ``start_axis`` to ``end_axis``, both included, into one."""
    if not x.ndim:
        return movement.reshape(x, (1,))
    first: int = normalize_axis(start_axis, "flatten", x.ndim)
    last: int = normalize_axis(end_axis, "flatten", x.ndim)
    if last < first:
        raise ArgumentError("flatten", "end before start", got=(start_axis, end_axis))
    count = 1
    for n in x.shape[first : last + 1]:
        count *= n
    return movement.reshape(x, (*x.shape[:first], count, *x.shape[last + 1 :]))


def moveaxis(
    x: Tensor[AnyKind], source: int | Sequence[int], destination: int | Sequence[int], /
) -> Tensor[AnyKind]:
    """Move axes to new places; the others keep their order."""
    sources = [source] if isinstance(source, int) else list(source)
    places = [destination] if isinstance(destination, int) else list(destination)
    taken = [normalize_axis(a, "moveaxis", x.ndim) for a in sources]
    wanted = [normalize_axis(a, "moveaxis", x.ndim) for a in places]
    if len(taken) != len(wanted):
        raise ArgumentError(
            "moveaxis", "as many sources as destinations", got=(source, destination)
        )
    order = [i for i in range(x.ndim) if i not in taken]
    for place, axis in sorted(zip(wanted, taken, strict=True)):
        order.insert(place, axis)
    return movement.permute_dims(x, tuple(order))


def swapaxes(x: Tensor[AnyKind], axis1: int, axis2: int, /) -> Tensor[AnyKind]:
    """Swap two axes."""
    order = list(range(x.ndim))
    i = normalize_axis(axis1, "swapaxes", x.ndim)
    j = normalize_axis(axis2, "swapaxes", x.ndim)
    order[i], order[j] = order[j], order[i]
    return movement.permute_dims(x, tuple(order))


def matrix_transpose(x: Tensor[AnyKind], /) -> Tensor[AnyKind]:
    """Swap the last two axes.

    Raises:
        ShapeError: when there are fewer than two.
    """
    rank = len(x.shape)
    if rank < 2:
        raise ShapeError("matrix_transpose", "not a matrix", got=x.shape, expected="(…, n, m)")
    if rank == 2:
        return single(movement.permute_dims, x, ((1, 0),))
    return swapaxes(x, -1, -2)


def stack(xs: Sequence[Tensor[AnyKind]], /, axis: int = 0) -> Tensor[AnyKind]:
    """Join tensors of one shape along a new axis."""
    return movement.concat([expand_dims(x, axis) for x in xs], axis)


def split(
    x: Tensor[AnyKind], /, sections: int | Sequence[int], axis: int = 0
) -> list[Tensor[AnyKind]]:
    """Cut along an axis into ``sections`` equal parts, or into parts of the given sizes.

    Raises:
        ShapeError: when the sizes do not add up.
    """
    place: int = normalize_axis(axis, "split", x.ndim)
    n = x.shape[place]
    if isinstance(sections, int):
        if sections < 1 or n % sections:
            raise ShapeError("split", "not divisible", got=f"{n} into {sections}")
        sizes = [n // sections] * sections
    else:
        sizes = list(sections)
        if sum(sizes) != n or any(size < 0 for size in sizes):
            raise ShapeError("split", "sizes do not add up", got=sizes, expected=n)
    out, start = [], 0
    for size in sizes:
        index = (slice(None),) * place + (slice(start, start + size),)
        out.append(x[index])
        start += size
    return out


def chunk(x: Tensor[AnyKind], chunks: int, /, axis: int = 0) -> list[Tensor[AnyKind]]:
    """Cut along an axis into at most ``chunks`` parts; the last may be smaller.

    Raises:
        ArgumentError: for less than one part.
    """
    if chunks < 1:
        raise ArgumentError("chunk", "no parts", got=chunks, expected="chunks >= 1")
    n = x.shape[normalize_axis(axis, "chunk", x.ndim)]
    size = -(-n // chunks) or 1
    return split(x, [min(size, n - i) for i in range(0, n, size)] or [0], axis)


def unstack(x: Tensor[AnyKind], /, *, axis: int = 0) -> tuple[Tensor[AnyKind], ...]:
    """Cut along an axis into tensors without it."""
    place: int = normalize_axis(axis, "unstack", x.ndim)
    front: tuple[slice, ...] = (slice(None),) * place
    return tuple(x[(*front, i)] for i in range(x.shape[place]))


def repeat(x: Tensor[AnyKind], repeats: int, /, *, axis: int | None = None) -> Tensor[AnyKind]:
    """Repeat each element ``repeats`` times along an axis, of the flattened tensor without one."""
    if axis is None:
        return repeat(flatten(x), repeats, axis=0)
    place: int = normalize_axis(axis, "repeat", x.ndim)
    wide = expand_dims(x, place + 1)
    shape = (*x.shape[: place + 1], repeats, *x.shape[place + 1 :])
    return flatten(movement.broadcast_to(wide, shape), place, place + 1)


def tile(x: Tensor[AnyKind], repetitions: int | Sequence[int], /) -> Tensor[AnyKind]:
    """Repeat the whole tensor along each axis."""
    counts = [repetitions] if isinstance(repetitions, int) else list(repetitions)
    rank = max(len(counts), x.ndim)
    counts = [1] * (rank - len(counts)) + counts
    shape = (1,) * (rank - x.ndim) + x.shape
    pairs = [size for n in shape for size in (1, n)]
    wide = [size for c, n in zip(counts, shape, strict=True) for size in (c, n)]
    out = movement.broadcast_to(movement.reshape(x, tuple(pairs)), tuple(wide))
    return movement.reshape(out, tuple(c * n for c, n in zip(counts, shape, strict=True)))


def roll(x: Tensor[AnyKind], /, shift: int, *, axis: int | None = None) -> Tensor[AnyKind]:
    """Move elements along an axis by ``shift``; what leaves one end enters at the other."""
    if axis is None:
        return movement.reshape(roll(flatten(x), shift, axis=0), x.shape)
    place: int = normalize_axis(axis, "roll", x.ndim)
    n = x.shape[place]
    if not n or not shift % n:
        return x
    front: tuple[slice, ...] = (slice(None),) * place
    cut = n - shift % n
    parts = [x[(*front, slice(cut, None))], x[(*front, slice(0, cut))]]
    return movement.concat(parts, place)


def broadcast_arrays(*arrays: Tensor[AnyKind]) -> list[Tensor[AnyKind]]:
    """Return the tensors with the shape they all broadcast to."""
    shape = broadcast_shapes((x.shape for x in arrays), "broadcast_arrays")
    return [movement.broadcast_to(x, shape) for x in arrays]


def vecdot(x1: Tensor[NumKind], x2: Tensor[NumKind], /, *, axis: int = -1) -> Tensor[NumKind]:
    """Sum of products along an axis."""
    return reduction.sum_(binary.multiply(x1, x2), axis)


def outer(x1: Tensor[NumKind], x2: Tensor[NumKind], /) -> Tensor[NumKind]:
    """All products of two vectors: (n,) and (m,) give (n, m).

    Raises:
        ShapeError: when one is no vector.
    """
    if x1.ndim != 1 or x2.ndim != 1:
        raise ShapeError(
            "outer", "not two vectors", got=f"{x1.shape} and {x2.shape}", expected="(n,) and (m,)"
        )
    return binary.multiply(expand_dims(x1, 1), x2)


def tensordot(
    x1: Tensor[NumKind], x2: Tensor[NumKind], /, *, axes: int | Sequence[Sequence[int]] = 2
) -> Tensor[NumKind]:
    """Sum of products over the last ``axes`` of x1 and the first of x2, or over lists of axes.

    Raises:
        ShapeError: when the sizes of the axes differ.
    """
    if isinstance(axes, int):
        if not 0 <= axes <= min(x1.ndim, x2.ndim):
            raise ShapeError(
                "tensordot",
                "as many axes are not there",
                got=f"axes {axes} of {x1.shape} and {x2.shape}",
            )
        left, right = list(range(x1.ndim - axes, x1.ndim)), list(range(axes))
    else:
        left = [normalize_axis(a, "tensordot", x1.ndim) for a in axes[0]]
        right = [normalize_axis(a, "tensordot", x2.ndim) for a in axes[1]]
    if [x1.shape[i] for i in left] != [x2.shape[i] for i in right]:
        raise ShapeError(
            "tensordot",
            "sizes along the axes differ",
            got=f"{x1.shape} along {left} and {x2.shape} along {right}",
        )
    rows = [i for i in range(x1.ndim) if i not in left]
    columns = [i for i in range(x2.ndim) if i not in right]
    a = movement.permute_dims(x1, tuple(rows + left))
    b = movement.permute_dims(x2, tuple(right + columns))
    inner = 1
    for i in left:
        inner *= x1.shape[i]
    n = 1
    for i in rows:
        n *= x1.shape[i]
    m = 1
    for i in columns:
        m *= x2.shape[i]
    out = contraction.matmul(movement.reshape(a, (n, inner)), movement.reshape(b, (inner, m)))
    shape = tuple(x1.shape[i] for i in rows) + tuple(x2.shape[i] for i in columns)
    return movement.reshape(out, shape)


def vector_norm(x: Tensor[Float], /, *, axis: Axes = None, keepdims: bool = False) -> Tensor[Float]:
    """Euclidean length along axes: ``√Σ x²``."""
    return reduction.sum_(x.square(), axis, keepdims).sqrt()


def allclose(
    x1: Tensor[Any], x2: Tensor[Any], /, *, rtol: float = 1e-5, atol: float = 1e-8
) -> bool:
    """Whether all elements differ by at most ``atol + rtol·|x2|``; reads both tensors."""
    import numpy as np  # noqa: PLC0415 - reading is on the host anyway

    wide = [t.numpy().astype(np.float64) for t in (x1, x2)]
    return bool(np.allclose(wide[0], wide[1], rtol=rtol, atol=atol))
