"""Training: everything of phlox_train, which `pip install phlox[train]` brings."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from ._extras import of_extra as _of_extra

with _of_extra("train"):
    from phlox_train import *

    if not _TYPE_CHECKING:
        from phlox_train import __dir__, __getattr__  # noqa: F401 - metrics, names of others
