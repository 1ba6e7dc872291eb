"""Optimizers, schedules and gradient clipping: everything of phlox_optim."""

from phlox_optim import *
