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

from ._cli import cli as cli
from ._elsewhere import NAMES as _NAMES
from ._evaluate import evaluate as evaluate
from ._evaluate import predict as predict
from ._find_lr import RateTrial as RateTrial
from ._find_lr import find_lr as find_lr
from ._fit import Fitted as Fitted
from ._fit import fit as fit
from .metrics.accuracy import Accuracy as Accuracy
from .metrics.metric import Metric as Metric
from .metrics.totals import Results as Results
from .runs.checkpoints import Checkpoints as Checkpoints
from .runs.errors import RunError as RunError
from .runs.events import EpochEnded as EpochEnded
from .runs.events import Event as Event
from .runs.events import Failed as Failed
from .runs.events import Saved as Saved
from .runs.events import Started as Started
from .runs.events import Stepped as Stepped
from .runs.events import Stopped as Stopped
from .runs.events import Validated as Validated
from .runs.keep import Every as Every
from .runs.keep import KeepBest as KeepBest
from .runs.keep import KeepLast as KeepLast
from .runs.keep import KeepRule as KeepRule
from .runs.keep import Kept as Kept
from .runs.results import Best as Best
from .runs.results import Series as Series
from .runs.run import Run as Run
from .runs.stop import MaxTime as MaxTime
from .runs.stop import NoImprovement as NoImprovement
from .runs.stop import NotFinite as NotFinite
from .runs.stop import Reached as Reached
from .runs.stop import Seen as Seen
from .runs.stop import StopRule as StopRule
from .step.ema import Ema as Ema
from .step.learner import Learner as Learner

__version__ = "0.1.0"

_explain(_sys.modules[__name__], *_classes_of(_sys.modules[__name__]))

# Rooms of this package are no part of what it offers: their names do not show.
for _room in ("metrics", "runs", "show", "step"):
    del globals()[_room]


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
