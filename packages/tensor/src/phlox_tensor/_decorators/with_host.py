"""A device that takes element types and ops that it lacks to the host."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from .._device.backend import Backend, MemoryUse, Primitive, lacks
from .._device.finding import as_device
from .._device.numpy_backend import Numpy
from .._device.table import Entry
from .._errors.classes import DeviceError
from .._op.declaration import REGISTRY, Op, Shape
from .._values.dtype import DType
from .._values.primitives import each_primitive, on_primitives

Array = np.ndarray[Any, Any]


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Held:
    """An array that the device has no element type for."""

    array: Array


@final
class WithHost(Backend):
    """Compute on a device, and on the host what it lacks: element types, and ops for LAPACK.

    A tensor whose type the device has lies on the device and is computed there, as ever. One of
    another type, such as float64 or int8 on a GPU, is held and computed by NumPy; operands of such
    an op are read from the device, and results go back to it where it has their type. So every
    program runs that runs on ``Numpy()``, as fast as its types allow: this is for models with a few
    such steps. Default types are those of the device. ``Autodiff(WithHost(device))`` records.

    Args:
        backend: the device to compute on, or its name: none that wraps another one.

    Raises:
        DeviceError: for a decorator, which goes around, or a device without data.

    Example:
        >>> from phlox_tensor import Numpy, WithHost, asarray
        >>> x = asarray([1.0, 2.0], dtype="float64", device=WithHost(Numpy()))
        >>> (x * 2).dtype.name, (x * 2).tolist()
        ('float64', [2.0, 4.0])
    """

    name = "with_host"

    def __init__(self, backend: Backend | str) -> None:
        """Take the device to compute on."""
        device = self.computing = as_device(backend)
        if device.inner is not None or not device.has_data or isinstance(device, WithHost):
            what, hint = "takes the device that computes", f"Autodiff(WithHost({device.base!r}))"
            expected = "a device with data that wraps no other"
            raise DeviceError("WithHost", what, got=repr(device), expected=expected, hint=hint)
        self.settings = (device,)
        self.default_float, self.default_int = device.default_float, device.default_int
        self.max_rank = device.max_rank
        self.host = Numpy(device.default_float, device.default_int)
        self.slack = max(device.slack, self.host.slack)
        self.strict = device.strict

    @property
    def dtypes(self) -> frozenset[DType]:  # type: ignore[override]
        """All element types: those of the device, and those of the host."""
        return self.host.dtypes

    def entry(self, name: str) -> Entry | None:
        """Return what runs an op on the device, or on the host when its types are there."""
        op = REGISTRY[name]
        inside = self.computing.entry(name)
        if inside is None and not lacks(self.computing, op):
            return None  # its formula, whose ops find their places by themselves
        beside = self.host.ops[name]
        count = len(op.signature.operands)
        here = self.computing.dtypes

        def run(*args: Any) -> Any:
            if inside is not None and not _concerns_host(args, count, here):
                return inside(*args)
            operands = (on_primitives(self._array, x) for x in args[:count])
            return self._all_back(op, beside(*operands, *args[count:]))

        return run

    def _array(self, primitive: Primitive) -> Array:
        if type(primitive) is _Held:
            return primitive.array
        return self.computing.read(primitive)

    def _all_back(self, op: Op, out: Any) -> Any:
        return tuple(map(self._back, out)) if op.signature.several else self._back(out)

    def _back(self, array: Array) -> Primitive:
        return self.upload(array, self.host.dtype_of(array))

    def shape_of(self, primitive: Primitive, /) -> Shape:
        """Return the shape of a primitive."""
        if type(primitive) is _Held:
            return self.host.shape_of(primitive.array)
        return self.computing.shape_of(primitive)

    def dtype_of(self, primitive: Primitive, /) -> DType:
        """Return the element type of a primitive."""
        if type(primitive) is _Held:
            return self.host.dtype_of(primitive.array)
        return self.computing.dtype_of(primitive)

    def upload(self, array: Array, dtype: DType, /) -> Primitive:
        """Copy an array to the device, or keep a copy of it where the device lacks the type."""
        if dtype in self.computing.dtypes:
            return self.computing.upload(array, dtype)
        return _Held(self.host.upload(array, dtype))

    def read(self, primitive: Primitive, /) -> Array:
        """Return the data as a NumPy array; waits for the device where the data is there."""
        return self._array(primitive)

    async def read_async(self, primitive: Primitive, /) -> Array:
        """Return the data as a NumPy array without blocking the event loop, where supported."""
        if type(primitive) is _Held:
            return primitive.array
        return await self.computing.read_async(primitive)

    def sync(self) -> None:
        """Wait until all work handed to the device is done."""
        self.computing.sync()

    def memory(self) -> MemoryUse:
        """Return how many bytes the tensors on the device hold, without those on the host."""
        return self.computing.memory()

    def trim(self) -> None:
        """Give back what the device keeps for later tensors."""
        self.computing.trim()


def _concerns_host(args: tuple[Any, ...], count: int, here: frozenset[DType]) -> bool:
    """Whether an operand is on the host, or an attribute names a type that is only there."""
    if any(type(p) is _Held for p in each_primitive(args[:count])):
        return True
    return any(type(value) is DType and value not in here for value in args[count:])
