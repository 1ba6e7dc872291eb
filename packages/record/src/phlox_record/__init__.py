"""Records: trees of tensors and plain values, written to files and read back safely.

```python
recorder = NamedMsgpackRecorder(HalfPrecision)
recorder.record({"weight": weight, "step": 300}, "checkpoint")  # checkpoint.mpk
record = recorder.load("checkpoint", device=gpu)
```
"""

from phlox_tensor import RecordError as RecordError
from phlox_tensor.public import publish as _publish

from ._checkpoint import Checkpointer as Checkpointer
from ._compare import Statistics as Statistics
from ._compare import differences as differences
from ._compare import statistics as statistics
from ._content import Content as Content
from ._inspect import FileInfo as FileInfo
from ._inspect import convert as convert
from ._inspect import inspect as inspect
from ._inspect import load as load
from ._limits import Limits as Limits
from ._loss import Loss as Loss
from ._loss import precision_loss as precision_loss
from ._precision import BFloat16Precision as BFloat16Precision
from ._precision import DoublePrecision as DoublePrecision
from ._precision import FullPrecision as FullPrecision
from ._precision import HalfPrecision as HalfPrecision
from ._precision import KeepPrecision as KeepPrecision
from ._precision import PrecisionSettings as PrecisionSettings
from ._recorder import Recorder as Recorder
from ._recorders import CompactMsgpackGzRecorder as CompactMsgpackGzRecorder
from ._recorders import CompactMsgpackRecorder as CompactMsgpackRecorder
from ._recorders import GgufRecorder as GgufRecorder
from ._recorders import JsonGzRecorder as JsonGzRecorder
from ._recorders import JsonRecorder as JsonRecorder
from ._recorders import NamedMsgpackGzRecorder as NamedMsgpackGzRecorder
from ._recorders import NamedMsgpackRecorder as NamedMsgpackRecorder
from ._recorders import NpzRecorder as NpzRecorder
from ._recorders import PyTorchRecorder as PyTorchRecorder
from ._recorders import SafetensorsRecorder as SafetensorsRecorder
from ._recorders import gguf_metadata as gguf_metadata
from ._recorders import recorder_for as recorder_for
from ._saving import Saving as Saving
from ._tensors import layout_of as layout_of
from ._tensors import materialize as materialize
from ._tree import Keyed as Keyed
from ._tree import ParamEntry as ParamEntry
from ._tree import Record as Record
from ._tree import RecordInput as RecordInput
from ._tree import Stored as Stored
from ._tree import TensorEntry as TensorEntry
from ._version import VERSION

__version__ = VERSION

_publish(__name__)
