"""The device on which a model runs when it is written: one with the ops that ONNX can spell."""

from __future__ import annotations

from typing import Any, final

from phlox_tensor import REGISTRY, Backend, DType, Entry, Op

from ._rows import ROWS


@final
class Spelled(Backend):
    """A device without the entries that ONNX has no op for: they run as what they expand to."""

    name = "spelled"

    def __init__(self, device: Backend) -> None:
        """Wrap a base device."""
        self.settings = (device,)
        self._device = device
        self.dtypes = device.dtypes
        self.default_float = device.default_float
        self.default_int = device.default_int
        self.max_rank = device.max_rank

    def entry(self, name: str) -> Entry | None:
        """Return the entry of an op with a row, or of one that is nothing else."""
        spelled = name in ROWS or REGISTRY[name].expand is None
        return self._device.entry(name) if spelled else None

    def checks_operands(self, op: Op) -> bool:
        """Whether the device's entry does, where there is one."""
        return self.entry(op.name) is not None and self._device.checks_operands(op)

    def shape_of(self, primitive: Any, /) -> tuple[int, ...]:
        """Return the shape of an array."""
        return self._device.shape_of(primitive)

    def dtype_of(self, primitive: Any, /) -> DType:
        """Return the element type of an array."""
        return self._device.dtype_of(primitive)

    def upload(self, array: Any, dtype: DType, /) -> Any:
        """Copy an array to the device."""
        return self._device.upload(array, dtype)

    def read(self, primitive: Any, /) -> Any:
        """Return the data as a NumPy array."""
        return self._device.read(primitive)
