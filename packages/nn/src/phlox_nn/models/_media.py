"""Settings of models of sound and images, read from ``config.json`` and written to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from phlox_tensor import RecordError

from ._clip import ClipConfig
from ._convnext import ConvNextConfig
from ._efficientnet import EfficientNetLiteConfig
from ._parts import ModelConfig
from ._published import Json, Published, word
from ._whisper import WhisperConfig


class _Names(NamedTuple):
    """An architecture whose settings have other names there, and the same values.

    Attributes:
        kind: its ``model_type``.
        config: the class of its settings.
        names: of settings there, and here; one that stands here twice must be the same in both.
        fixed: settings that are built for one value alone.
        filler: settings that only the reader there needs.
    """

    kind: str
    config: type[ModelConfig]
    names: Mapping[str, str]
    fixed: Mapping[str, Any]
    filler: Mapping[str, Any]

    def read(self, given: Json) -> ModelConfig:
        """Return the settings of a ``config.json``; what it leaves out is as usual."""
        for name, only in self.fixed.items():
            word(name, given.get(name, only), {only: only})
        own: dict[str, Any] = {}
        for theirs, here in self.names.items():
            value = given.get(theirs, own.get(here))
            if here in own and own[here] != value:
                raise RecordError("load", f"{theirs} is not built", got=value, expected=own[here])
            if value is not None:
                own[here] = tuple(value) if isinstance(value, list) else value
        return self.config(**own)

    def write(self, config: ModelConfig) -> dict[str, Any]:
        """Return the settings in the words of ``config.json``."""
        found = {theirs: getattr(config, here) for theirs, here in self.names.items()}
        return {"model_type": self.kind, **self.filler, **self.fixed, **found}


_CLIP_TEXT: Final = {
    "hidden_size": "d_model",
    "intermediate_size": "d_ff",
    "max_position_embeddings": "positions",
    "num_attention_heads": "n_heads",
    "num_hidden_layers": "n_layers",
    "vocab_size": "words",
}
_CLIP_IMAGE: Final = {
    "hidden_size": "d_image",
    "image_size": "image",
    "intermediate_size": "d_ff_image",
    "num_attention_heads": "n_heads_image",
    "num_channels": "channels_in",
    "num_hidden_layers": "n_layers_image",
    "patch_size": "patch",
}
# In both halves.
_CLIP_BOTH: Final = {"hidden_act": "activation", "layer_norm_eps": "epsilon"}
_END: Final = 49407  # where a file does not say
_OLD_END: Final = 2  # what the first files say, and mean the largest token


def _clip(given: Json) -> ClipConfig:
    """The settings of both halves, which newer files hold inside of the whole."""
    halves = (given.get("text_config") or {}, given.get("vision_config") or {})
    own = {"d_shared": given.get("projection_dim", ClipConfig().d_shared)}
    for half, names in zip(halves, (_CLIP_TEXT, _CLIP_IMAGE), strict=True):
        own |= {here: half[theirs] for theirs, here in names.items() if theirs in half}
        for theirs, here in _CLIP_BOTH.items():
            value = half.get(theirs, getattr(ClipConfig(), here))
            if own.setdefault(here, value) != value:
                raise RecordError("load", f"{theirs} is not built", got=value, expected=own[here])
    word("hidden_act", own["activation"], {"gelu": "gelu", "quick_gelu": "quick_gelu"})
    end = halves[0].get("eos_token_id", _END)
    return ClipConfig(**own, end=None if end == _OLD_END else end)


def _clip_settings(config: ClipConfig) -> dict[str, Any]:
    """The settings in the words of ``config.json``."""
    text, images = (
        {theirs: getattr(config, here) for theirs, here in {**names, **_CLIP_BOTH}.items()}
        for names in (_CLIP_TEXT, _CLIP_IMAGE)
    )
    text["eos_token_id"] = _OLD_END if config.end is None else config.end
    shared = {"projection_dim": config.d_shared}
    halves = {"text_config": {**text, **shared}, "vision_config": {**images, **shared}}
    return {"model_type": "clip", **shared, **halves}


_WHISPER: Final = _Names(
    "whisper",
    WhisperConfig,
    {
        "d_model": "d_model",
        "decoder_attention_heads": "n_heads",
        "decoder_ffn_dim": "d_ff",
        "decoder_layers": "n_layers_decoder",
        "dropout": "dropout",
        "encoder_attention_heads": "n_heads",
        "encoder_ffn_dim": "d_ff",
        "encoder_layers": "n_layers",
        "max_source_positions": "frames",
        "max_target_positions": "positions",
        "num_mel_bins": "mels",
        "vocab_size": "words",
    },
    {"activation_function": "gelu", "scale_embedding": False, "tie_word_embeddings": True},
    dict.fromkeys(("bos_token_id", "eos_token_id", "pad_token_id")),  # else those of full size
)

_CONVNEXT: Final = _Names(
    "convnext",
    ConvNextConfig,
    {
        "depths": "depths",
        "hidden_sizes": "widths",
        "layer_norm_eps": "epsilon",
        "layer_scale_init_value": "scale",
        "num_channels": "channels_in",
        "patch_size": "patch",
    },
    {"hidden_act": "gelu"},
    {},
)
_USUAL_CLASSES: Final = 2  # where a file of transformers names none


def _convnext(given: Json) -> ModelConfig:
    """The settings, of which the classes are counted by their names."""
    classes = len(given.get("id2label") or ()) or given.get("num_labels", _USUAL_CLASSES)
    return _CONVNEXT.read(given).replace(classes=classes)


def _convnext_settings(config: ConvNextConfig) -> dict[str, Any]:
    names = [f"LABEL_{i}" for i in range(config.classes)]
    labels = {"id2label": dict(enumerate(names)), "label2id": {k: i for i, k in enumerate(names)}}
    return {**_CONVNEXT.write(config), **labels, "num_stages": len(config.widths)}


# The factors of width and depth by the last letter of the name.
_LITE: Final = {"0": (1.0, 1.0), "1": (1.0, 1.1), "2": (1.1, 1.2), "3": (1.2, 1.4), "4": (1.4, 1.8)}
_LITE_NAME: Final = "efficientnet_lite"


def _lite(given: Json) -> EfficientNetLiteConfig:
    """The settings of a folder of timm, whose architecture is a name with a size."""
    name = given["architecture"]
    width, depth = _LITE[name[-1]]
    classes = given.get("num_classes", 1000)
    return EfficientNetLiteConfig(width, depth, classes, like_tensorflow=name.startswith("tf_"))


def _lite_settings(config: EfficientNetLiteConfig) -> dict[str, Any]:
    """The same, of timm; other factors than its own are those of the first."""
    factors = {pair: size for size, pair in _LITE.items()}
    size = factors.get((config.width, config.depth), "0")
    name = f"{'tf_' if config.like_tensorflow else ''}{_LITE_NAME}{size}"
    return {"architecture": name, "num_classes": config.classes, "num_features": 1280}


MEDIA: Final[Mapping[str, Published]] = {
    **{f"{kind}{_LITE_NAME}{size}": Published(_lite) for size in _LITE for kind in ("", "tf_")},
    "CLIPModel": Published(_clip, unused=r"\.position_ids$"),
    "ConvNextForImageClassification": Published(_convnext),
    "WhisperForConditionalGeneration": Published(
        _WHISPER.read, prefix="model.", unused=r"^proj_out\.weight$"
    ),
}
# Class of settings -> the architecture, and what writes them.
_WRITTEN: Final[Mapping[type[ModelConfig], tuple[str, Callable[[Any], dict[str, Any]]]]] = {
    ClipConfig: ("CLIPModel", _clip_settings),
    ConvNextConfig: ("ConvNextForImageClassification", _convnext_settings),
    EfficientNetLiteConfig: ("", _lite_settings),
    WhisperConfig: ("WhisperForConditionalGeneration", _WHISPER.write),
}


def described(config: Any) -> dict[str, Any]:
    """Return the settings of a model as a ``config.json`` has them."""
    if type(config) not in _WRITTEN:
        expected = ", ".join(sorted(each.__name__ for each in _WRITTEN))
        raise RecordError("save", "not built", got=type(config).__name__, expected=expected)
    architecture, write = _WRITTEN[type(config)]
    named = {"architectures": [architecture]} if architecture else {}  # timm has its own word
    return {**named, **write(config)}
