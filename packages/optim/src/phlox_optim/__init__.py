"""Optimizers, the adaptor from tensors to modules, gradient clipping, learning-rate schedules."""

from phlox_tensor.public import publish as _publish

from ._adafactor import Adafactor as Adafactor
from ._adafactor import AdafactorConfig as AdafactorConfig
from ._adagrad import AdaGrad as AdaGrad
from ._adagrad import AdaGradConfig as AdaGradConfig
from ._adam import Adam as Adam
from ._adam import AdamConfig as AdamConfig
from ._adam import AdamW as AdamW
from ._adam import AdamWConfig as AdamWConfig
from ._adan import Adan as Adan
from ._adan import AdanConfig as AdanConfig
from ._adaptor import OptimizerAdaptor as OptimizerAdaptor
from ._by_group import GroupsConfig as GroupsConfig
from ._clipping import ClipByGlobalNorm as ClipByGlobalNorm
from ._clipping import ClipByNorm as ClipByNorm
from ._clipping import ClipByValue as ClipByValue
from ._clipping import GradientClipping as GradientClipping
from ._composed import ComposedSchedulerConfig as ComposedSchedulerConfig
from ._composed import SequentialSchedulerConfig as SequentialSchedulerConfig
from ._composed import WarmUpSchedulerConfig as WarmUpSchedulerConfig
from ._config import OptimizerConfig as OptimizerConfig
from ._elsewhere import NAMES as _NAMES
from ._groups import Group as Group
from ._lbfgs import Lbfgs as Lbfgs
from ._lbfgs import LbfgsConfig as LbfgsConfig
from ._lion import Lion as Lion
from ._lion import LionConfig as LionConfig
from ._muon import Muon as Muon
from ._muon import MuonConfig as MuonConfig
from ._norm import gradient_norm as gradient_norm
from ._optimizer import Gradients as Gradients
from ._optimizer import Optimizer as Optimizer
from ._plateau import PlateauScheduler as PlateauScheduler
from ._plateau import PlateauSchedulerConfig as PlateauSchedulerConfig
from ._rmsprop import RmsProp as RmsProp
from ._rmsprop import RmsPropConfig as RmsPropConfig
from ._rule import ConfiguredRule as ConfiguredRule
from ._rule import SimpleOptimizer as SimpleOptimizer
from ._scaling import LossScaling as LossScaling
from ._scaling import LossScalingConfig as LossScalingConfig
from ._schedulers import ConstantSchedulerConfig as ConstantSchedulerConfig
from ._schedulers import CosineRestartsSchedulerConfig as CosineRestartsSchedulerConfig
from ._schedulers import CosineSchedulerConfig as CosineSchedulerConfig
from ._schedulers import ExponentialSchedulerConfig as ExponentialSchedulerConfig
from ._schedulers import InverseSquareRootSchedulerConfig as InverseSquareRootSchedulerConfig
from ._schedulers import LinearSchedulerConfig as LinearSchedulerConfig
from ._schedulers import MultiStepSchedulerConfig as MultiStepSchedulerConfig
from ._schedulers import NoamSchedulerConfig as NoamSchedulerConfig
from ._schedulers import OneCycleSchedulerConfig as OneCycleSchedulerConfig
from ._schedulers import PolynomialSchedulerConfig as PolynomialSchedulerConfig
from ._schedulers import Scheduler as Scheduler
from ._schedulers import SchedulerConfig as SchedulerConfig
from ._schedulers import StepSchedulerConfig as StepSchedulerConfig
from ._sgd import Sgd as Sgd
from ._sgd import SgdConfig as SgdConfig

__version__ = "0.1.0"

_publish(__name__, _NAMES)
