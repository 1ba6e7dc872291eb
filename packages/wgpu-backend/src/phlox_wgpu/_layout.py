"""Arithmetic of shapes and strides: windows, reshapes, broadcasts, axes merged into fewer."""

from __future__ import annotations

Shape = tuple[int, ...]


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


def window(
    strides: Shape, offset: int, start: Shape, size: Shape, step: Shape
) -> tuple[Shape, Shape, int]:
    """Shape, strides and offset of a slice; an empty one stays at the offset it is cut from."""
    if 0 not in size:
        offset += sum(first * own for first, own in zip(start, strides, strict=True))
    return size, tuple(own * by for own, by in zip(strides, step, strict=True)), offset


def broadcast_strides(own: Shape, strides: Shape, shape: Shape) -> Shape:
    """The strides under a shape that `own` broadcasts to: new axes in front, length 1 repeats."""
    missing = len(shape) - len(own)
    return (
        *([0] * missing),
        *(0 if n == 1 else step for n, step in zip(own, strides, strict=True)),
    )


def merge_axes(
    shape: tuple[int, ...], strides: list[tuple[int, ...]]
) -> tuple[tuple[int, ...], list[tuple[int, ...]]]:
    """Walk several arrays over fewer axes: 1s dropped, neighbors merged where all allow it."""
    lengths: list[int] = []
    steps_: list[list[int]] = [[] for _ in strides]
    for axis, length in enumerate(shape):
        if length == 1:
            continue
        if lengths and all(
            own[-1] == length * given[axis] for own, given in zip(steps_, strides, strict=True)
        ):
            lengths[-1] *= length
            for own, given in zip(steps_, strides, strict=True):
                own[-1] = given[axis]
        else:
            lengths.append(length)
            for own, given in zip(steps_, strides, strict=True):
                own.append(given[axis])
    return tuple(lengths), [tuple(own) for own in steps_]
