"""What others call the functions of this package."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_SAVE: Final = 'px.onnx.save(model, (x,), "model.onnx", dynamic={"x": {0: "batch"}})'

# Names of ``torch.onnx``, ``onnx`` and ``onnxruntime`` -> what to type.
NAMES: Final[Mapping[str, str]] = {
    "InferenceSession": 'model = px.onnx.load("model.onnx"); model(x)',
    "dynamo_export": _SAVE,
    "export": _SAVE,
    "load_model": 'px.onnx.load("model.onnx")',
    "save_model": _SAVE,
}
