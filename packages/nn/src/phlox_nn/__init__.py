"""Modules, parameters, configs, layers, losses and initializers."""

import re as _re
from collections.abc import Mapping as _Mapping
from typing import TYPE_CHECKING as _TYPE_CHECKING

import phlox_tensor as _tensor
from phlox_tensor.public import publish as _publish

from . import initializers as initializers
from . import models as models
from ._elsewhere import NAMES as _NAMES
from ._homes import MODELS as _MODELS
from ._homes import NN as _HOMES
from .loading.report import LoadReport as LoadReport
from .module.layer import LayerConfig as LayerConfig
from .module.module import Module as Module
from .module.updates import Updates as Updates
from .param.param import Param as Param
from .settings.config import Config as Config

if _TYPE_CHECKING:  # at run time each is loaded when somebody asks for it
    from ._exports import *
    from .layers.attention import KeyValues as KeyValues
    from .layers.attention import causal_mask as causal_mask
    from .layers.attention import padding_mask as padding_mask
    from .layers.decoder import DecoderCache as DecoderCache
    from .layers.position import RotaryScalingConfig as RotaryScalingConfig
    from .layers.recurrent import LstmState as LstmState
    from .layers.recurrent import Recurrence as Recurrence
    from .module.layer import Layer as Layer
    from .module.sequential import Sequential as Sequential
    from .module.summary import Summary as Summary
    from .module.summary import SummaryRow as SummaryRow
    from .module.summary import summary as summary
    from .module.updates import collect as collect
    from .module.updates import gradients_of as gradients_of
    from .module.updates import propose as propose
    from .module.updates import updates_of as updates_of
    from .module.updates import with_updates as with_updates
    from .module.visit import map_modules as map_modules
    from .module.visit import modules as modules
    from .module.visit import moving_average as moving_average
    from .module.visit import visit_modules as visit_modules
    from .param.param import State as State
    from .param.quantize import WeightQuantizer as WeightQuantizer
    from .settings.fields import ConfigError as ConfigError
    from .weights.adapter_files import load_adapters as load_adapters
    from .weights.adapter_files import save_adapters as save_adapters
    from .weights.blocks import BlockWeight as BlockWeight
    from .weights.computed import ComputedWeight as ComputedWeight
    from .weights.initialize import initialize as initialize
    from .weights.lora import LoraWeight as LoraWeight
    from .weights.lora import apply_lora as apply_lora
    from .weights.lora import load_lora_record as load_lora_record
    from .weights.lora import lora_record as lora_record
    from .weights.lora import merge_lora as merge_lora
    from .weights.norms import NormedWeight as NormedWeight
    from .weights.norms import SpectralWeight as SpectralWeight
    from .weights.norms import remove_spectral_norm as remove_spectral_norm
    from .weights.norms import remove_weight_norm as remove_weight_norm
    from .weights.norms import spectral_norm as spectral_norm
    from .weights.norms import weight_norm as weight_norm
    from .weights.quantized import QuantizedWeight as QuantizedWeight
    from .weights.quantized import dequantize_weights as dequantize_weights
    from .weights.quantized import quantize_weights as quantize_weights

__version__ = "0.2.0"


def _meant_by(name: str) -> _Mapping[str, str]:
    """What to type for a name of PyTorch, a model's, or a function's, which are in px."""
    models = {name: f"nn.models.{name}"} if name in _MODELS else _NAMES
    if not name.islower() or name in _NAMES:
        return models
    try:
        getattr(_tensor, name)
    except _tensor.UnknownNameError as error:
        known = "otherwise" in error.what or "calls this" in error.what
        return {name: _re.sub(r"\bpt\b", "px", str(error.hint))} if known else models
    return {name: f"px.{name}"}


_rooms = "generation ids layers loading losses module param parts settings weights where"
_publish(
    __name__,
    _meant_by,
    rooms=_rooms.split(),
    homes=_HOMES,
    explained=(Config, LayerConfig, LoadReport, Module, Param, Updates),
    plain=Module,
)
