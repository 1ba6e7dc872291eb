"""Optimizers, the adaptor from tensors to modules, gradient clipping, learning-rate schedules."""

from phlox_tensor.public import publish as _publish

from ._adaptor import OptimizerAdaptor as OptimizerAdaptor
from ._clipping import ClipByGlobalNorm as ClipByGlobalNorm
from ._clipping import ClipByNorm as ClipByNorm
from ._clipping import ClipByValue as ClipByValue
from ._clipping import GradientClipping as GradientClipping
from ._elsewhere import NAMES as _NAMES
from ._exports import *
from ._groups import Group as Group
from ._norm import gradient_norm as gradient_norm
from ._optimizer import Gradients as Gradients
from ._rule import ConfiguredRule as ConfiguredRule
from ._rule import SimpleOptimizer as SimpleOptimizer

__version__ = "0.2.0"

_publish(__name__, _NAMES)
