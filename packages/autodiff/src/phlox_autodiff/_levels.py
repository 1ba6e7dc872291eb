"""Which device a transform records on: one level above all that its arguments are on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

import numpy as np

from phlox_tensor import (
    Backend,
    DeviceError,
    GradientError,
    ShapeError,
    Tensor,
    asarray,
    default_device,
    is_inside,
    tree,
)

from ._graph import Node
from ._mode import MODE, Recording, paused

# Leaves that an error names.
_SHOWN: Final = 4
# The device of the innermost transform that is running; one started inside records above it.
_since: ContextVar[int] = ContextVar("phlox_autodiff_since", default=-1)
_active: ContextVar[Backend | None] = ContextVar("phlox_autodiff_level", default=None)
# The devices whose tracked tensors were read since the innermost transform began.
_read: ContextVar[set[Backend] | None] = ContextVar("phlox_autodiff_read", default=None)


def outermost(op: str, trees: Any) -> Backend | None:
    """The outermost device among the tensors of a tree; None without tensors."""
    found: Backend | None = None
    for leaf in tree.leaves(trees):
        if not isinstance(leaf, Tensor):
            continue
        if found is None or is_inside(found, leaf.device):
            found = leaf.device
        elif not is_inside(leaf.device, found):
            raise DeviceError(
                op,
                "tensors on different devices",
                got=f"{found!r} and {leaf.device!r}",
                expected="one device",
                hint=f"x.to_device({found!r})",
            )
    return found


def require_arguments(op: str, given: Any) -> None:
    """Refuse a tensor or module where the arguments of a function stand: it would come apart."""
    if not isinstance(given, tuple | list):
        raise GradientError(
            op,
            "arguments come as a tuple",
            got=type(given).__name__,
            expected="a tuple of as many as the function takes",
            hint=f"px.{op}(f, (x,), (v,))",
        )


def describe(item: Any) -> str:
    """An argument in words: what it is, and what stands in it."""
    if isinstance(item, Tensor):
        return f"a tensor of {item.dtype}"
    name = type(item).__name__
    if not tree.is_node(item):
        return name
    held = tree.leaves_with_paths(item)
    parts = [
        f"{path}: {leaf.dtype if isinstance(leaf, Tensor) else type(leaf).__name__}"
        for path, leaf in held[:_SHOWN]
    ]
    more = [f"{len(held) - _SHOWN} more"] if len(held) > _SHOWN else []
    return f"{name} of {', '.join(parts + more)}" if held else f"{name} of nothing"


def as_tensor(leaf: Any, device: Backend) -> Any:
    """A float as the tensor that derivatives are taken by; anything else as it is."""
    return asarray(leaf, device=device) if isinstance(leaf, float | np.floating) else leaf


def require_fit(
    op: str, what: str, given: Tensor[Any], like: Tensor[Any], instead: str = ""
) -> None:
    """Refuse a tensor that is not of the shape and the element type of another."""
    if given.shape != like.shape or given.dtype is not like.dtype:
        got, expected = f"{given.shape} of {given.dtype}", f"{like.shape} of {like.dtype}{instead}"
        raise ShapeError(op, f"{what} does not fit", got=got, expected=expected)


def brought(x: Tensor[Any], device: Backend) -> Tensor[Any]:
    """Return ``x`` on the device of a transform; what inner levels recorded of it ends here.

    In ``no_grad`` it is a constant: a transform records there only for itself.
    """
    while x.device is not device and is_inside(device, x.device):
        x = x.inner()
    x = x.to_device(device)
    return _constant(x) if MODE.pauses and paused() else x


def _constant(x: Tensor[Any]) -> Tensor[Any]:
    """The tensor without the history of any device."""
    device = x.device
    if device.recorder is device:
        return _constant(x.inner()).to_device(device)
    return x.detach()


def base_device(op: str, trees: Any) -> Backend:
    """The device that results of a transform are on."""
    found = outermost(op, trees) or default_device()
    active = _active.get()
    return active if active is not None and is_inside(found, active) else found


def check_result(op: str, output: Any, device: Backend) -> list[Tensor[Any]]:
    """Return the tensors of a result, none of which left the level of a transform.

    Raises:
        GradientError: when the function used a tensor of an outer transform.
    """
    found = [leaf for leaf in tree.leaves(output) if isinstance(leaf, Tensor)]
    for leaf in found:
        if leaf.device is not device and is_inside(device, leaf.device):
            raise GradientError(
                op,
                "the function uses a tensor of an outer device that is no argument",
                got=repr(leaf.device),
                expected=repr(device),
                hint=f"x.to_device({leaf.device!r}) for an argument x",
            )
    return found


def check_level(op: str, output: Any, device: Backend, *, others: Any, read: set[Backend]) -> None:
    """Refuse results that left the level of a transform, or never were on it.

    Results of only other arguments are right: their derivative is zeros.

    Args:
        op: the transform.
        output: what its function gave.
        device: that of the transform.
        others: the arguments that are not differentiated.
        read: the devices whose tracked tensors the function read, as by ``numpy()``.
    """
    floats = list(filter(is_float, check_result(op, output, device)))
    if not floats or any(leaf.device is device for leaf in floats):
        return
    if device in read or not any(map(is_float, tree.leaves(others))):
        raise GradientError(
            op,
            "the value was computed without the arguments, so its derivative says nothing",
            got=f"a value on {floats[0].device!r}",
            expected=f"one on {device!r}",
            hint="compute it from the parameters of the function; x.numpy() and x.inner() leave it",
        )


def is_float(leaf: Any) -> bool:
    """Whether a leaf of a tree is a tensor of a kind that has derivatives."""
    return isinstance(leaf, Tensor) and leaf.dtype.kind == "Float"


def note_read(device: Backend) -> None:
    """A tracked tensor of the device is read: what is computed from its elements has no history."""
    if (devices := _read.get()) is not None:
        devices.add(device)


def is_argument(device: Backend, node: Node) -> bool:
    """Whether a leaf is of the arguments of the transform that runs in this thread or task."""
    active = _active.get()
    return active is not None and active.recorder is device and node.id > _since.get()


@contextmanager
def transforming(device: Backend) -> Iterator[None]:
    """A transform runs a function on ``device``."""
    token = _active.set(device)
    try:
        yield
    finally:
        _active.reset(token)


@contextmanager
def running(device: Backend, since: int) -> Iterator[set[Backend]]:
    """A transform runs a function on ``device``: it records, also inside ``no_grad``.

    Gives a set that fills with the devices whose tracked tensors the function reads.

    Args:
        device: that of the transform.
        since: a number of a node before those of the arguments.
    """
    around, read = _read.get(), set[Backend]()
    tokens = _since.set(since), _read.set(read)
    try:
        with transforming(device), Recording(off=False):
            yield read
    finally:
        _since.reset(tokens[0])
        _read.reset(tokens[1])
        if around is not None:
            around |= read
