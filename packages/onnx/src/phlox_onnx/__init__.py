"""ONNX files as trainable modules.

```python
model = load("model.onnx", device=train)  # an nn.Module: no files written, no code executed
write("model.onnx", "mymodel")  # a Python package of layers, with its weights
```
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from phlox_tensor.names import unknown_name as _unknown_name

from ._elsewhere import NAMES as _NAMES
from ._errors import OnnxError as OnnxError
from ._load import load as load
from .read._limits import Limits as Limits
from .run._model import OnnxModel as OnnxModel
from .run._table import register as register
from .save import save as save
from .source import Package as Package
from .source import source as source
from .source import verify as verify
from .source import write as write

__version__ = "0.1.0"

# Type checkers would take any name for one that exists.
if not _TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Say what a name of others is called here, or which name is near."""
        if name.startswith("_"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        raise _unknown_name(name, "phlox_onnx", _NAMES, __dir__())


def __dir__() -> list[str]:
    """Every public name."""
    return sorted(name for name in globals() if not name.startswith("_"))
