# ruff: noqa: E501 - one row of the table stands on one line
"""Weights by length and direction and over their singular value: values and gradients are PyTorch's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import phlox as px
from phlox import Autodiff, Backend, Cpu, Numpy, Wgpu, nn, optim
from phlox.nn import models
from tests.layers.case import NARROW, Array, Weights, classes, normal, placed, shares

DOUBLE = Numpy(float="float64")


class Row(NamedTuple):
    """A layer, what changes its weight, an input, the weight by its formula, the twin in PyTorch."""

    config: nn.LayerConfig[Any]
    change: Callable[[Any], Any]
    x: Array
    weight: Callable[[Weights], Array]
    twin: Callable[[Any], Any]  # of torch.nn
    training: bool = False


def by_length(axis: int | None) -> Callable[[Weights], Array]:
    """Length times direction, where lengths differ along an axis of the weight as it lies here."""

    def weight(w: Weights) -> Array:
        v = w["weight.direction"]
        others = tuple(i for i in range(v.ndim) if i != axis)
        return np.asarray(v * w["weight.length"] / np.sqrt((v * v).sum(others, keepdims=True)))

    return weight


def by_value(axis: int, steps: int = 0) -> Callable[[Weights], Array]:
    """The weight over what singular vectors give, after some steps of the power method."""

    def weight(w: Weights) -> Array:
        v = w["weight.original"]
        matrix = np.moveaxis(v, axis, 0).reshape(v.shape[axis], -1)
        left, right = w["weight.left"], w["weight.right"]
        for _ in range(steps):
            left = matrix @ right / np.linalg.norm(matrix @ right)
            right = left @ matrix / np.linalg.norm(left @ matrix)
        return np.asarray(v / (left @ matrix @ right))

    return weight


ROWS, IMAGES, LABELS = normal(3, 5), normal(2, 4, 6, 6), classes(6, 2, 3)
# fmt: off
TABLE: dict[str, Row] = {
    "spectral-conv": Row(nn.Conv2dConfig(4, 3, 3), nn.spectral_norm, IMAGES, by_value(0), lambda t: t.utils.parametrizations.spectral_norm(t.Conv2d(4, 3, 3))),
    "spectral-conv-training": Row(nn.Conv2dConfig(4, 3, 3), lambda m: nn.spectral_norm(m, iterations=2), IMAGES, by_value(0, 2), lambda t: t.utils.parametrizations.spectral_norm(t.Conv2d(4, 3, 3), n_power_iterations=2), training=True),
    "spectral-conv-transpose": Row(nn.ConvTranspose2dConfig(4, 3, 3), nn.spectral_norm, IMAGES, by_value(1), lambda t: t.utils.parametrizations.spectral_norm(t.ConvTranspose2d(4, 3, 3))),
    "spectral-embedding": Row(nn.EmbeddingConfig(6, 2), nn.spectral_norm, LABELS, by_value(0), lambda t: t.utils.parametrizations.spectral_norm(t.Embedding(6, 2))),
    "spectral-linear": Row(nn.LinearConfig(5, 2), nn.spectral_norm, ROWS, by_value(1), lambda t: t.utils.parametrizations.spectral_norm(t.Linear(5, 2))),
    "spectral-linear-training": Row(nn.LinearConfig(5, 2), nn.spectral_norm, ROWS, by_value(1, 1), lambda t: t.utils.parametrizations.spectral_norm(t.Linear(5, 2)), training=True),
    "weight-conv": Row(nn.Conv2dConfig(4, 6, 3, groups=2), nn.weight_norm, IMAGES, by_length(0), lambda t: t.utils.parametrizations.weight_norm(t.Conv2d(4, 6, 3, groups=2))),
    "weight-conv-transpose": Row(nn.ConvTranspose2dConfig(4, 3, 3), nn.weight_norm, IMAGES, by_length(0), lambda t: t.utils.parametrizations.weight_norm(t.ConvTranspose2d(4, 3, 3))),
    "weight-embedding": Row(nn.EmbeddingConfig(6, 2), nn.weight_norm, LABELS, by_length(0), lambda t: t.utils.parametrizations.weight_norm(t.Embedding(6, 2))),
    "weight-linear": Row(nn.LinearConfig(5, 2), nn.weight_norm, ROWS, by_length(1), lambda t: t.utils.parametrizations.weight_norm(t.Linear(5, 2))),
    "weight-linear-other": Row(nn.LinearConfig(5, 2), lambda m: nn.weight_norm(m, axis=1), ROWS, by_length(0), lambda t: t.utils.parametrizations.weight_norm(t.Linear(5, 2), dim=1)),
    "weight-linear-whole": Row(nn.LinearConfig(5, 2), lambda m: nn.weight_norm(m, axis=None), ROWS, by_length(None), lambda t: t.utils.parametrizations.weight_norm(t.Linear(5, 2), dim=None)),
}
# fmt: on
each = pytest.mark.parametrize("name", TABLE)


def drawn(row: Row, device: Backend) -> Any:
    """The layer with parameters that no initializer would give."""
    px.seed(3)
    rng = np.random.default_rng(3)
    module = row.change(row.config.init(device)).with_training(row.training)
    return module.map(lambda _, p: p.with_value(placed(rng.uniform(0.5, 2, p.shape), device)))


def gradients(row: Row, device: Backend) -> tuple[Array, dict[str, Array]]:
    """The output and the gradient of each trained parameter."""
    model = drawn(row, device)
    out = model(placed(row.x, device))
    found = (out * placed(shares(out.shape), device)).sum().backward()
    grads = {path: p.value.grad(found) for path, p in model.params(trainable=True).items()}
    return out.numpy(), {path: g.numpy() for path, g in grads.items() if g is not None}


@each
def test_the_weight_is_that_of_the_formula(name: str) -> None:
    row = TABLE[name]
    model = drawn(row, DOUBLE)
    want = row.weight({path: p.value.numpy() for path, p in model.params().items()})
    assert model.weight.value.shape == want.shape
    np.testing.assert_allclose(model.weight.value.numpy(), want, rtol=1e-12)
    plain = model.replace(weight=nn.Param(px.asarray(want, device=DOUBLE)))
    x = placed(row.x, DOUBLE)
    np.testing.assert_allclose(model(x).numpy(), plain(x).numpy(), rtol=1e-10, atol=1e-12)


@each
def test_gradients_are_those_of_small_steps(name: str) -> None:
    row, h = TABLE[name]._replace(training=False), 1e-6
    model, (_, found) = drawn(row, DOUBLE), gradients(row, Autodiff(DOUBLE))
    assert found.keys() == model.params(trainable=True).keys()
    for path, gradient in found.items():
        way = np.random.default_rng(7).normal(size=gradient.shape)

        def loss(step: float, path: str = path, way: Any = way) -> float:
            moved = model.map(
                lambda at, p: (
                    p.with_value(p.value + placed(way * step, DOUBLE)) if at == path else p
                )
            )
            out = moved(placed(row.x, DOUBLE)).numpy()
            return float((out * shares(out.shape)).sum())

        slope = (loss(h) - loss(-h)) / (2 * h)
        assert np.isclose((gradient * way).sum(), slope, rtol=1e-5, atol=1e-7), path


@pytest.mark.parametrize("device", [Numpy(), Cpu(), Wgpu()], ids=repr)
@each
def test_value_and_gradients_are_the_same_on_every_device(name: str, device: Backend) -> None:
    want, slopes = gradients(TABLE[name], Autodiff(DOUBLE))
    got, found = gradients(TABLE[name], Autodiff(device))
    assert found.keys() == slopes.keys()
    for key, mine, theirs in [("", got, want), *((k, found[k], slopes[k]) for k in slopes)]:
        assert mine.shape == theirs.shape, key
        assert np.abs(mine - theirs).max() <= NARROW * max(1.0, float(np.abs(theirs).max())), key


@each
def test_value_gradients_and_vectors_are_those_of_the_twin(name: str) -> None:
    torch: Any = pytest.importorskip("torch", reason="PyTorch comes with ./x test --long")
    row, tracked = TABLE[name], Autodiff(DOUBLE)
    model = drawn(row, tracked)
    twin = row.twin(torch.nn).double().train(row.training)
    record = flat(model.into_record(layout="pytorch"))
    assert set(record) == set(twin.state_dict())
    twin.load_state_dict({key: torch.tensor(value) for key, value in record.items()})
    out = twin(torch.tensor(row.x))
    (out * torch.tensor(shares(tuple(out.shape)))).sum().backward()
    got, found = gradients(row, tracked)
    np.testing.assert_allclose(got, out.detach().numpy(), rtol=1e-10, atol=1e-12)
    slopes = {key: p.grad for key, p in twin.named_parameters()}
    mine = model.map(lambda at, p: p.with_value(placed(found[at], tracked)) if at in found else p)
    for key, value in flat(mine.into_record(layout="pytorch")).items():
        if key in slopes:
            np.testing.assert_allclose(value, slopes[key].numpy(), rtol=1e-9, atol=1e-11)
    with nn.collect() as updates:
        model(placed(row.x, tracked))
    after = flat(updates.apply(model).into_record(layout="pytorch"))
    for key, value in twin.state_dict().items():
        np.testing.assert_allclose(after[key], value.numpy(), rtol=1e-10, err_msg=key)


def flat(record: Any, path: str = "") -> dict[str, Array]:
    """The tensors of a record by their names in a ``state_dict``."""
    if isinstance(record, dict):
        parts = [flat(v, f"{path}.{k}".strip(".")) for k, v in record.items()]
        return {key: value for part in parts for key, value in part.items()}
    return {path: getattr(record, "tensor", record).numpy()}


@pytest.mark.parametrize("device", [Numpy(), Cpu(), Wgpu()], ids=repr)
def test_a_discriminator_with_spectral_norms_learns(device: Backend) -> None:
    px.seed(0)
    tracked = Autodiff(device)
    layers = (
        nn.Linear(4, 16, device=tracked),
        nn.Activation("relu"),
        nn.Linear(16, 1, device=tracked),
    )
    model = nn.spectral_norm(nn.Sequential(*layers))
    x = px.asarray(np.random.default_rng(1).normal(size=(64, 4)).astype("float32"), device=tracked)
    y = (x[:, :1] > 0).where(1.0, -1.0)
    rule, losses = optim.AdamConfig().init(), []
    for _ in range(40):
        loss = (1.0 - model(x) * y).relu().mean()
        losses.append(float(loss))
        model = rule.step(0.02, model, loss.backward())
    assert losses[-1] < 0.75 * losses[0]
    final = model.valid()
    for place in (0, 2):
        singular = np.linalg.svd(final.path(f"layers.{place}.weight").value.numpy())[1]
        assert 0.99 < singular[0] < 1.05


def test_compiled_steps_and_transforms_are_those_of_plain_ones() -> None:
    px.seed(0)
    device = Autodiff(Cpu())
    layers = nn.Linear(4, 8, device=device), nn.Activation("tanh"), nn.Linear(8, 1, device=device)
    start = nn.weight_norm(nn.spectral_norm(nn.Sequential(*layers), "layers.0"), "layers.2")
    x = px.random.normal((16, 4), device=device)
    rule = optim.SgdConfig()

    def step(model: Any, optimizer: Any) -> Any:
        grads = px.grad(lambda m: (m(x) ** 2).mean())(model)
        return optimizer.step(0.1, model, grads)

    plain, compiled = start, start
    fast: Any = px.compile(step)
    one, other = rule.init(), rule.init()
    for _ in range(4):
        plain, compiled = step(plain, one), fast(compiled, other)
    assert fast.fallbacks == 0
    for path, param in plain.params().items():
        got = compiled.params()[path].value.numpy()
        np.testing.assert_allclose(got, param.value.numpy(), rtol=1e-5, atol=1e-6, err_msg=path)
    assert not np.array_equal(
        plain.path("layers.0.weight.left").value.numpy(),
        start.path("layers.0.weight.left").value.numpy(),
    )
    still = plain.valid()
    rows = px.vmap(px.grad(lambda m, row: (m(row[None]) ** 2).sum()), in_axes=(None, 0))(
        still, x.inner()
    )
    whole = px.grad(lambda m: (m(x.inner()) ** 2).sum())(still)
    np.testing.assert_allclose(
        rows.path("layers.2.weight.length").value.sum(axis=0).numpy(),
        whole.path("layers.2.weight.length").value.numpy(),
        rtol=1e-4,
        atol=1e-5,
    )


@pytest.mark.parametrize("change", [nn.weight_norm, nn.spectral_norm, nn.quantize_weights])
def test_every_kind_of_made_weight_runs_in_a_model_that_asks_for_shapes(change: Any) -> None:
    px.seed(0)
    model = models.ViTConfig(
        image=8, patch=4, d_model=8, n_layers=1, n_heads=2, d_ff=8, classes=3
    ).init()
    images = px.random.normal((2, 3, 8, 8))
    made = change(model)
    want, got = model.valid()(images).numpy(), made.valid()(images).numpy()
    assert got.shape == want.shape
    if change is nn.weight_norm:
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
