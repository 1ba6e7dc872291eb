"""Modules, parameters, configs, layers, losses and initializers."""

from . import initializers as initializers
from ._activation import Activation as Activation
from ._activation import ActivationConfig as ActivationConfig
from ._activation import elu as elu
from ._activation import gelu as gelu
from ._activation import gelu_tanh as gelu_tanh
from ._activation import leaky_relu as leaky_relu
from ._activation import log_sigmoid as log_sigmoid
from ._activation import log_softmax as log_softmax
from ._activation import relu as relu
from ._activation import sigmoid as sigmoid
from ._activation import silu as silu
from ._activation import softmax as softmax
from ._activation import softplus as softplus
from ._activation import tanh as tanh
from ._config import Config as Config
from ._config import ConfigError as ConfigError
from ._conv import AvgPool2d as AvgPool2d
from ._conv import AvgPool2dConfig as AvgPool2dConfig
from ._conv import Conv2d as Conv2d
from ._conv import Conv2dConfig as Conv2dConfig
from ._conv import MaxPool2d as MaxPool2d
from ._conv import MaxPool2dConfig as MaxPool2dConfig
from ._linear import Embedding as Embedding
from ._linear import EmbeddingConfig as EmbeddingConfig
from ._linear import Linear as Linear
from ._linear import LinearConfig as LinearConfig
from ._loss import CrossEntropyLoss as CrossEntropyLoss
from ._loss import CrossEntropyLossConfig as CrossEntropyLossConfig
from ._loss import MseLoss as MseLoss
from ._loss import MseLossConfig as MseLossConfig
from ._module import Module as Module
from ._norm import BatchNorm as BatchNorm
from ._norm import BatchNormConfig as BatchNormConfig
from ._norm import Dropout as Dropout
from ._norm import DropoutConfig as DropoutConfig
from ._norm import LayerNorm as LayerNorm
from ._norm import LayerNormConfig as LayerNormConfig
from ._norm import RmsNorm as RmsNorm
from ._norm import RmsNormConfig as RmsNormConfig
from ._param import Param as Param

__version__ = "0.1.0"
