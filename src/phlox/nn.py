"""Modules, configs, layers, losses and initializers: everything of phlox_nn."""

from phlox_nn import *

from ._mirror import mirror as _mirror

_mirror(__name__, "phlox_nn")
