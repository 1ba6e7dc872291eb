"""Words of source and of modules that no name of a file may take."""

from __future__ import annotations

from typing import Final

from phlox_nn import Module

# Modules that source imports.
_IMPORTED: Final = frozenset({"math", "nn", "np", "px"})
# Attributes that every model has, and what stands for something else inside of a class.
ATTRIBUTES: Final = (
    frozenset(dir(Module))
    | _IMPORTED
    | {"device", "forward", "inputs", "outputs", "paths", "program"}
)
CLASSES: Final = frozenset({"Any", "Model", "ModelConfig", "Path", "Tensor"})
LOCALS: Final = _IMPORTED | {"device", "self"}
