"""Training: everything of phlox_train, which `pip install phlox[train]` brings."""

from ._extras import of_extra as _of_extra
from ._mirror import mirror as _mirror

with _of_extra("train"):
    from phlox_train import *

_mirror(__name__, "phlox_train")
