"""Files of any batch: what follows from the batch follows it in the file, or is refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
import pytest

import phlox as px
from phlox import Cpu, nn
from tests.layers.cases import CASES
from tests.layers.test_layers import drawn as weights
from tests.layers.test_layers import tensors
from tests.onnx.exported import Of, drawn, onnxruntime

DEVICE: Final = Cpu()
SIZES: Final = (1, 2, 5, 9)


def _places(x: Any) -> Any:
    return px.arange(x.shape[0], device=x.device).astype("float32")[:, None]


def _full(x: Any, rows: int) -> Any:
    return px.asarray(np.full((rows, 4), x.shape[0], np.float32), device=x.device)


FOLLOWING: Final[dict[str, Callable[[Any], Any]]] = {
    "a constant of the host": lambda x: x + _full(x, 1),
    "a constant row for each": lambda x: x + _full(x, x.shape[0]),
    "a fraction": lambda x: x * (0.5 * x.shape[0]),
    "a mean by hand": lambda x: x.sum(axis=0) / x.shape[0],
    "a mean of pairs": lambda x: (x @ x.mT).sum() / (2 * x.shape[0] + 1),
    "a number": lambda x: x * float(x.shape[0]),
    "a power": lambda x: x ** x.shape[0],
    "a shape of two": lambda x: px.broadcast_to(x, (x.shape[0], *x.shape)).sum(axis=0),
    "all but the first": lambda x: x[1:],
    "filled": lambda x: x + px.full((x.shape[0], 1), float(x.shape[0]), device=x.device),
    "in turn": lambda x: x[::-1],
    "nothing": lambda x: x[:, :0].reshape(x.shape[0], 0, 2),
    "places": lambda x: x * _places(x),
    "sorted": lambda x: px.sort(x, axis=0, descending=True),
    "the last": lambda x: x[-1],
    "twice as many": lambda x: x.reshape(x.shape[0] * 2, 2) + 1,
}


def wanted(net: nn.Module, x: Any) -> Any:
    return net(px.asarray(x, device=DEVICE)).numpy()


@pytest.mark.parametrize("what", FOLLOWING)
def test_what_follows_from_the_batch_follows_it_in_the_file(what: str, tmp_path: Path) -> None:
    net = Of(FOLLOWING[what])
    path = px.onnx.save(net, drawn(3, 4), tmp_path / "x.onnx", dynamic_batch=True)
    back = px.onnx.load(path, device=DEVICE)
    for n in SIZES:
        want, found = wanted(net, drawn(n, 4)), back(drawn(n, 4)).numpy()
        assert found.shape == want.shape
        np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("what", FOLLOWING)
def test_onnxruntime_follows_the_batch_too(what: str, tmp_path: Path) -> None:
    net = Of(FOLLOWING[what])
    path = px.onnx.save(net, drawn(3, 4), tmp_path / "x.onnx", dynamic_batch=True)
    for n in SIZES:
        (found,) = onnxruntime(path, drawn(n, 4))
        np.testing.assert_allclose(found, wanted(net, drawn(n, 4)), rtol=1e-5, atol=1e-5)


REFUSED: Final[dict[str, tuple[Callable[[Any], Any], str]]] = {
    "a branch": (lambda x: x * 2 if x.shape[0] > 2 else x, "ops differ from batch to batch"),
    "a branch at one": (lambda x: x * 2 if x.shape[0] > 1 else x, r"of shape \(1, 4\)"),
    "a half": (lambda x: x[: x.shape[0] // 2], r"1 / 1 / 3 for batches of 2 / 3 / 7: got slice\("),
    "a padding": (lambda x: px.pad(x, ((0, 0), (0, x.shape[0]))), r"pad\(.*batch"),
    "a remainder": (lambda x: x + (x.shape[0] % 2), "0 / 1 / 1 for batches"),
    "a root": (lambda x: x / math.sqrt(x.shape[0]), r"1.41\d* / 1.73\d* / 2.64"),
    "every second": (lambda x: x[::2], "1 / 2 / 4 for batches"),
    "other values": (lambda x: x * (x + 1 if x.shape[0] > 2 else x), "ops differ"),
    "places of the host": (
        lambda x: x * px.asarray(np.arange(x.shape[0], dtype=np.float32)[:, None]),
        "a constant that the host computes differs from batch to batch: got multiply",
    ),
    "results": (lambda x: [x] * x.shape[0], "the results differ from batch to batch"),
    "rows one by one": (lambda x: px.stack(px.unstack(x, axis=0)), "unstack"),
    "the smaller": (lambda x: (x, x + 1)[x.shape[0] > 2] * 1, "ops"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_follows_otherwise_is_refused_with_its_line(what: str, tmp_path: Path) -> None:
    function, says = REFUSED[what]
    with pytest.raises(px.onnx.OnnxError, match=says) as error:
        px.onnx.save(Of(function), drawn(3, 4), tmp_path / "x.onnx", dynamic_batch=True)
    if "of shape" not in says and what != "results":
        assert "test_save_batch.py:" in str(error.value)
    assert not list(tmp_path.iterdir())


def test_a_module_that_takes_some_batches_is_told_which_it_does_not(tmp_path: Path) -> None:
    pairs = Of(lambda x: x.reshape(-1, 2, 4).sum(axis=1))
    with pytest.raises(px.onnx.OnnxError, match="does not run with a batch of 3"):
        px.onnx.save(pairs, drawn(4, 4), tmp_path / "x.onnx", dynamic_batch=True)
    assert px.onnx.save(pairs, drawn(4, 4), tmp_path / "x.onnx").is_file()


def test_inputs_have_to_share_their_batch(tmp_path: Path) -> None:
    both = Of(lambda x, y: x + y)
    for inputs in ((drawn(2, 4), drawn(1, 4)), (drawn(2, 4), np.float32(1))):
        with pytest.raises(px.ArgumentError, match="inputs without a batch"):
            px.onnx.save(both, inputs, tmp_path / "x.onnx", dynamic_batch=True)


def test_sizes_of_the_file_say_how_they_follow(tmp_path: Path) -> None:
    net = Of(lambda x: (x, x.reshape(x.shape[0] * 2, 2), x.sum(axis=0)))
    path = px.onnx.save(net, drawn(3, 4), tmp_path / "x.onnx", dynamic_batch=True)
    outputs = onnx.load(str(path)).graph.output
    shapes = [[d.dim_param or d.dim_value for d in o.type.tensor_type.shape.dim] for o in outputs]
    assert shapes == [["batch", 4], ["2*batch", 2], [4]]


STATE = """<ir_version: 8, opset_import: ["" : 18]>
g (float[n, t, 3] x) => (float[t, d, n, 2] y)
<int64[1] ends = {1}, int64[1] twos = {2}> {
    size = Shape (x)
    zero = Constant <value_int = 0> ()
    n = Gather (size, zero)
    axes = Constant <value_ints = [0]> ()
    row = Unsqueeze (n, axes)
    shape = Concat <axis = 0> (ends, row, twos)
    h = ConstantOfShape (shape)
    turned = Transpose <perm = [1, 0, 2]> (x)
    y, last = GRU <hidden_size = 2, linear_before_reset = 1> (turned, w, r, , , h)
}"""


def test_a_loaded_recurrent_model_with_a_first_state_is_saved_for_any_batch(tmp_path: Path) -> None:
    file = onnx.parser.parse_model(STATE)
    for name, shape in (("w", (1, 6, 3)), ("r", (1, 6, 2))):
        file.graph.initializer.append(onnx.numpy_helper.from_array(drawn(*shape), name))
    net = px.onnx.load(file.SerializeToString(), device=DEVICE)
    path = px.onnx.save(net, drawn(2, 5, 3), tmp_path / "x.onnx", dynamic_batch=True)
    back = px.onnx.load(path, device=DEVICE)
    for n in (1, 2, 6):
        np.testing.assert_allclose(
            back(drawn(n, 5, 3)).numpy(), net(drawn(n, 5, 3)).numpy(), rtol=1e-5, atol=1e-6
        )


# Losses that divide by the batch.
BY_THE_BATCH: Final = {"kl-div"}
BATCHED: Final = [
    name
    for name, case in CASES.items()
    if not case.training
    and all(x.ndim for x in case.inputs)
    and len({x.shape[0] for x in case.inputs}) == 1
]


@pytest.mark.long
@pytest.mark.parametrize("name", BATCHED)
def test_a_layer_of_any_batch_gives_the_same_in_onnxruntime(name: str, tmp_path: Path) -> None:
    path = tmp_path / "layer.onnx"
    net = weights(CASES[name], DEVICE).with_training(False)
    inputs = [t.numpy() for t in tensors(CASES[name], DEVICE)]
    if name in BY_THE_BATCH:
        with pytest.raises(px.onnx.OnnxError, match="no a \\* batch \\+ b"):
            px.onnx.save(net, tuple(inputs), path, dynamic_batch=True)
        return
    px.onnx.save(net, tuple(inputs), path, dynamic_batch=True)
    for n in (1, 4):
        fed = [x[np.arange(n) % len(x)] for x in inputs]
        results = px.tree.leaves(net(*(px.asarray(x, device=DEVICE) for x in fed)))
        for found, result in zip(onnxruntime(path, *fed), results, strict=True):
            assert found.dtype == result.numpy().dtype
            np.testing.assert_allclose(found, result.numpy(), rtol=2e-5, atol=2e-5)
