"""Modules, parameters, configs, layers, losses and initializers."""

from . import initializers as initializers
from ._config import Config as Config
from ._config import ConfigError as ConfigError
from ._layer import Layer as Layer
from ._layer import LayerConfig as LayerConfig
from ._layers import *
from ._module import Module as Module
from ._param import Param as Param

__version__ = "0.1.0"
