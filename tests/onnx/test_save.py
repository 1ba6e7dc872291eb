"""Every layer as a file: the checker takes it, and loaded again it computes the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

import phlox as px
from phlox import Autodiff, Cpu, nn
from tests.layers.case import Case, whole
from tests.layers.cases import CASES
from tests.layers.test_layers import drawn, tensors

DEVICE: Final = Cpu()
NAMES: Final = [name for name, case in CASES.items() if not case.training]


def saved(case: Case, path: Path) -> tuple[Any, list[Any]]:
    net = drawn(case, DEVICE).with_training(False)
    inputs = tensors(case, DEVICE)
    px.onnx.save(_Whole(net), tuple(inputs), path)
    return net, inputs


class _Whole(nn.Module):
    """A layer whose results are one tensor."""

    layer: Any

    def forward(self, *inputs: Any) -> Any:
        """Return the results in one row."""
        return whole(self.layer(*inputs))


@pytest.mark.parametrize("name", NAMES)
def test_a_layer_comes_back_from_its_file(name: str, tmp_path: Path) -> None:
    path = tmp_path / "layer.onnx"
    net, inputs = saved(CASES[name], path)
    onnx.checker.check_model(str(path), full_check=True)
    back = px.onnx.load(path, device=DEVICE)
    wanted = whole(net(*inputs)).numpy()
    found = back(*inputs).numpy()
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=2e-5)


class Net(nn.Module):
    """A small network with a batch, a picture in the middle, and two results."""

    conv: nn.Conv2d
    norm: nn.BatchNorm
    hidden: nn.Lstm
    head: nn.Linear

    def forward(self, x: Any) -> Any:
        """Return classes, and what led to them."""
        y = px.max_pool2d(self.norm(self.conv(x)).relu(), 2, 2)
        z, _ = self.hidden(y.flatten(2))
        z = px.gelu(z)[:, -1]
        return self.head(z).softmax(axis=-1), z


def net(device: Any = DEVICE) -> Net:
    px.seed(1)
    return Net(
        conv=nn.Conv2d(3, 5, 3, padding=1, device=device),
        norm=nn.BatchNorm(5, device=device),
        hidden=nn.Lstm(16, 6, device=device),
        head=nn.Linear(6, 4, device=device),
    )


def pictures(n: int) -> Any:
    return np.random.default_rng(n).normal(size=(n, 3, 8, 8)).astype(np.float32)


def test_a_model_in_training_is_saved_as_it_infers_under_its_paths(tmp_path: Path) -> None:
    model = net(Autodiff(DEVICE))
    path = px.onnx.save(model, pictures(2), tmp_path / "net.onnx", names=["image"])
    back = px.onnx.load(path, device=DEVICE)
    assert back.inputs == ("image",)
    assert set(model.params()) >= {"conv.weight", "head.weight"}
    assert {"conv.weight", "hidden.layers.0.weight_input", "head.weight"} <= set(back.params())
    wanted = model.valid()(px.asarray(pictures(2), device=DEVICE))
    for found, value in zip(back(pictures(2)), wanted, strict=True):
        np.testing.assert_allclose(found.numpy(), value.numpy(), rtol=1e-5, atol=1e-6)


def test_the_batch_may_differ_where_it_is_asked_for(tmp_path: Path) -> None:
    path = px.onnx.save(net(), pictures(2), tmp_path / "net.onnx", dynamic_batch=True)
    file = onnx.load(str(path))
    assert file.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "batch"
    assert file.opset_import[0].version == 21
    run, back = ReferenceEvaluator(file), px.onnx.load(path, device=DEVICE)
    for n in (1, 2, 5):
        wanted = net().valid()(px.asarray(pictures(n), device=DEVICE))
        other: Any = run.run(None, {"x0": pictures(n)})
        for found, value, reference in zip(back(pictures(n)), wanted, other, strict=True):
            np.testing.assert_allclose(found.numpy(), value.numpy(), rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(reference, value.numpy(), rtol=1e-4, atol=1e-5)


def test_a_fixed_batch_is_that_of_the_example(tmp_path: Path) -> None:
    path = px.onnx.save(net(), pictures(2), tmp_path / "net.onnx")
    shape = onnx.load(str(path)).graph.input[0].type.tensor_type.shape
    assert [d.dim_value for d in shape.dim] == [2, 3, 8, 8]


class Odd(nn.Module):
    """Something inside that ONNX has no word for."""

    inner: Any

    def forward(self, x: Any) -> Any:
        """Return what the inner one gives."""
        return self.inner(x)


class Special(nn.Module):
    """An op without a spelling."""

    def forward(self, x: Any) -> Any:
        """Return a triangle whose square is given."""
        return px.linalg.cholesky(x)


def test_an_op_without_a_spelling_is_named_with_its_module_and_line(tmp_path: Path) -> None:
    path = tmp_path / "odd.onnx"
    with pytest.raises(px.onnx.OnnxError, match=r"got cholesky\(.*\) in inner, .*test_save.py:\d+"):
        px.onnx.save(Odd(Special()), px.eye(2, device=DEVICE), path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("op", ["argmax", "argmin"])
def test_the_place_among_all_elements(
    op: str, keepdims: bool, dynamic: bool, tmp_path: Path
) -> None:
    class Place(nn.Module):
        def forward(self, x: Any) -> Any:
            return getattr(x, op)(keepdims=keepdims)

    x = px.random.normal((4, 3, 5), device=DEVICE)
    px.onnx.save(Place(), x, tmp_path / "m.onnx", dynamic_batch=dynamic)
    onnx.checker.check_model(str(tmp_path / "m.onnx"), full_check=True)
    wanted = Place()(x).numpy()
    found: Any = ReferenceEvaluator(str(tmp_path / "m.onnx")).run(None, {"x0": x.numpy()})
    assert found[0].shape == wanted.shape
    assert found[0] == wanted
