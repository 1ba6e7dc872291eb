"""Modules, parameters, configs, layers, losses and initializers."""

import sys as _sys
from typing import TYPE_CHECKING as _TYPE_CHECKING

from phlox_tensor.arguments import classes_of as _classes_of
from phlox_tensor.arguments import explain as _explain
from phlox_tensor.names import unknown_name as _unknown_name

from . import initializers as initializers
from . import models as models
from ._attention import KeyValues as KeyValues
from ._attention import causal_mask as causal_mask
from ._attention import padding_mask as padding_mask
from ._config import Config as Config
from ._elsewhere import NAMES as _NAMES
from ._initialize import initialize as initialize
from ._layer import Layer as Layer
from ._layer import LayerConfig as LayerConfig
from ._layers import *
from ._loading import LoadReport as LoadReport
from ._lora import LoraWeight as LoraWeight
from ._lora import apply_lora as apply_lora
from ._lora import load_lora_record as load_lora_record
from ._lora import lora_record as lora_record
from ._lora import merge_lora as merge_lora
from ._made import MadeWeight as MadeWeight
from ._module import Module as Module
from ._normed import NormedWeight as NormedWeight
from ._normed import SpectralWeight as SpectralWeight
from ._normed import remove_spectral_norm as remove_spectral_norm
from ._normed import remove_weight_norm as remove_weight_norm
from ._normed import spectral_norm as spectral_norm
from ._normed import weight_norm as weight_norm
from ._param import Param as Param
from ._param import State as State
from ._parts import map_modules as map_modules
from ._parts import modules as modules
from ._parts import moving_average as moving_average
from ._parts import visit_modules as visit_modules
from ._position import RotaryScalingConfig as RotaryScalingConfig
from ._quantize import WeightQuantizer as WeightQuantizer
from ._recurrent import LstmState as LstmState
from ._recurrent import Recurrence as Recurrence
from ._sequential import Sequential as Sequential
from ._settings import ConfigError as ConfigError
from ._stored import QuantizedWeight as QuantizedWeight
from ._stored import dequantize_weights as dequantize_weights
from ._stored import quantize_weights as quantize_weights
from ._summary import Summary as Summary
from ._summary import SummaryRow as SummaryRow
from ._summary import summary as summary
from ._transformer_decoder import DecoderCache as DecoderCache
from ._updates import Updates as Updates
from ._updates import collect as collect
from ._updates import gradients_of as gradients_of
from ._updates import propose as propose
from ._updates import updates_of as updates_of
from ._updates import with_updates as with_updates

__version__ = "0.1.0"

_parts = [
    c for c in _classes_of(_sys.modules[__name__]) if c is Module or not issubclass(c, Module)
]
_explain(_sys.modules[__name__], *_parts, models.Gpt)


# Type checkers would take any name for one that exists.
if not _TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Say what a name of PyTorch is called here, or which name is near."""
        if name.startswith("_"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        raise _unknown_name(name, "phlox_nn", _NAMES, __dir__())


def __dir__() -> list[str]:
    """Every public name."""
    return sorted(name for name in globals() if not name.startswith("_"))
