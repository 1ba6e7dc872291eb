"""Optimizers, schedules and gradient clipping: everything of phlox_optim."""

from phlox_optim import *

from ._mirror import mirror as _mirror

_mirror(__name__, "phlox_optim")
