"""Whether layers train: a plain field, set by modes and by moves to devices."""

from __future__ import annotations

from typing import TypeVar

from phlox_tensor import Backend

from . import _walk
from ._fields import Walked

W = TypeVar("W", bound=Walked)


def set_training(training: bool) -> _walk.OnFields:
    """Return what sets the field where a layer has it."""
    return lambda new: {**new, "training": training} if "training" in new else new


def trained_there(module: Walked, device: Backend) -> _walk.OnFields | None:
    """Return what a move of the module does to the field: as if it were made on the device.

    From one device that records to another the field stays, and on one that records nothing too:
    there what was decided holds.
    """
    if not device.records or any(param.device.records for _, param in _walk.params(module)):
        return None
    return set_training(True)


def moved(module: W, on_param: _walk.OnParam, device: Backend) -> W:
    """Return the module on a device, whose parameters ``on_param`` gives."""
    return _walk.changed(
        module,
        on_param,
        on_tensor=lambda _, tensor: tensor.to_device(device),
        on_fields=trained_there(module, device),
    )
