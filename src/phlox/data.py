"""Datasets and loaders: everything of phlox_data, which `pip install phlox[data]` brings."""

from ._extras import of_extra as _of_extra
from ._mirror import mirror as _mirror

with _of_extra("data"):
    from phlox_data import *

_mirror(__name__, "phlox_data")
