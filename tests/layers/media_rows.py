"""Small models of sound and images, by the settings of their published configs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

import phlox as px
from phlox import nn
from phlox_nn.models._load import named
from phlox_nn.models._public import published

Array = np.ndarray[Any, Any]
DEVICE: Final = px.Cpu()

# Name -> what config.json says, of parts and of all.
_TEXT: Final[dict[str, Any]] = {
    "eos_token_id": 30,
    "hidden_size": 16,
    "intermediate_size": 24,
    "max_position_embeddings": 12,
    "num_attention_heads": 2,
    "num_hidden_layers": 2,
    "projection_dim": 20,
    "vocab_size": 40,
}
_VISION: Final[dict[str, Any]] = {
    "hidden_size": 18,
    "image_size": 16,
    "intermediate_size": 26,
    "num_attention_heads": 3,
    "num_hidden_layers": 3,
    "patch_size": 4,
    "projection_dim": 20,
}
_CLIP: Final[dict[str, Any]] = {
    "architectures": ["CLIPModel"],
    "projection_dim": 20,
    "text_config": _TEXT,
    "vision_config": _VISION,
}
ROWS: Final[Mapping[str, dict[str, Any]]] = {
    "CLIP": _CLIP,
    "CLIP-old": {
        **_CLIP,
        "text_config": {**_TEXT, "eos_token_id": 2, "hidden_act": "gelu"},
        "vision_config": {**_VISION, "hidden_act": "gelu"},
    },
    "ConvNext": {
        "architectures": ["ConvNextForImageClassification"],
        "depths": [1, 2],
        "hidden_sizes": [6, 10],
        "id2label": {str(i): str(i) for i in range(5)},
        "layer_scale_init_value": 0.5,
        "num_stages": 2,
        "patch_size": 2,
    },
    "ConvNext-plain": {
        "architectures": ["ConvNextForImageClassification"],
        "depths": [1],
        "hidden_sizes": [6],
        "id2label": {str(i): str(i) for i in range(5)},
        "layer_scale_init_value": 0.0,
        "num_stages": 1,
    },
    "Lite": {"architecture": "efficientnet_lite0", "num_classes": 5},
    "Lite-tf": {"architecture": "tf_efficientnet_lite1", "num_classes": 5},
    "Whisper": {
        "architectures": ["WhisperForConditionalGeneration"],
        "bos_token_id": 40,
        "d_model": 16,
        "decoder_attention_heads": 2,
        "decoder_ffn_dim": 24,
        "decoder_layers": 3,
        "decoder_start_token_id": 41,
        "encoder_attention_heads": 2,
        "encoder_ffn_dim": 24,
        "encoder_layers": 2,
        "eos_token_id": 40,
        "max_source_positions": 50,
        "max_target_positions": 30,
        "num_mel_bins": 8,
        "pad_token_id": 40,
        "vocab_size": 220,
    },
}
_DRAWN = np.random.default_rng(0)
TOKENS: Final = _DRAWN.integers(0, 40, (2, 7))
_TEXTS: Final = np.array([[1, 30, 7, 39, 30], [5, 8, 2, 1, 30], [3, 35, 30, 30, 30]])
_IMAGES: Final = _DRAWN.normal(size=(2, 3, 16, 16)).astype("f")
_WIDE: Final = _DRAWN.normal(size=(2, 3, 65, 46)).astype("f")
# Name -> what is mapped, by the names of transformers.
INPUTS: Final[Mapping[str, dict[str, Array]]] = {
    "CLIP": {"input_ids": _TEXTS, "pixel_values": _IMAGES},
    "CLIP-old": {"input_ids": _TEXTS, "pixel_values": _IMAGES},
    "ConvNext": {"pixel_values": _IMAGES},
    "ConvNext-plain": {"pixel_values": _IMAGES},
    "Lite": {"x": _WIDE},
    "Lite-tf": {"x": _WIDE},
    "Whisper": {
        "input_features": _DRAWN.normal(size=(2, 8, 100)).astype("f"),
        "decoder_input_ids": TOKENS,
    },
}


def model_of(name: str) -> Any:
    """The model of a row, whose weights follow from the order of their names."""
    model: nn.Module = published(ROWS[name]).config(ROWS[name]).init(DEVICE)
    found = dict(named(model.into_record(layout="pytorch")))
    record: Any = {
        path: _weight(path, place, found[path].tensor.shape)
        for place, path in enumerate(sorted(found))
    }
    return model.load_record(record, layout="pytorch")


def _weight(path: str, place: int, shape: tuple[int, ...]) -> Array:
    """The weight at a place in the order of names, as PyTorch has it."""
    drawn = np.asarray(np.random.default_rng(place).standard_normal(shape) * 0.3, np.float32)
    return np.abs(drawn) + 0.5 if path.endswith("running_var") else drawn


def given(name: str) -> list[Any]:
    """What is mapped, on the device."""
    return [px.asarray(each, device=DEVICE) for each in INPUTS[name].values()]
