"""Training: one whole step, runs that go on to the bit, and ``fit`` as one page over them.

```python
learner = train.Learner(model, optimizer, 1e-3)
for batch in batches:
    print(learner.step(forward, batch)["loss"])
```
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from phlox_tensor.public import publish as _publish

from ._cli import cli as cli
from ._elsewhere import NAMES as _NAMES
from ._evaluate import evaluate as evaluate
from ._evaluate import predict as predict
from ._find_lr import RateTrial as RateTrial
from ._find_lr import find_lr as find_lr
from ._fit import Fitted as Fitted
from ._fit import fit as fit
from ._homes import TRAIN as _HOMES
from .metrics.metric import Metric as Metric
from .metrics.totals import Results as Results
from .runs.checkpoints import Checkpoints as Checkpoints
from .runs.errors import RunError as RunError
from .runs.events import EpochEnded as EpochEnded
from .runs.events import Event as Event
from .runs.events import Failed as Failed
from .runs.events import Measured as Measured
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

if _TYPE_CHECKING:  # metrics are loaded when the first one is used
    from ._exports import *

__version__ = "0.2.0"

_publish(__name__, _NAMES, rooms=("metrics", "runs", "step"), homes=_HOMES)
