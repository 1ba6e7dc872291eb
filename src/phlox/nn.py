"""Modules, configs, layers, losses and initializers: everything of phlox_nn."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from ._mirror import mirror as _mirror

if _TYPE_CHECKING:  # at run time each is loaded when somebody asks for it
    from phlox_nn import *

_mirror(__name__, "phlox_nn")
