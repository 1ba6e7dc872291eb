"""Training: one whole step, runs that go on to the bit, and ``fit`` as one page over them.

```python
learner = train.Learner(model, optimizer, 1e-3)
for batch in batches:
    print(learner.step(forward, batch)["loss"])
```
"""

import sys as _sys
from typing import TYPE_CHECKING as _TYPE_CHECKING

from phlox_tensor.arguments import classes_of as _classes_of
from phlox_tensor.arguments import explain as _explain
from phlox_tensor.names import unknown_name as _unknown_name

from ._elsewhere import NAMES as _NAMES
from ._ema import Ema as Ema
from ._learner import Learner as Learner
from ._metric import Metric as Metric

__version__ = "0.1.0"

_explain(_sys.modules[__name__], *_classes_of(_sys.modules[__name__]))

# Type checkers would take any name for one that exists.
if not _TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Say what a name of others is called here, or which name is near."""
        if name.startswith("_"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        raise _unknown_name(name, "phlox_train", _NAMES, __dir__())


def __dir__() -> list[str]:
    """Every public name."""
    return sorted(name for name in globals() if not name.startswith("_"))
