"""Modules, configs, layers, losses and initializers: everything of phlox_nn."""

from phlox_nn import *
