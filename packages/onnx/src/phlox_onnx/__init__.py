"""ONNX files as trainable modules.

```python
model = load("model.onnx", device=train)  # an nn.Module: no files written, no code executed
write("model.onnx", "mymodel")  # a Python package of layers, with its weights
```
"""

from phlox_tensor.public import publish as _publish

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

__version__ = "0.2.0"

_publish(__name__, _NAMES)
