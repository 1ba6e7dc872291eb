"""Shape rules of collectives; the device knows the number of processes."""

from __future__ import annotations

from typing import Any

from .._device.backend import Backend
from .._errors.classes import ArgumentError, ShapeError
from .._op.declaration import Attributes, Op, Shape, Specs


def ranks_of(backend: Backend) -> int:
    """How many processes, or parts of a step, a device computes with."""
    device: Any = backend
    while device is not None:
        found = getattr(device, "ranks", None)
        if found is not None:
            return int(found)
        device = device.inner
    return 1


def prepare_ranks(specs: Specs, attributes: Attributes, backend: Backend) -> Attributes:
    """Fill in the number of processes."""
    del specs
    axis, given = attributes
    ranks = ranks_of(backend)
    if given not in {0, ranks}:
        hint = "leave ranks out"
        raise ArgumentError("ranks", "not the device's", got=given, expected=ranks, hint=hint)
    return axis, ranks


def prepare_root(specs: Specs, attributes: Attributes, backend: Backend) -> Attributes:
    """Refuse a process that is not there."""
    del specs
    (root,) = attributes
    ranks = ranks_of(backend)
    if not 0 <= root < ranks:
        expected = f"0 <= root < {ranks}"
        raise ArgumentError("broadcast", "no such process", got=root, expected=expected)
    return attributes


def all_gather(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """The axis is as long as all shares together."""
    del op
    axis, ranks = attributes
    shape = specs[0].shape
    return [(*shape[:axis], shape[axis] * ranks, *shape[axis + 1 :])]


def reduce_scatter(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """The axis is as long as a share."""
    axis, ranks = attributes
    shape = specs[0].shape
    if shape[axis] % ranks:
        expected = f"a multiple of {ranks} along axis {axis}"
        hint = "px.all_reduce(x)  # the whole sum, of which each takes what it wants"
        raise ShapeError(op.name, "no equal shares", got=shape, expected=expected, hint=hint)
    return [(*shape[:axis], shape[axis] // ranks, *shape[axis + 1 :])]
