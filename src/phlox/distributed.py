"""Many processes: phlox_distributed, which `pip install phlox[distributed]` brings."""

from ._extras import of_extra as _of_extra

with _of_extra("distributed"):
    from phlox_distributed import *
