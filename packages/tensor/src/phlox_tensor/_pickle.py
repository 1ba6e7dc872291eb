"""Pickling of tensors, element types and ops: by bytes and names, made again by constructors.

Loading calls the functions of this file alone. They look devices up as ``as_device`` does, and run
nothing that a pickle brings along.
"""

from __future__ import annotations

import copyreg
from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple, cast

import numpy as np

from ._data.transfer import upload
from ._device.backend import Backend
from ._device.finding import backend_classes, load_class
from ._device.settings import of_settings
from ._errors.classes import ArgumentError, GradientError, RecordError
from ._op.attributes import is_recorded
from ._op.declaration import REGISTRY, Op
from ._values.dtype import DType, as_dtype
from ._values.tensor import Tensor


class Place(NamedTuple):
    """A device in a pickle: the name that finds its class (else the class), and its settings."""

    kind: str | type[Backend]
    settings: tuple[Any, ...]


def install() -> None:
    """Tell pickle about the types of the package."""
    copyreg.pickle(DType, _reduce_dtype)
    copyreg.pickle(Op, _reduce_op)
    copyreg.pickle(Tensor, _reduce_tensor)


def _reduce_dtype(dtype: DType) -> tuple[Any, ...]:
    return restore_dtype, (dtype.name,)


def restore_dtype(name: str) -> DType:
    """Return the element type of a name."""
    return as_dtype(name, "unpickle")


def _reduce_op(op: Op) -> tuple[Any, ...]:
    return restore_op, (op.name,)


def restore_op(name: str) -> Op:
    """Return the op that is registered under a name."""
    op = REGISTRY.get(name)
    if op is None:
        raise ArgumentError(
            "unpickle",
            "no op of this name is declared here",
            got=name,
            hint="import the module that declares it before you load",
        )
    return op


def _reduce_tensor(tensor: Tensor[Any]) -> tuple[Any, ...]:
    if is_recorded(tensor):
        raise GradientError(
            "pickle",
            "the history of a tensor is not pickled",
            got=f"a recorded tensor on {tensor.device!r}",
            expected="a constant",
            hint="pickle.dumps(x.detach())",
        )
    data = tensor.numpy().tobytes()
    return restore_tensor, (data, tensor.dtype.name, tensor.shape, _place(tensor.device))


def restore_tensor(data: bytes, dtype: str, shape: Sequence[int], place: Place) -> Tensor[Any]:
    """Make a tensor of its bytes in C order.

    Raises:
        ArgumentError: when no backend of the device's name is installed.
        BackendUnavailableError: when the device cannot run here.
    """
    element = as_dtype(dtype, "unpickle")
    wanted = prod(shape) * element.itemsize
    if len(data) != wanted:
        raise RecordError(
            "unpickle",
            "the data does not fit the shape",
            got=f"{len(data)} bytes",
            expected=f"{wanted} for {element} of shape {tuple(shape)}",
        )
    array = np.frombuffer(data, np.uint8).view(element.numpy).reshape(shape)
    return upload(array, element, _device(place), "unpickle")


def _place(device: Backend) -> Place:
    settings = tuple(_place(s) if isinstance(s, Backend) else s for s in device.settings)
    found = device.name in {*backend_classes(), "numpy"}
    by_name = found and load_class(device.name) is type(device)
    return Place(device.name if by_name else type(device), settings)


def _device(place: Place) -> Backend:
    cls = load_class(place.kind) if isinstance(place.kind, str) else place.kind
    settings = [_device(s) if isinstance(s, Place) else s for s in place.settings]
    return cast("Backend", of_settings(cls, settings))
