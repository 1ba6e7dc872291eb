"""Modules, configs, layers, losses and initializers: everything of phlox_nn."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from phlox_nn import *

if not _TYPE_CHECKING:
    from phlox_nn import __getattr__  # noqa: F401 - says what names of PyTorch are called here
