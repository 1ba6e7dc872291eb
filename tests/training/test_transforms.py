"""Transforms over modules: derivatives of first and second order by parameter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import phlox as px
from phlox import Autodiff, Cpu, nn, optim
from phlox_tensor import Tensor

CPU = px.Cpu()


def model() -> Any:
    px.random.seed(3)
    return nn.Linear(3, 2, device=CPU)


X = px.asarray(np.linspace(-1.0, 1.0, 12).reshape(4, 3).astype("float32"), device=CPU)


def loss(m: Any) -> Tensor[Any]:
    return m(X).tanh().square().sum()


def weights(m: Any) -> list[Any]:
    return [x.numpy() for x in px.tree.leaves(m) if isinstance(x, Tensor)]


def test_a_hessian_vector_product_over_a_module_both_ways() -> None:
    m = model()
    v = px.grad(loss)(m)

    def along(m: Any) -> Tensor[Any]:
        slopes = zip(px.tree.leaves(px.grad(loss)(m)), px.tree.leaves(v), strict=True)
        return sum(((a * b).sum() for a, b in slopes), px.zeros((), device=CPU))

    (forward,) = px.hvp(loss, (m,), (v,))
    assert type(forward) is type(m)
    for one, other in zip(weights(forward), weights(px.grad(along)(m)), strict=True):
        assert np.abs(one).max() > 0
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_a_frozen_module_has_nothing_to_differentiate() -> None:
    with pytest.raises(px.GradientError, match="nothing to differentiate: got Linear of weight"):
        px.grad(loss)(model().freeze())


def test_a_module_that_is_no_argument_is_refused() -> None:
    m = model()
    with pytest.raises(px.GradientError, match="computed without the arguments"):
        px.grad(lambda _: loss(m))(model())


def test_checkpointed_blocks_train_as_plain_ones() -> None:
    """Dropout draws the same numbers again; running statistics move once."""
    device = px.Autodiff(CPU)
    found = []
    for decorate in (lambda f: f, px.checkpoint):
        px.random.seed(5)
        layers: list[Any] = [
            nn.Linear(8, 8, device=device),
            nn.Dropout(0.5, device=device),
            nn.BatchNorm(8, device=device),
        ]
        parts = [p for p in px.tree.leaves(layers) if isinstance(p, Tensor)]
        assert (layers[1](px.ones((8, 8), device=device)) == 0).any()
        x = px.random.normal((16, 8), device=device)

        def block(x: Tensor[Any], layers: list[Any] = layers) -> Tensor[Any]:
            for layer in layers:
                x = layer(x)
            return x.tanh()

        grads = decorate(block)(x).square().sum().backward()
        news = [grads.proposed(p) for p in parts]
        gradients = [grads.get(p) for p in parts]
        assert sum(n is not None for n in news) == 2
        assert sum(g is not None for g in gradients) == 4
        found.append([t.numpy() for t in [*news, *gradients] if t is not None])
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_model_on_nested_devices_has_derivatives_of_its_gradients() -> None:
    """Parameters are leaves on both levels: a penalty on the gradient trains through it."""
    device = px.Autodiff(px.Autodiff(CPU))
    m = model().to_device(device)
    grads = loss(m).backward()
    slope = m.weight.value.grad(grads)
    assert slope is not None
    assert slope.device is device.inner
    second = slope.square().sum().backward()
    want = px.grad(lambda m: px.grad(loss)(m).weight.value.square().sum())(model())
    got = m.weight.value.grad(second)
    assert got is not None
    np.testing.assert_allclose(got.numpy(), want.weight.value.numpy(), rtol=1e-5)
    rule = optim.AdamConfig().init()
    penalties = []
    for _ in range(30):
        value = loss(m)
        slope = m.weight.value.grad(value.backward())
        assert slope is not None
        total = value.inner() + 0.1 * slope.square().sum()
        penalties.append(float(total))
        m = rule.step(0.05, m, total.backward())
    assert penalties[-1] < 0.2 * penalties[0]
    states = px.tree.leaves(rule.into_record()["states"])
    assert not any(isinstance(t, Tensor) and t.requires_grad for t in states)


def test_gradients_come_as_a_module_by_id_and_by_path() -> None:
    m = model().to_device(px.Autodiff(CPU))
    found = loss(m).backward().of(m)
    assert type(found) is nn.Linear
    by_path, by_id = nn.gradients_of(found, by="path"), nn.gradients_of(found)
    assert sorted(by_path) == ["bias", "weight"]
    assert {m.weight.id, m.bias.id} == set(by_id)
    assert by_path["weight"].tolist() == by_id[m.weight.id].tolist()
    partial = m.weight.value.sum().backward().of(m)
    assert list(nn.gradients_of(partial, by="path")) == ["weight"]


def test_detect_nan_names_the_module() -> None:
    class Block(nn.Module):
        layers: list[nn.Linear]

        def forward(self, x: Tensor[Any]) -> Tensor[Any]:
            for layer in self.layers:
                x = layer(x)
            return x

    device = px.Autodiff(CPU)
    fine = nn.Linear(3, 3, device=device)
    broken = fine.map(lambda _, p: p.with_value(p.value.detach() * float("nan")))
    block = Block(layers=[fine, broken])
    with px.detect_nan(), pytest.raises(px.GradientError, match=r"in module layers\.1") as error:
        block(X.to_device(device))
    assert error.value.op == "linear"
    assert "float32[4, 3], float32[3, 3], float32[3]" in str(error.value)


def test_running_statistics_under_vmap_are_means_over_lanes_with_and_without_collect() -> None:
    for device in (px.Cpu(), px.Autodiff("cpu"), px.Autodiff(px.Autodiff("cpu"))):
        norm = nn.BatchNorm(2, device=device).with_training(True)
        xs = px.random.normal((4, 6, 2), device=device)
        with nn.collect() as updates:
            px.vmap(norm)(xs)
        found = updates.apply(norm)
        lanes = []
        for x in xs:
            with nn.collect() as updates:
                norm(x)
            lanes.append(updates.apply(norm))
        for path, param in found.params(role="state").items():
            want = np.mean([lane.params()[path].value.numpy() for lane in lanes], axis=0)
            np.testing.assert_allclose(param.value.numpy(), want, rtol=1e-5)
            assert not np.allclose(want, norm.params()[path].value.numpy())


@pytest.mark.parametrize("base", [CPU, px.Numpy()], ids=repr)
def test_what_attention_hides_is_no_fault(base: px.Backend) -> None:
    """Hidden scores are -inf by design, also where dropout needs the weights one by one."""
    device = px.Autodiff(base)
    with px.use_device(device):
        layer = nn.MultiHeadAttention(8, 2, dropout=0.5)
        x = px.random.normal((2, 4, 8))
        padding = px.asarray([[False, False, False, True]] * 2)
    assert layer.dropout.training
    with px.detect_nan(infinities=True):
        loss = layer(x, padding=padding, is_causal=True).square().mean()
        grads = loss.backward()
    assert all(layer.params()[path].value.grad(grads) is not None for path in layer.params())


def test_a_frozen_model_has_nothing_to_differentiate_until_it_is_unfrozen() -> None:
    model = nn.Linear(2, 1, device=px.Cpu()).freeze()
    with pytest.raises(
        px.GradientError, match=r"nothing to diff(.|\n)*hint: model = model\.unfreeze"
    ):
        px.grad(lambda m: m(px.ones((1, 2), device=px.Cpu())).sum())(model)


def test_a_checkpoint_that_makes_parameters_draws_as_the_plain_call() -> None:
    device = px.Autodiff(CPU)
    x = px.asarray(np.random.default_rng(0).normal(size=(4, 6)).astype("f4"), device=device)

    def run(decorate: Any) -> tuple[float, float]:
        px.seed(5)
        net = nn.Sequential(nn.Linear(6, 6, device=device), nn.Dropout(0.5))
        value = decorate(lambda net, x: net(x).sum())(net, x)
        return value.item(), px.random.uniform(()).item()

    assert run(px.checkpoint) == run(lambda f: f)


def test_an_ensemble_moves_the_statistics_of_each_model() -> None:
    px.seed(0)
    device = Autodiff(Cpu())
    x = px.random.normal((6, 3), device=device) + 5
    models = [
        nn.Sequential(nn.Linear(3, 4, device=device), nn.BatchNorm(4, device=device))
        for _ in range(3)
    ]
    together = px.tree.map(lambda *w: px.stack(list(w)), *models).train(device)

    def loss(model: Any) -> Any:
        return model(x).square().mean()

    def step(model: Any, grads: Any) -> Any:
        return optim.SgdConfig().init().step(0.01, model, grads).layers[1].running_mean.value

    want = [step(m, loss(m).backward()).numpy() for m in models]
    found = step(together, px.vmap(loss)(together).sum().backward())
    np.testing.assert_allclose(found.numpy(), want, rtol=1e-5, atol=1e-6)
    with pytest.raises(px.PhloxError, match=r"(?s)each lane has its own.*with_training\(False\)"):
        px.vmap(loss, chunk_size=2)(together)


def test_a_model_for_inference_inside_of_its_own_gradient_is_refused() -> None:
    model, x = nn.Linear(3, 1), px.ones((1, 3))
    with pytest.raises(px.GradientError, match=r"(?s)\[valid\].*with_training\(False\)"):
        px.grad(lambda m: (m.valid()(x) * m(x)).sum())(model)
    teacher = nn.Linear(3, 1, device=Autodiff(Cpu()))
    assert px.grad(lambda m: (teacher.valid()(x) * m(x)).sum())(model).params()


def test_a_step_inside_of_a_transform_says_how_gradients_go_through_one() -> None:
    model, x = nn.Linear(2, 2), px.ones((2, 2))

    def loss(m: Any) -> px.Tensor:
        return m(x).square().sum()

    def through(m: Any) -> px.Tensor:
        return loss(optim.SgdConfig().init().step(0.1, m, px.grad(loss)(m)))

    with pytest.raises(px.GradientError, match=r"for a step inside, px\.tree\.map\(lambda w, g"):
        px.grad(through)(model)
    px.grad(lambda m: loss(px.tree.map(lambda w, g: w - 0.1 * g, m, px.grad(loss)(m))))(model)


def test_a_gradient_wanted_inside_of_a_compiled_function_says_why_there_is_none() -> None:
    device = Autodiff(Cpu())

    @px.compile
    def loss(w: Any) -> Any:
        return px.retain_grad(w * 2.0).square().sum()

    w = px.ones(3, device=device).require_grad()

    def twice() -> None:
        for _ in range(3):
            loss(w).backward()

    with pytest.raises(
        px.GradientError, match=r"is replayed, so that no tensor inside of it stays"
    ):
        twice()


def test_a_step_of_nothing_is_no_step_of_gradcheck() -> None:
    x = px.ones(2, device=px.Numpy(float="float64"))
    with pytest.raises(px.ArgumentError, match=r"a step that goes nowhere: got 0\.0"):
        px.gradcheck(lambda a: a.sum(), (x,), eps=0.0)
