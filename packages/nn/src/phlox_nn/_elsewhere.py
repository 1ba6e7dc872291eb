"""What PyTorch calls the names of this package, and the errors made of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from inspect import getattr_static
from typing import Final, Never

from phlox_tensor import DeviceError, UnknownNameError

# Names of the module ``torch.nn`` -> what to type. Those that differ in capitals alone are found.
NAMES: Final[Mapping[str, str]] = {
    "BCELoss": "nn.BinaryCrossEntropyLoss()",
    "BCEWithLogitsLoss": "nn.BinaryCrossEntropyLoss()",
    "BatchNorm1d": "nn.BatchNorm(channels)",
    "BatchNorm2d": "nn.BatchNorm(channels)",
    "BatchNorm3d": "nn.BatchNorm(channels)",
    "Buffer": "nn.State(x)",
    "CircularPad2d": 'nn.Pad(((1, 1), (1, 1)), mode="circular")',
    "Dropout1d": "nn.ChannelDropout(0.5)",
    "Dropout2d": "nn.ChannelDropout(0.5)",
    "Dropout3d": "nn.ChannelDropout(0.5)",
    "ELU": 'nn.Activation("elu")',
    "Flatten": "x.flatten(1) in forward",
    "GELU": 'nn.Activation("gelu")',
    "Hardswish": 'nn.Activation("hard_swish")',
    "InstanceNorm1d": "nn.InstanceNorm(channels)",
    "InstanceNorm2d": "nn.InstanceNorm(channels)",
    "InstanceNorm3d": "nn.InstanceNorm(channels)",
    "LeakyReLU": 'nn.Activation("leaky_relu")',
    "LogSoftmax": "px.log_softmax(x, axis=-1) in forward",
    "Mish": 'nn.Activation("mish")',
    "ModuleDict": "self.parts = {name: layer} in __init__",
    "ModuleList": "self.layers = [layer, layer] in __init__",
    "NLLLoss": "nn.CrossEntropyLoss()  # of logits, without log_softmax",
    "Parameter": "nn.Param(x)",
    "ParameterDict": "self.weights = {name: nn.Param(x)} in __init__",
    "ParameterList": "self.weights = [nn.Param(x)] in __init__",
    "ReLU": 'nn.Activation("relu")',
    "ReLU6": 'nn.Activation("relu6")',
    "ReflectionPad2d": 'nn.Pad(((1, 1), (1, 1)), mode="reflect")',
    "ReplicationPad2d": 'nn.Pad(((1, 1), (1, 1)), mode="edge")',
    "SELU": 'nn.Activation("selu")',
    "SiLU": 'nn.Activation("silu")',
    "Sigmoid": 'nn.Activation("sigmoid")',
    "Softmax": "px.softmax(x, axis=-1) in forward",
    "Softplus": 'nn.Activation("softplus")',
    "Tanh": 'nn.Activation("tanh")',
    "Upsample": "nn.Interpolate(scale_factor=2)",
    "ZeroPad2d": "nn.Pad(((1, 1), (1, 1)))",
    "functional": "px.relu(x): functions of tensors are in phlox itself",
    "init": "nn.initializers",
    "utils": "optim.SgdConfig(grad_clipping=optim.ClipByGlobalNorm(1.0))",
}

# Names of a module of PyTorch -> what to type.
METHODS: Final[Mapping[str, str]] = {
    "add_module": "model = model.replace(name=layer)",
    "apply": "nn.visit_modules(model, function)",
    "buffers": 'model.params(role="state")',
    "children": "nn.modules(model)",
    "cpu": 'model = model.to_device("cpu")',
    "cuda": 'model = model.to_device("wgpu")',
    "eval": "model = model.valid()",
    "load_state_dict": 'model = model.load_record(record, layout="pytorch")',
    "modules": "nn.modules(model)",
    "named_buffers": 'model.params(role="state").items()',
    "named_children": "nn.modules(model)",
    "named_modules": "nn.modules(model)",
    "named_parameters": "model.params().items()",
    "parameters": "model.params(); a step takes the model: optimizer.step(0.1, model, grads)",
    "register_buffer": "self.mean = nn.State(x) in __init__",
    "register_module": "self.layer = layer in __init__",
    "register_parameter": "self.weight = nn.Param(x) in __init__",
    "requires_grad_": "model = model.freeze()",
    "state_dict": "model.into_record()",
    "to": "model = model.to_device(device)",
    "zero_grad": "grads = loss.backward(): gradients are values, and there is nothing to reset",
}


def unknown_name(
    name: str, owner: str, codes: Mapping[str, str], known: Iterable[str]
) -> UnknownNameError:
    """Return the error for a name that ``owner`` lacks: what to type instead, or what is near."""
    if name in codes:
        return UnknownNameError(name, "phlox writes this otherwise", hint=codes[name])
    names = list(known)
    near = [each for each in names if each.lower() == name.lower()]
    near = near or get_close_matches(name, names, n=1, cutoff=0.7)
    hint = f"{owner.removeprefix('phlox_')}.{near[0]}" if near else None
    return UnknownNameError(name, f"no such name in {owner}", hint=hint)


class _Hint:
    """Stands on a class for a name that it lacks: reading it raises the error that says more."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        """Say which name."""
        self.name = name

    def __get__(self, instance: object, owner: type) -> Never:
        raise unknown_name(self.name, owner.__name__, METHODS, ())


def install(cls: type) -> None:
    """Put a hint on the class of modules for each name of PyTorch's that it lacks."""
    for name in METHODS:
        setattr(cls, name, _Hint(name))

    def listed(self: object) -> list[str]:
        hints = {n for n in METHODS if isinstance(getattr_static(self, n), _Hint)}
        return sorted(n for n in object.__dir__(self) if n not in hints)

    setattr(cls, "__dir__", listed)  # noqa: B010 - checkers know only the one of object


def check_device(given: object) -> None:
    """Refuse ``train()`` as PyTorch has it.

    Raises:
        DeviceError: for no device, and for a bool.
    """
    if given is None or isinstance(given, bool):
        raise DeviceError(
            "train",
            "training needs a device that records",
            got="no device" if given is None else repr(given),
            expected="a device that records",
            hint="model = model.train(Autodiff(Cpu())); model.valid() is for inference",
        )
