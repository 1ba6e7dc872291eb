"""The models of the onnx wheel on the CPU: what exporters wrote once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.backend.test
import pytest

import phlox as px

DATA = Path(str(onnx.backend.test.__file__)).parent / "data"
FOLDERS = [
    folder
    for kind in ("pytorch-converted", "pytorch-operator", "simple")
    for folder in sorted((DATA / kind).iterdir())
]
LIGHT = sorted((DATA / "light").glob("*.onnx"))
# Strings, and gradients that a node asks for.
REFUSED = {f.name for f in FOLDERS if f.name.startswith(("test_strnorm", "test_gradient_"))}


def parsed(path: Path, value: Any) -> Any:
    """A value of a file, of the type that the model says."""
    kind = value.type.WhichOneof("value")
    proto = {
        "tensor_type": onnx.TensorProto,
        "sequence_type": onnx.SequenceProto,
        "optional_type": onnx.OptionalProto,
    }[kind]()
    proto.ParseFromString(path.read_bytes())
    read: Any = {
        "tensor_type": onnx.numpy_helper.to_array,
        "sequence_type": onnx.numpy_helper.to_list,
        "optional_type": onnx.numpy_helper.to_optional,
    }[kind]
    return read(proto)


def on_device(value: Any) -> Any:
    if value is None:
        return None
    return [px.asarray(v) for v in value] if isinstance(value, list) else px.asarray(value)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda f: f.name)
def test_models_of_exporters(folder: Path) -> None:
    file = folder / "model.onnx"
    if folder.name in REFUSED:
        with pytest.raises(px.onnx.OnnxError, match="ops without a row"):
            px.onnx.load(file)
        return
    model, graph = px.onnx.load(file, device=px.Cpu()), onnx.load(str(file)).graph
    sets = sorted(folder.glob("test_data_set_*"))
    assert sets
    for each in sets:
        count = len(list(each.glob("input_*.pb")))
        given = [parsed(each / f"input_{i}.pb", graph.input[i]) for i in range(count)]
        found = model(*map(on_device, given))
        outputs = found if isinstance(found, tuple) else (found,)
        for i, output in enumerate(outputs):
            wanted = parsed(each / f"output_{i}.pb", graph.output[i])
            items = (
                zip(output, wanted, strict=True) if isinstance(wanted, list) else [(output, wanted)]
            )
            for got, expected in items:
                assert got.shape == expected.shape
                np.testing.assert_allclose(got.numpy(), expected, rtol=1e-3, atol=1e-7)


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("file", LIGHT, ids=lambda f: f.stem)
def test_known_networks(file: Path) -> None:
    """The wheel's own runner makes the inputs the same way: a ramp from 0 to 1."""
    model, graph = px.onnx.load(file, device=px.Cpu()), onnx.load(str(file)).graph
    inputs = [v for v in graph.input if v.name in model.inputs]
    shapes = [[d.dim_value for d in v.type.tensor_type.shape.dim] for v in inputs]
    given = [np.arange(np.prod(s), dtype=np.float32).reshape(s) / np.prod(s) for s in shapes]
    found = model(*(px.asarray(v.astype(np.float32)) for v in given))
    wanted = onnx.numpy_helper.to_array(
        onnx.load_tensor(str(file).replace(".onnx", "_output_0.pb"))
    )
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-3, atol=1e-5)
