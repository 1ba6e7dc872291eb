"""Whether layers train: a plain field, set by modes and by moves to devices."""

from __future__ import annotations

import warnings
from typing import Any, TypeVar

from phlox_tensor import Backend, DeviceError, GradientError, Tensor, uint8

from ..param.param import Param
from . import walk as _walk
from .fields import ModuleNode

W = TypeVar("W", bound=ModuleNode)


def set_training(training: bool) -> _walk.OnFields:
    """Return what sets the field where a layer has it."""
    return lambda new: {**new, "training": training} if "training" in new else new


def trained_there(module: ModuleNode, device: Backend) -> _walk.OnFields | None:
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


def for_inference(module: W) -> W:
    """Return the module on its devices without their recording, not training.

    Raises:
        GradientError: inside of a transform whose derivative would not reach the parameters.
    """

    def unrecorded(tensor: Tensor[Any]) -> Tensor[Any]:
        _refuse_argument(tensor)
        target = tensor.device.without_recording()
        inside = target is tensor.device.inner
        return tensor.inner() if inside else tensor.detach().to_device(target)

    def lowered(param: Param) -> Param:
        if param.is_initialized:
            _refuse_argument(param.value)
        target = param.device.without_recording()
        return param if target is param.device else param.moved(unrecorded, target)

    return _walk.changed(
        module,
        lambda _, p: lowered(p),
        on_tensor=lambda _, t: unrecorded(t) if t.device.records else t,
        on_fields=set_training(False),
    )


def _refuse_argument(tensor: Tensor[Any]) -> None:
    """Keep the derivative of a transform from being lost."""
    device, value = tensor.device, tensor.primitive
    if device.standing(value) == "leaf" and device.is_followed(value):
        raise GradientError(
            "valid",
            "no derivative would reach the model",
            got=f"a parameter that a transform differentiates, on {device!r}",
            expected="a model that is no argument of a transform",
            hint="model.with_training(False) goes on with derivatives, "
            "px.stop_gradient(model) without",
        )


def for_training(module: W, device: Backend) -> W:
    """Return the module on a device that records, in training."""
    if not device.records:
        raise DeviceError(
            "train",
            "the device does not record",
            got=repr(device),
            expected=f"Autodiff({device!r})",
            hint=f"model.train(Autodiff({device!r}))",
        )
    params = [param for _, param in _walk.params(module) if len(param.shape) > 1]
    if any(p.dtype == uint8 for p in params) and not any(p.trainable for p in params):
        warnings.warn(
            "[train] matrices in the blocks of their file are not trained, and the model has no "
            "others\nhint: nn.models.load(path, device, quantized=False), or "
            "nn.apply_lora(model, 8)",
            stacklevel=5,  # train, and two around it
        )
    return _walk.changed(
        module,
        lambda _, p: p.moved(lambda v: v.to_device(device), device),
        on_tensor=lambda _, t: t.to_device(device),
        on_fields=set_training(True),
    )
