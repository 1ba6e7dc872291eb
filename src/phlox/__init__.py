"""phlox: deep learning over interchangeable backends.

This package only composes the others, and loads each when a name of it is first used: tensors and
their functions (phlox_tensor), derivatives (phlox_autodiff), compiled functions (phlox_fusion), the
backends `Cpu` and `Wgpu`, and the modules `data`, `distributed`, `nn`, `onnx`, `optim`, `record`,
`text` and `train`.
`Wgpu`, `data`, `distributed`, `onnx`, `text` and `train` come by extras: `pip install "phlox[all]"`
brings every one.
"""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from phlox_autodiff import *
    from phlox_fusion import *
    from phlox_kernels import Cpu as Cpu
    from phlox_tensor import *
    from phlox_wgpu import Wgpu as Wgpu

    from . import data as data
    from . import distributed as distributed
    from . import nn as nn
    from . import onnx as onnx
    from . import optim as optim
    from . import record as record
    from . import testing as testing
    from . import text as text
    from . import train as train

__version__ = "0.2.0"

_BACKENDS = {"Cpu": "phlox_kernels", "Wgpu": "phlox_wgpu"}
_MODULES = ("data", "distributed", "nn", "onnx", "optim", "record", "testing", "text", "train")
# Searched in this order for any other name, but for modules that are their own.
_LAYERS = ("phlox_tensor", "phlox_autodiff", "phlox_fusion")
_SPACES = ("capture", "fft", "linalg", "ops", "random", "tree")


def _shared(name: str, space: dict[str, Any]) -> Any:  # `bool` is that of tensors here
    return name in space and (name in _SPACES or not isinstance(space[name], ModuleType))


def _backend(name: str) -> Any:
    from ._extras import of_backend  # noqa: PLC0415 - most programs need it never

    with of_backend(name):
        return import_module(_BACKENDS[name])


# Type checkers read the imports above instead, and so see a name that does not exist.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Load the package that holds a name, when the name is first used."""
        if name in _MODULES:
            return import_module(f"{__name__}.{name}")
        if name == "__all__":  # for `import *`, which takes what is loaded already otherwise
            return [each for each in __dir__() if not each.startswith("_")]
        if not name.startswith("_") or name.startswith("__array_"):
            for layer in (name,) if name in _BACKENDS else _LAYERS:
                module = _backend(name) if name in _BACKENDS else import_module(layer)
                if _shared(name, vars(module)):
                    value = getattr(module, name)
                    globals()[name] = value
                    return value
            if name.startswith("_"):
                raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
            unknown = import_module("phlox_tensor.names").unknown_function
            raise unknown(name, "phlox", "px", __dir__())
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Every public name of what is installed, whether its package is loaded yet or not."""
    from ._extras import absent_parts  # noqa: PLC0415 - most programs need it never

    names = {*_MODULES, *_BACKENDS, "__version__"}
    absent = absent_parts()
    names -= {name for name in names if name.lower() in absent}
    for layer in _LAYERS:
        space = vars(import_module(layer))
        names.update(name for name in space if not name.startswith("_") and _shared(name, space))
    return sorted(names)
