"""Many processes: phlox_distributed, which `pip install phlox[distributed]` brings."""

from ._extras import of_extra as _of_extra
from ._mirror import mirror as _mirror

with _of_extra("distributed"):
    from phlox_distributed import *

_mirror(__name__, "phlox_distributed")
