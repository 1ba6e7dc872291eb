"""Attributes of elementwise ops of one operand."""

from __future__ import annotations

from .._device.backend import Backend
from .._op.declaration import Attributes, Specs
from .._values.dtype import number_for


def prepare_clip(specs: Specs, attributes: Attributes, backend: Backend) -> Attributes:
    """Bring the bounds into the type of the tensor."""
    del backend
    dtype = specs[0].dtype
    return tuple(None if v is None else number_for(v, dtype, "clip") for v in attributes)
