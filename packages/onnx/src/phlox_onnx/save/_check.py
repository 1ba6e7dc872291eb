"""What a file must pass before it takes its place."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
from onnx import helper

from phlox_nn import Module
from phlox_tensor import Backend, PhloxError, Tensor, tree, use_device

from .._difference import difference
from .._errors import OnnxError
from ..read._limits import Limits
from ..run._model import model_of
from ._open import Inputs
from ._writer import OPSET

# Beside the largest value; sums are ordered otherwise in spellings of several ops.
_FAR: Final = 1e-3
_NO_LIMITS: Final = Limits(file_bytes=1 << 62, nodes=1 << 62, elements=1 << 62, name=1 << 20)


def refuse_unfit(model: onnx.ModelProto, places: Sequence[str]) -> None:
    """Refuse nodes that ONNX does not have for the element types that they get."""
    types = _types(model)
    for node, place in zip(model.graph.node, places, strict=True):
        schema = onnx.defs.get_schema(node.op_type, OPSET)
        for i, name in enumerate(node.input):
            formal = schema.inputs[min(i, len(schema.inputs) - 1)]
            if name in types and types[name] not in formal.types:
                got = f"{node.op_type} of {types[name]} in {place}"
                expected = ", ".join(sorted(formal.types))
                hint = 'x.astype("float32") before it'
                what = "an element type that ONNX does not have here"
                raise OnnxError("save", what, got=got, expected=expected, hint=hint)


def _types(model: onnx.ModelProto) -> dict[str, str]:
    """The element types of all values; weights stand in as inputs, since types need no numbers."""
    graph = model.graph
    weights = [
        helper.make_tensor_value_info(t.name, t.data_type, t.dims) for t in graph.initializer
    ]
    bare = helper.make_graph(
        list(graph.node), "types", [*graph.input, *weights], list(graph.output)
    )
    found = onnx.shape_inference.infer_shapes(
        helper.make_model(bare, opset_imports=list(model.opset_import), ir_version=model.ir_version)
    ).graph
    names = {v: str(k).lower() for k, v in onnx.TensorProto.DataType.items()}
    return {
        v.name: f"tensor({names[v.type.tensor_type.elem_type]})"
        for v in [*found.input, *found.value_info]
    }


def verified(
    path: Path,
    net: Module,
    inputs: Inputs,
    feeds: Sequence[list[Any]],
    names: Sequence[str],
    device: Backend,
    *,
    asked: bool,
) -> None:
    """Check a file by the rules of ONNX and, where asked, load it and compare it with the module.

    Raises:
        OnnxError: when it does not pass.
    """
    try:
        onnx.checker.check_model(str(path), full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        raise OnnxError("save", "the file would break the rules of ONNX", got=str(error)) from error
    if not asked:
        return
    back = model_of(path, device.base, limits=_NO_LIMITS)
    for tensors in feeds:
        try:
            with use_device(device):
                found = net(*inputs.arguments(tensors))
                wanted = [t for t in tree.leaves(found) if t is not None]
        except PhloxError:
            continue  # sizes that the module does not take
        given = [t.to_device(device.base) for t in tensors if t is not None]
        shape = given[0].shape if given else ()
        try:
            found = back(*given)
        except PhloxError as error:
            raise _wrong(f"{error}", shape) from error
        several = found if isinstance(found, tuple) else (found,)
        for name, a, b in zip(names, wanted, several, strict=True):
            off = _difference(a, b)
            if off:
                raise _wrong(f"{name}: {off}", shape)


def _wrong(got: str, shape: tuple[int, ...]) -> OnnxError:
    what = f"the file does not give what the module gives for an input of shape {shape}"
    return OnnxError("save", what, got=got, expected="the same", hint="verify=False writes it")


def _difference(wanted: Tensor[Any], found: Any) -> str:
    """What tells two results apart; nothing for those that agree."""
    if not isinstance(found, Tensor):
        return type(found).__name__
    a, b = wanted.numpy(), found.numpy()
    if (a.shape, a.dtype) != (b.shape, b.dtype):
        return f"{b.dtype}{list(b.shape)} in place of {a.dtype}{list(a.shape)}"
    if wanted.dtype.kind != "Float":
        wrong = int((a != b).sum())
        return f"{wrong} of {a.size} values" if wrong else ""
    off = difference(b, a)
    if off == inf:
        return "infinite or no numbers at other places"
    near = max(_FAR, 16 * float(np.finfo(np.float32).eps if a.dtype.itemsize > 2 else 2.0**-7))
    return f"off by {off:.1e} of the largest value" if off > near else ""
