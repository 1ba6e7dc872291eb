"""Optimizers, schedules and gradient clipping: everything of phlox_optim."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from phlox_optim import *

if not _TYPE_CHECKING:
    from phlox_optim import __getattr__  # noqa: F401 - says what names of PyTorch are called here
