"""Optimizers, the adaptor from tensors to modules, gradient clipping, learning-rate schedules."""

from ._adam import Adam as Adam
from ._adam import AdamConfig as AdamConfig
from ._adam import AdamW as AdamW
from ._adam import AdamWConfig as AdamWConfig
from ._adaptor import OptimizerAdaptor as OptimizerAdaptor
from ._clipping import ClipByGlobalNorm as ClipByGlobalNorm
from ._clipping import ClipByNorm as ClipByNorm
from ._clipping import ClipByValue as ClipByValue
from ._clipping import GradientClipping as GradientClipping
from ._config import OptimizerConfig as OptimizerConfig
from ._optimizer import Gradients as Gradients
from ._optimizer import Optimizer as Optimizer
from ._rule import SimpleOptimizer as SimpleOptimizer
from ._schedulers import ConstantSchedulerConfig as ConstantSchedulerConfig
from ._schedulers import CosineSchedulerConfig as CosineSchedulerConfig
from ._schedulers import LinearSchedulerConfig as LinearSchedulerConfig
from ._schedulers import Scheduler as Scheduler
from ._schedulers import SchedulerConfig as SchedulerConfig
from ._schedulers import StepSchedulerConfig as StepSchedulerConfig
from ._sgd import Sgd as Sgd
from ._sgd import SgdConfig as SgdConfig

__version__ = "0.1.0"
