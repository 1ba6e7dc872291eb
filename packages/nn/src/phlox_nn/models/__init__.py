"""Models from papers, with the parameter names of their PyTorch versions."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from phlox_tensor.public import publish as _publish

from .._elsewhere import MODELS as _NAMES
from .._homes import MODELS as _HOMES
from ..module.module import Module as _Module

if _TYPE_CHECKING:  # at run time each is loaded when somebody asks for it
    from ._bert import Bert as Bert
    from ._bert import BertConfig as BertConfig
    from ._causal import CausalModel as CausalModel
    from ._clip import CLIP_MEAN as CLIP_MEAN
    from ._clip import CLIP_STD as CLIP_STD
    from ._clip import Clip as Clip
    from ._clip import ClipConfig as ClipConfig
    from ._convnext import ConvNext as ConvNext
    from ._convnext import ConvNextConfig as ConvNextConfig
    from ._efficientnet import EfficientNetLite as EfficientNetLite
    from ._efficientnet import EfficientNetLiteConfig as EfficientNetLiteConfig
    from ._gguf import save_gguf as save_gguf
    from ._gpt import Gpt as Gpt
    from ._gpt import GptConfig as GptConfig
    from ._llama import Llama as Llama
    from ._llama import LlamaConfig as LlamaConfig
    from ._load import load as load
    from ._load import load_report as load_report
    from ._mobilenet import MobileNetV2 as MobileNetV2
    from ._mobilenet import MobileNetV2Config as MobileNetV2Config
    from ._resnet import ResNet as ResNet
    from ._resnet import ResNetConfig as ResNetConfig
    from ._resnet import resnet18 as resnet18
    from ._resnet import resnet50 as resnet50
    from ._save import save as save
    from ._speech import Segment as Segment
    from ._speech import SpeechTokens as SpeechTokens
    from ._speech import Transcript as Transcript
    from ._speech import transcribe as transcribe
    from ._tagger import Tagger as Tagger
    from ._tagger import TaggerConfig as TaggerConfig
    from ._unet import UNet as UNet
    from ._unet import UNetConfig as UNetConfig
    from ._vae import Vae as Vae
    from ._vae import VaeConfig as VaeConfig
    from ._vae import VaeResult as VaeResult
    from ._vit import ViT as ViT
    from ._vit import ViTConfig as ViTConfig
    from ._whisper import Whisper as Whisper
    from ._whisper import WhisperConfig as WhisperConfig
    from ._whisper import log_mel as log_mel

_publish(__name__, _NAMES, homes=_HOMES, explained=(), plain=_Module)
