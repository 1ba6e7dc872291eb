"""Many processes, same bits: over MPI, started and started again by ``phlox launch``.

```python
group = distributed.init()  # started alone: a group of one
learner = train.Learner(model, optimizer, 1e-3, microbatches=8, group=group)
```
"""

from phlox_tensor import Distributed as Distributed
from phlox_tensor.groups import Group as Group
from phlox_tensor.groups import Solo as Solo
from phlox_tensor.groups import all_gather_object as all_gather_object
from phlox_tensor.groups import broadcast_object as broadcast_object
from phlox_tensor.names import PROCESSES as _NAMES
from phlox_tensor.public import publish as _publish

from ._errors import DistributedError as DistributedError
from ._init import init as init
from ._mpi import Mpi as Mpi
from ._sums import tree_sum as tree_sum

__version__ = "0.2.0"

_publish(__name__, _NAMES)
