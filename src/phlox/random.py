"""Random tensors and the streams they come from: everything of phlox_tensor.random."""

from phlox_tensor.random import *
