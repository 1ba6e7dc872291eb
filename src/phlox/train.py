"""Training: everything of phlox_train."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from phlox_train import *

if not _TYPE_CHECKING:
    from phlox_train import __dir__, __getattr__  # noqa: F401 - metrics, names of others
