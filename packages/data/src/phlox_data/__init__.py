"""Datasets and loaders: the same batches for any workers, resumed at any batch.

```python
table = data.arrays(x=features, y=labels)
training, validation = table.split(0.8)
for batch in data.DataLoader(training, 64, shuffle=True, device="cpu"):
    ...
```
"""

from phlox_tensor.public import publish as _publish

from . import augment as augment
from ._archive import archive as archive
from ._arrays import arrays as arrays
from ._arrow import arrow as arrow
from ._arrow import parquet as parquet
from ._batch import RaggedError as RaggedError
from ._batch import pad as pad
from ._batch import stack as stack
from ._coco import coco as coco
from ._csv import csv as csv
from ._dataset import Dataset as Dataset
from ._dataset import of as of
from ._dataset import zip as zip
from ._elsewhere import NAMES as _NAMES
from ._errors import DataError as DataError
from ._errors import WorkerError as WorkerError
from ._idx import Parts as Parts
from ._idx import idx as idx
from ._idx import read_idx as read_idx
from ._images import images as images
from ._images import segmentation as segmentation
from ._loader import DataLoader as DataLoader
from ._npz import npz as npz
from ._processes import Processes as Processes
from ._sampler import Blocks as Blocks
from ._sampler import Sampler as Sampler
from ._sampler import Weighted as Weighted
from ._sampler import balanced as balanced
from ._sqlite import sqlite as sqlite
from ._text import documents as documents
from ._text import jsonl as jsonl
from ._text import text as text
from ._tokens import tokens as tokens

__version__ = "0.2.0"

_publish(__name__, _NAMES)
