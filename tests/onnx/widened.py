"""Files with all their floats in float64: what they would give without rounding, nearly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx

_FLOAT, _DOUBLE = onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE


def widened(path: Path) -> bytes:
    """A file whose inputs, constants and casts of float32 are of float64."""
    model = onnx.load(str(path))
    _widen(model.graph)
    for function in model.functions:
        _widen_nodes(function.node)
    return bytes(model.SerializeToString())


def _widen(graph: Any) -> None:
    for tensor in graph.initializer:
        _widen_tensor(tensor)
    for value in (*graph.input, *graph.output, *graph.value_info):
        if value.type.tensor_type.elem_type == _FLOAT:
            value.type.tensor_type.elem_type = _DOUBLE
    _widen_nodes(graph.node)


def _widen_nodes(nodes: Any) -> None:
    for node in nodes:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.TENSOR:
                _widen_tensor(attribute.t)
            elif attribute.type == onnx.AttributeProto.GRAPH:
                _widen(attribute.g)
            elif node.op_type == "Cast" and attribute.name == "to" and attribute.i == _FLOAT:
                attribute.i = _DOUBLE


def _widen_tensor(tensor: Any) -> None:
    if tensor.data_type == _FLOAT:
        array = onnx.numpy_helper.to_array(tensor).astype(np.float64)
        tensor.CopyFrom(onnx.numpy_helper.from_array(array, tensor.name))
