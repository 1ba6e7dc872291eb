"""What holds for every layer, from one table: values, gradients, records, devices, printing."""

from __future__ import annotations

import inspect
import json
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

import phlox as px
from phlox import Autodiff, Backend, Cpu, Numpy, Wgpu, nn
from phlox.record import DoublePrecision, NamedMsgpackRecorder
from phlox_nn.layers import activation
from tests.layers.case import NARROW, Array, Case, placed, shares, whole
from tests.layers.cases import ACTIVATIONS, CASES

VALUES = json.loads((Path(__file__).parent / "values.json").read_text())
DOUBLE = Numpy(float="float64")
TRACKED = Autodiff(DOUBLE)
each = pytest.mark.parametrize("name", CASES)


def drawn(case: Case, device: Backend) -> Any:
    """The layer with parameters other than 0 and 1, so that a factor left out shows."""
    px.seed(3)
    rng = np.random.default_rng(3)
    module = case.config.init(device).with_training(case.training)
    return module.map(lambda _, p: p.with_value(placed(rng.uniform(0.5, 2, p.shape), device)))


def tensors(case: Case, device: Backend) -> list[Any]:
    return [placed(array, device) for array in case.inputs]


def weights(module: nn.Module) -> dict[str, Array]:
    return {path: param.value.numpy() for path, param in module.params().items()}


def gradients(case: Case, device: Backend = TRACKED) -> tuple[Array, dict[str, Array]]:
    """The output, and the gradients of its sum with unequal shares, inputs by their place."""
    module = drawn(case, device)
    inputs = [x.require_grad() if x.dtype.kind == "Float" else x for x in tensors(case, device)]
    out = whole(module(*inputs))
    grads = (out * placed(shares(out.shape), device)).sum().backward()
    leaves = {str(i): x for i, x in enumerate(inputs) if x.dtype.kind == "Float"}
    leaves |= {path: p.value for path, p in module.params().items() if p.trainable}
    found = {}
    for key, leaf in leaves.items():
        gradient = grads.get(leaf)
        if gradient is None:  # of labels, by which a loss only chooses
            assert key in "0123456789", key
            found[key] = np.zeros(leaf.shape)
            continue
        assert gradient.shape == leaf.shape, key
        found[key] = gradient.numpy()
    return out.numpy(), found


def test_every_layer_has_a_case() -> None:
    shown = [getattr(nn, name) for name in dir(nn)]
    layers = {v for v in shown if inspect.isclass(v) and vars(v).get("_config")}
    assert {type(case.config.init()) for case in CASES.values()} == layers
    assert set(ACTIVATIONS) == set(get_args(activation.Name)) == set(activation.FUNCTIONS)


@each
def test_the_value_is_that_of_the_formula_or_of_pytorch(name: str) -> None:
    case = CASES[name]
    module = drawn(case, DOUBLE)
    if case.plain is None:
        want = np.asarray(VALUES[name]["values"]).reshape(VALUES[name]["shape"])
    else:
        want = np.asarray(case.plain(weights(module), *case.inputs))
    got = whole(module(*tensors(case, DOUBLE)))
    assert got.shape == want.shape
    assert np.allclose(got.numpy(), want, rtol=1e-10, atol=1e-11)


@each
def test_value_and_gradients_are_those_of_the_twin(name: str) -> None:
    torch: Any = pytest.importorskip("torch", reason="PyTorch comes with ./x test --long")
    case = CASES[name]
    got, found = gradients(case)
    arrays = weights(drawn(case, DOUBLE))
    w = {key: torch.tensor(v, requires_grad=key in found) for key, v in arrays.items()}
    inputs = [torch.tensor(a, requires_grad=a.dtype.kind == "f") for a in case.inputs]
    out = case.twin(torch.nn.functional, w, *inputs)
    assert np.allclose(got, out.detach().numpy(), rtol=1e-10, atol=1e-12)
    (out * torch.tensor(shares(tuple(out.shape)))).sum().backward()
    leaves = {**{str(i): x for i, x in enumerate(inputs)}, **w}
    for key, gradient in found.items():
        want = leaves[key].grad
        want = np.zeros(gradient.shape) if want is None else want.numpy()
        assert np.allclose(gradient, want, rtol=1e-9, atol=1e-11), key


@each
def test_gradients_are_those_of_small_steps(name: str) -> None:
    case = CASES[name]
    module, inputs = drawn(case, DOUBLE), tensors(case, DOUBLE)
    h = 1e-6

    def loss(key: str, step: Array) -> float:
        moved = module.map(
            lambda path, p: (
                p.with_value(p.value + px.asarray(step, device=DOUBLE)) if path == key else p
            )
        )
        given = [
            x + px.asarray(step, device=DOUBLE) if str(i) == key else x
            for i, x in enumerate(inputs)
        ]
        out = whole(moved(*given)).numpy()
        return float((out * shares(out.shape)).sum())

    out, found = gradients(case)
    noise = 4 * np.finfo(float).eps * float(np.abs(out).sum()) / h  # of the difference of two sums
    for key, gradient in found.items():
        way = np.asarray(np.random.default_rng(7).normal(size=gradient.shape))
        slope = (loss(key, way * h) - loss(key, way * -h)) / (2 * h)
        assert np.isclose((gradient * way).sum(), slope, rtol=1e-5, atol=1e-7 + noise), key


