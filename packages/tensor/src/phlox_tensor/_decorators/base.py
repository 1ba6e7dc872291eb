"""A backend over a backend: the half that all decorators share."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from .._device.backend import Backend, MemoryUse, Primitive, Standing
from .._device.finding import as_device
from .._device.settings import of_settings
from .._device.table import Entry
from .._op.declaration import REGISTRY, Op, Shape
from .._op.expansion import expansion
from .._values.dtype import DType
from .._values.gradients import Ready
from .._values.primitives import on_primitives
from .._values.tensor import Tensor


class Decorator(Backend):
    """A function from table to table: a device that does more around the ops of another one.

    A subclass says in ``decorate`` what an entry does around that of the inner device. Where its
    primitives are not those of the inner device, it gives ``lift``, ``lower`` and ``detach`` too.
    What the inner device records stays recorded: a decorator over ``Autodiff`` trains.

    Args:
        backend: the device inside, or its name.
        settings: what else distinguishes two devices of the class; hashable.
    """

    def __init__(self, backend: Backend | str, *settings: Any) -> None:
        """Take over what the inner device says about itself."""
        inner = self._inner = as_device(backend)
        self.settings = (inner, *settings)
        self.default_float = inner.default_float
        self.default_int = inner.default_int
        self.records = inner.records
        self.recorder = inner.recorder
        self.has_data = inner.has_data
        self.max_rank = inner.max_rank
        self.slack = inner.slack
        self.strict = inner.strict

    @abstractmethod
    def decorate(self, op: Op, inside: Entry) -> Entry | None:
        """Return the entry of an op here, given that of the inner device; None for its expansion.

        It is called once for each op, and what it returns for each call: with operands as
        primitives of this device, numbers or None, then attributes. ``lower_all`` and ``lift_all``
        bring them to the inner device and results back.
        """

    def entry(self, name: str) -> Entry | None:
        """Return what ``decorate`` makes of the inner entry."""
        return self.decorate(REGISTRY[name], self._inner.ops[name])

    def unlisted(self, op: Op, entry: Entry) -> Entry:
        """Return what ``decorate`` makes of an op that is in no table, else its expansion."""
        return self.decorate(op, self._inner.unlisted(op, entry)) or expansion(op, self)

    def lower_all(self, op: Op, args: tuple[Any, ...]) -> list[Any]:
        """Bring the operands among the arguments of an entry to the inner device."""
        count = len(op.signature.operands)
        return [*[on_primitives(self.lower, x) for x in args[:count]], *args[count:]]

    def expanded(self, op: Op) -> Entry | None:
        """Return an entry that runs the formula of an op on this device; None without one."""
        return None if op.expand is None else expansion(op, self)

    def lift_all(self, op: Op, out: Any) -> Any:
        """Bring what an inner entry gave to this device."""
        return tuple(map(self.lift, out)) if op.signature.several else self.lift(out)

    # Primitives

    def lift(self, primitive: Primitive, /) -> Primitive:
        """Make a primitive of this device from one of the inner device, as a constant."""
        return primitive

    def lower(self, primitive: Primitive, /) -> Primitive:
        """Return the primitive of the inner device inside one of this device."""
        return primitive

    def outside(self, primitive: Primitive, /) -> Primitive:
        """Return the primitive of the inner device that stands for this one behind a transform."""
        return self.lower(primitive)

    def detach(self, primitive: Primitive, /) -> Primitive:
        """Return the primitive without its history, here and on all devices inside."""
        return self.lift(self._inner.detach(self.lower(primitive)))

    # What the inner device knows

    @property
    def inner(self) -> Backend:
        """The device inside."""
        return self._inner

    @property
    def dtypes(self) -> frozenset[DType]:  # type: ignore[override]
        """The element types that the inner device has."""
        return self._inner.dtypes

    def shape_of(self, primitive: Primitive, /) -> Shape:
        """Return the shape of a primitive."""
        return self._inner.shape_of(self.lower(primitive))

    def dtype_of(self, primitive: Primitive, /) -> DType:
        """Return the element type of a primitive."""
        return self._inner.dtype_of(self.lower(primitive))

    def spec_of(self, primitive: Primitive, /) -> tuple[Shape, DType]:
        """Return shape and element type of a primitive at once."""
        return self._inner.spec_of(self.lower(primitive))

    def strides_of(self, primitive: Primitive, /) -> tuple[int, ...] | None:
        """Return how many elements lie between neighbors along each axis; None if unknown."""
        return self._inner.strides_of(self.lower(primitive))

    def upload(self, array: np.ndarray[Any, Any], dtype: DType, /) -> Primitive:
        """Copy an array to the inner device, as a constant."""
        return self.lift(self._inner.upload(array, dtype))

    def read(self, primitive: Primitive, /) -> np.ndarray[Any, Any]:
        """Return the data as a NumPy array; waits for the device."""
        return self._inner.read(self.lower(primitive))

    async def read_async(self, primitive: Primitive, /) -> np.ndarray[Any, Any]:
        """Return the data as a NumPy array without blocking the event loop, where supported."""
        return await self._inner.read_async(self.lower(primitive))

    def begin_read(self, primitive: Primitive, /) -> bool:
        """Begin what a later ``read`` waits for; return whether the device goes on by itself."""
        return self._inner.begin_read(self.lower(primitive))

    def sync(self) -> None:
        """Wait until all work handed to the device is done."""
        self._inner.sync()

    def memory(self) -> MemoryUse:
        """Return how many bytes the tensors of the inner device hold."""
        return self._inner.memory()

    def trim(self) -> None:
        """Give back what the inner device keeps for later tensors."""
        self._inner.trim()

    def without_recording(self) -> Backend:
        """Return the same decorator over the inner device without its recording."""
        if not self._inner.records:
            return self._inner if self.records else self
        inner = self._inner.without_recording()
        return of_settings(type(self), (inner, *self.settings[1:]))

    # What the inner device records

    def require_grad(self, primitive: Primitive, /) -> Primitive:
        """Return the primitive as a leaf of the inner device, whose gradient is wanted."""
        return self.lift(self._inner.require_grad(self.lower(primitive)))

    def is_readable(self, primitive: Primitive, /) -> bool:
        """Whether the inner device can read the primitive."""
        return self._inner.is_readable(self.lower(primitive))

    def is_tracked(self, primitive: Primitive, /) -> bool:
        """Whether a gradient would flow to the primitive."""
        return self._inner.is_tracked(self.lower(primitive))

    def propose(self, result: Primitive, target: Tensor, value: Tensor, /) -> Primitive:
        """Return ``result``, with a new value for ``target`` in what the inner device recorded."""
        if not self.records:
            return result
        inside = target.inner() if target.device is self else target
        return self.lift(self._inner.propose(self.lower(result), inside, value))

    def standing(self, primitive: Primitive, /) -> Standing:
        """Return what the primitive is to this device.

        A device with primitives of its own has to say; until it does they are ``"result"``, which
        nobody takes apart.
        """
        return "constant" if type(self).lift is Decorator.lift else "result"

    def backward(
        self,
        tensor: Tensor,
        seed: Tensor | None,
        retain_graph: bool,
        ready: Ready | None = None,
    ) -> Any:
        """Return the gradients of a tensor, which the inner device recorded."""
        inside = None if seed is None else seed.to_device(self._inner)
        lowered: Tensor = Tensor(self.lower(tensor.primitive), self._inner)
        return self._inner.backward(lowered, inside, retain_graph, ready)
