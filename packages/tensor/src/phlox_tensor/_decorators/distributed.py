"""A device whose collectives are those of a group of processes."""

from __future__ import annotations

from typing import Any, final

from .._device.backend import Backend
from .._device.finding import as_device
from .._device.table import Entry
from .._errors.classes import ArgumentError, DeviceError
from .._groups.collect import COLLECTIVES, require_same
from .._groups.group import Group, require_group
from .._groups.meeting import part_here
from .._op.declaration import Op
from .._recording.active import unrecorded
from .._values.cell import recording_here
from .base import Decorator


@final
class Distributed(Decorator):
    """Compute on a device, and over a group what concerns all its processes.

    ``all_reduce``, ``all_gather``, ``reduce_scatter`` and ``broadcast`` go over the group; all else
    is the device's. All processes make the same of these calls in the same order. In a step of
    ``train.Learner`` the parts of a batch meet instead, however many processes compute them: there
    may be more parts than processes, and the bits do not depend on these.

    Args:
        backend: the device to compute on, or its name: none that wraps another one.
        group: the processes, such as ``distributed.init()``.

    Raises:
        DeviceError: for a decorator, which goes around.
        WrongTypeError: for what is no group.

    Example:
        >>> from phlox_tensor import Distributed, all_reduce, asarray
        >>> from phlox_tensor.groups import Solo
        >>> all_reduce(asarray([1.0, 2.0], device=Distributed("numpy", Solo()))).tolist()
        [1.0, 2.0]
    """

    name = "distributed"

    def __init__(self, backend: Backend | str, group: Group) -> None:
        """Take the device and the group."""
        device = as_device(backend)
        if device.inner is not None or not device.has_data:
            what, expected = "takes the device that computes", "a device with data that wraps none"
            hint = f"Autodiff(Distributed({device.base!r}, group))"
            raise DeviceError("Distributed", what, got=repr(device), expected=expected, hint=hint)
        require_group("Distributed", group)
        super().__init__(device, group)
        self.processes = group

    @property
    def group(self) -> Group:
        """The group of now: the parts of a step, else the processes."""
        part: Group | None = part_here()
        return self.processes if part is None else part

    @property
    def ranks(self) -> int:
        """How many there are in the group of now."""
        return self.group.size

    def decorate(self, op: Op, inside: Entry) -> Entry | None:
        """Return the entry of the device, or one that goes over the group."""
        collect = COLLECTIVES.get(op.name)
        if collect is None:
            return inside
        inner, counted = self._inner, "ranks" in op.attribute_names

        def over_group(primitive: Any, *attributes: Any) -> Any:
            group = self.group
            if counted and attributes[-1] != group.size:
                got, expected = attributes[-1], f"{group.size}, as many as there are"
                raise ArgumentError(op.name, "other ranks", got=got, expected=expected)
            with unrecorded():
                mine = inner.read(primitive)
                require_same(group, op.name, mine, attributes)
                array = collect(group, mine, *attributes)
                return inner.upload(array, inner.dtype_of(primitive))

        def run(*args: Any) -> Any:
            made = recording_here.get()
            return over_group(*args) if made is None else made.run(inner, op, over_group, args)

        return run
