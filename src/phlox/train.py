"""Training: everything of phlox_train, which `pip install phlox[train]` brings."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from ._extras import of_extra as _of_extra
from ._mirror import mirror as _mirror

if _TYPE_CHECKING:  # at run time each is loaded when somebody asks for it
    from phlox_train import *

with _of_extra("train"):
    _mirror(__name__, "phlox_train")
