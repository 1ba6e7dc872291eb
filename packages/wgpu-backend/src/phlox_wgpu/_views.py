"""Views: new shapes and strides over the same buffer."""

from __future__ import annotations

from ._array import GpuArray, dense_strides
from ._runtime import GpuDevice
from ._table import Entries

Shape = tuple[int, ...]


def reshape(device: GpuDevice, x: GpuArray, shape: Shape) -> GpuArray:
    """A view where the strides allow it, else a view of a dense copy."""
    if x.contiguous:
        return x.view(shape, dense_strides(shape), x.offset)
    strides = reshaped_strides(x.shape, x.strides, shape)
    if strides is None:
        x = device.contiguous(x)
        strides = dense_strides(shape)
    return x.view(shape, strides, x.offset)


def reshaped_strides(old: Shape, strides: Shape, new: Shape) -> Shape | None:
    """The strides of the same elements under a new shape, or None where only a copy has them."""
    axes = [(n, step) for n, step in zip(old, strides, strict=True) if n != 1]
    out: list[int] = []
    done = 0
    position = 0
    while position < len(new):
        if new[position] == 1:
            out.append(0)
            position += 1
            continue
        # The smallest runs of old and new axes with the same number of elements.
        first_old, first_new = done, position
        old_size, new_size = axes[done][0], new[position]
        done, position = done + 1, position + 1
        while old_size != new_size:
            if old_size < new_size:
                old_size *= axes[done][0]
                done += 1
            else:
                new_size *= new[position]
                position += 1
        for (_, outer), (length, inner) in zip(
            axes[first_old : done - 1], axes[first_old + 1 : done], strict=True
        ):
            if outer != length * inner:
                return None
        step = axes[done - 1][1]
        run = []
        for length in reversed(new[first_new:position]):
            run.append(step)
            step *= length
        out += reversed(run)
    return tuple(out)


def permute_dims(_device: GpuDevice, x: GpuArray, axes: Shape) -> GpuArray:
    """The axes in another order."""
    return x.view(tuple(x.shape[i] for i in axes), tuple(x.strides[i] for i in axes), x.offset)


def slice_(_device: GpuDevice, x: GpuArray, start: Shape, size: Shape, step: Shape) -> GpuArray:
    """Element k along an axis is x[start + k*step]."""
    shape, strides, offset = window(x.strides, x.offset, start, size, step)
    return x.view(shape, strides, offset)


def window(
    strides: Shape, offset: int, start: Shape, size: Shape, step: Shape
) -> tuple[Shape, Shape, int]:
    """Shape, strides and offset of a slice; an empty one stays at the offset it is cut from."""
    if 0 not in size:
        offset += sum(first * own for first, own in zip(start, strides, strict=True))
    return size, tuple(own * by for own, by in zip(strides, step, strict=True)), offset


def broadcast_to(_device: GpuDevice, x: GpuArray, shape: Shape) -> GpuArray:
    """Axes of length 1 repeat, new axes come in front."""
    missing = len(shape) - len(x.shape)
    own = [
        step if n == wanted else 0
        for n, step, wanted in zip(x.shape, x.strides, shape[missing:], strict=True)
    ]
    return x.view(shape, (*([0] * missing), *own), x.offset)


def flip(_device: GpuDevice, x: GpuArray, axis: Shape) -> GpuArray:
    """The elements in reverse order along the axes."""
    if not x.size:
        return x
    strides = list(x.strides)
    offset = x.offset
    for i in axis:
        offset += (x.shape[i] - 1) * strides[i]
        strides[i] = -strides[i]
    return x.view(x.shape, tuple(strides), offset)


ENTRIES: Entries = {
    "broadcast_to": broadcast_to,
    "flip": flip,
    "permute_dims": permute_dims,
    "reshape": reshape,
    "slice": slice_,
}