@each
def test_a_record_brings_the_layer_back(name: str) -> None:
    case = CASES[name]
    module = drawn(case, DOUBLE)
    recorder = NamedMsgpackRecorder(DoublePrecision)
    record = recorder.from_bytes(recorder.to_bytes(module.into_record()), device=DOUBLE)
    config = type(case.config).from_dict(json.loads(json.dumps(case.config.to_dict())))
    assert config == case.config
    back = config.init_with(record, DOUBLE).with_training(case.training)
    assert {p.id for p in back.param_list()} == {p.id for p in module.param_list()}
    assert np.array_equal(
        whole(back(*tensors(case, DOUBLE))).numpy(), whole(module(*tensors(case, DOUBLE))).numpy()
    )


@each
def test_the_layer_works_where_it_is_moved(name: str) -> None:
    case, there = CASES[name], Cpu(float="float64")
    module = drawn(case, DOUBLE)
    moved = module.to_device(there)
    assert set(moved.devices) <= {there}
    assert len(moved.devices) == len(module.devices)
    got, want = whole(moved(*tensors(case, there))), whole(module(*tensors(case, DOUBLE)))
    assert got.device is there
    assert np.allclose(got.numpy(), want.numpy(), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("device", [Numpy(), Cpu(), Wgpu()], ids=repr)
@each
def test_value_and_gradients_are_the_same_on_every_device(name: str, device: Backend) -> None:
    case = CASES[name]
    want, slopes = gradients(case)
    got, found = gradients(case, Autodiff(device))
    assert found.keys() == slopes.keys()
    for key, mine, theirs in [("", got, want), *((k, found[k], slopes[k]) for k in slopes)]:
        assert mine.shape == theirs.shape, key
        scale = max(1.0, float(np.abs(theirs).max(initial=0.0)))
        assert np.abs(mine - theirs).max(initial=0.0) <= NARROW * scale, key


@pytest.mark.parametrize("device", [Cpu(), Wgpu()], ids=repr)
@each
def test_an_input_may_lie_on_the_device_inside(name: str, device: Backend) -> None:
    case, around = CASES[name], Autodiff(device)
    module = drawn(case, around)
    inputs = [x.require_grad() if x.dtype.kind == "Float" else x for x in tensors(case, around)]
    for place, array in enumerate(case.inputs):
        others = [x for at, x in enumerate(inputs) if at != place]
        leaves = [x for x in others if x.requires_grad]
        leaves += [p.value for p in module.param_list() if p.trainable]
        found = []
        for x in (inputs[place].detach(), placed(array, device)):
            px.seed(0)  # for layers that draw
            out = whole(module(*inputs[:place], x, *inputs[place + 1 :]))
            found.append([out.numpy()])
            if out.requires_grad:
                grads = (out * placed(shares(out.shape), around)).sum().backward()
                found[-1] += [grads[leaf].numpy() for leaf in leaves if leaf in grads]
        for want, got in zip(*found, strict=True):
            assert np.array_equal(got, want, equal_nan=True), place


@each
def test_constructor_documentation_and_print_follow_from_the_config(name: str) -> None:
    case = CASES[name]
    settings = {f.name: getattr(case.config, f.name) for f in fields(case.config)}
    cls: Any = type(case.config.init())
    made = cls(**settings, device=DOUBLE)
    assert made.settings == case.config
    assert list(inspect.signature(cls).parameters) == [*settings, "device"]
    for setting in settings:
        assert f"    {setting}: " in (inspect.getdoc(cls) or ""), setting
    text = repr(made)
    assert text.startswith(f"{cls.__name__}(")
    for field in fields(case.config):
        default = field.default
        if field.default_factory is not MISSING:
            default = field.default_factory()
        if default != settings[field.name]:
            assert f"{field.name}={settings[field.name]!r}" in text.splitlines()[0]
    for path, param in made.params().items():
        assert f"  {path.rpartition('.')[2]}: {param.dtype.name}{list(param.shape)}" in text


def test_probabilities_of_0_and_1_have_the_slopes_of_pytorch() -> None:
    """``(p - t) / max(p·(1 - p), 1e-12)``, but where p and t agree, which it says is flat."""
    loss = nn.BinaryCrossEntropyLoss(from_logits=False, reduction="none")
    p = px.asarray([0.3, 1.0, 0.0, 0.0, 1.0], device=DOUBLE)
    t = px.asarray([1.0, 0.0, 1.0, 0.0, 1.0], device=DOUBLE)
    np.testing.assert_allclose(loss(p, t).numpy(), [-np.log(0.3), 100, 100, 0, 0], atol=1e-12)
    slopes = px.grad(lambda p: loss(p, t).sum())(p).numpy()
    np.testing.assert_allclose(slopes, [-1 / 0.3, 1e12, -1e12, 1, -1], rtol=1e-9)
    for far in (30.0, -300.0):
        logits = px.asarray([far, far])
        targets = px.asarray([1.0, 0.0])
        at_ends = px.grad(lambda x, t=targets: loss(x.sigmoid(), t).sum())(logits)
        assert at_ends.isfinite().all(), far
