"""Optimizers beside their papers' formulas, in plain NumPy loops."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import phlox_nn as nn
import phlox_optim as optim
import phlox_record as record
import phlox_tensor as pt
from phlox_nn import ConfigError, Param
from phlox_tensor import Tensor

Array = np.ndarray[Any, Any]
Step = Callable[[float, Array, Array], Array]
STEPS = 6
RECORDERS = [
    record.CompactMsgpackGzRecorder,
    record.CompactMsgpackRecorder,
    record.JsonGzRecorder,
    record.JsonRecorder,
    record.NamedMsgpackGzRecorder,
    record.NamedMsgpackRecorder,
]


class Net(nn.Module):
    a: Param
    b: Param


def net() -> Net:
    return Net(Param(pt.random.normal((2, 3))), Param(pt.random.normal(4)))


def gradients(model: Net, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {p.id: pt.asarray(rng.normal(size=p.shape)) for p in model.params().values()}


def sgd(
    momentum: float = 0, dampening: float = 0, decay: float = 0, nesterov: bool = False
) -> Step:
    velocity: list[Array] = []

    def step(lr: float, p: Array, g: Array) -> Array:
        g = g + decay * p
        if not momentum:
            return p - lr * g
        if velocity:
            velocity[0] = momentum * velocity[0] + (1 - dampening) * g
        else:
            velocity.append(g)
        return p - lr * (g + momentum * velocity[0] if nesterov else velocity[0])

    return step


def adam(
    beta_1: float = 0.9,
    beta_2: float = 0.999,
    epsilon: float = 1e-8,
    decay: float = 0.0,
    decoupled: bool = False,
    amsgrad: bool = False,
) -> Step:
    m = v = largest = np.zeros(())
    t = 0

    def step(lr: float, p: Array, g: Array) -> Array:
        nonlocal m, v, largest, t
        t += 1
        if not decoupled:
            g = g + decay * p
        m = beta_1 * m + (1 - beta_1) * g
        v = beta_2 * v + (1 - beta_2) * g**2
        largest = np.maximum(largest, v)
        m_hat = m / (1 - beta_1**t)
        v_hat = (largest if amsgrad else v) / (1 - beta_2**t)
        p = p * (1 - lr * decay) if decoupled else p
        return p - lr * m_hat / (np.sqrt(v_hat) + epsilon)

    return step


RULES: dict[str, tuple[Any, Callable[[], Step]]] = {
    "adam": (optim.AdamConfig(), adam),
    "adam-amsgrad": (
        optim.AdamConfig(amsgrad=True, beta_2=0.5),
        lambda: adam(0.9, 0.5, amsgrad=True),
    ),
    "adam-decay": (optim.AdamConfig(weight_decay=0.1), lambda: adam(decay=0.1)),
    "adam-settings": (
        optim.AdamConfig(beta_1=0.5, beta_2=0.7, epsilon=1e-3),
        lambda: adam(0.5, 0.7, 1e-3),
    ),
    "adamw": (optim.AdamWConfig(), lambda: adam(decay=1e-2, decoupled=True)),
    "adamw-amsgrad": (
        optim.AdamWConfig(weight_decay=0.2, amsgrad=True, beta_2=0.5),
        lambda: adam(0.9, 0.5, decay=0.2, decoupled=True, amsgrad=True),
    ),
    "sgd": (optim.SgdConfig(), sgd),
    "sgd-dampening": (optim.SgdConfig(momentum=0.9, dampening=0.3), lambda: sgd(0.9, 0.3)),
    "sgd-decay": (optim.SgdConfig(weight_decay=0.1), lambda: sgd(decay=0.1)),
    "sgd-momentum": (optim.SgdConfig(momentum=0.9), lambda: sgd(0.9)),
    "sgd-nesterov": (
        optim.SgdConfig(momentum=0.9, nesterov=True, weight_decay=0.01),
        lambda: sgd(0.9, decay=0.01, nesterov=True),
    ),
}


@pytest.mark.parametrize("name", sorted(RULES))
def test_steps_beside_the_formula(name: str) -> None:
    config, make = RULES[name]
    optimizer = config.init()
    model = net()
    first = {path: p.value.numpy() for path, p in model.params().items()}
    plain = {path: (array, make()) for path, array in first.items()}
    before = model
    for i in range(STEPS):
        lr = 0.1 / (i + 1)
        grads = gradients(model, i)
        plain = {
            path: (step(lr, array, grads[model.params()[path].id].numpy()), step)
            for path, (array, step) in plain.items()
        }
        model = optimizer.step(lr, model, grads)
        for path, (array, _) in plain.items():
            assert np.allclose(model.params()[path].value.numpy(), array, rtol=1e-12, atol=1e-14)
    for path, array in first.items():
        assert np.array_equal(before.params()[path].value.numpy(), array)


@pytest.mark.parametrize("name", sorted(RULES))
def test_configs_go_round(name: str) -> None:
    config = RULES[name][0]
    assert type(config).from_dict(config.to_dict()) == config


def test_rules_by_themselves() -> None:
    p, g = pt.asarray([1.0]), pt.asarray([0.5])
    new, state = optim.Sgd().step(0.1, p, g, None)
    assert new.tolist() == [0.95]
    assert state is None
    new, state = optim.AdamW().step(0.1, p, g, None)
    assert state is not None
    assert state["time"] == 1
    assert optim.Adam().step(0.1, p, g, None)[1] is not None


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("name", ["adam", "adamw", "sgd-momentum"])
def test_types_stay(name: str, dtype: str) -> None:
    model = Net(Param(pt.ones(2, dtype=dtype)), Param(pt.ones(1, dtype=dtype)))
    grads: Any = {p.id: pt.ones(p.shape, dtype=dtype) for p in model.params().values()}
    optimizer = RULES[name][0].init()
    for _ in range(3):
        model = optimizer.step(0.1, model, grads)
    assert {p.dtype.name for p in model.params().values()} == {dtype}


@pytest.mark.parametrize(
    ("config", "settings"),
    [
        (optim.SgdConfig, {"momentum": -0.1}),
        (optim.SgdConfig, {"nesterov": True}),
        (optim.SgdConfig, {"weight_decay": -1.0}),
        (optim.AdamConfig, {"beta_1": 1.0}),
        (optim.AdamConfig, {"beta_2": -0.1}),
        (optim.AdamWConfig, {"epsilon": -1.0}),
        (optim.AdamWConfig, {"weight_decay": -1.0}),
        (optim.ClipByGlobalNorm, {"threshold": 0.0}),
        (optim.ClipByNorm, {"threshold": -1.0}),
        (optim.ClipByValue, {"threshold": float("nan")}),
    ],
)
def test_settings_that_make_no_sense(config: Any, settings: dict[str, Any]) -> None:
    (*_, name) = settings
    with pytest.raises(ConfigError, match=rf"{config.__name__}\.{name} makes no sense: got"):
        config(**settings)


class Sign(optim.SimpleOptimizer):
    """A rule of a user, as in the guide."""

    def step(self, lr: float, tensor: Tensor, grad: Tensor, state: Any) -> Any:
        return tensor - lr * grad.sign(), state


def test_a_rule_of_a_user() -> None:
    model = Net(Param(pt.asarray([1.0, 2.0])), Param(pt.asarray([3.0])))
    grads: Any = {model.a.id: pt.asarray([5.0, -5.0]), model.b.id: pt.asarray([0.0])}
    model = optim.OptimizerAdaptor(Sign()).step(0.5, model, grads)
    assert (model.a.value.tolist(), model.b.value.tolist()) == ([0.5, 2.5], [3.0])


@pytest.mark.parametrize("name", sorted(RULES))
@pytest.mark.parametrize("recorder", RECORDERS, ids=lambda r: r.__name__)
def test_a_loaded_state_continues_bit_by_bit(recorder: Any, name: str, tmp_path: Path) -> None:
    config = RULES[name][0]
    optimizer = config.init()
    model = net()
    for i in range(3):
        model = optimizer.step(0.1, model, gradients(model, i))
    writer = recorder(record.DoublePrecision)
    tree = {"model": model.into_record(), "optimizer": optimizer.into_record(), "step": 3}
    path = writer.record(tree, tmp_path / "checkpoint")
    like = {
        "model": net().into_record(),
        "optimizer": config.init().into_record(),
        "step": 0,
    }
    loaded: Any = writer.load(path, like=like if recorder.needs_like else None)
    again = net().load_record(loaded["model"])
    resumed = config.init().load_record(loaded["optimizer"])
    assert loaded["step"] == 3
    for i in range(3, 6):
        model = optimizer.step(0.1, model, gradients(model, i))
        again = resumed.step(0.1, again, gradients(again, i))
    for path_, param in model.params().items():
        assert np.array_equal(again.params()[path_].value.numpy(), param.value.numpy())


class Halves(optim.GradientClipping):
    """A clipping of a user."""

    def clip(self, grads: list[Tensor]) -> list[Tensor]:
        return [g * 0.5 for g in grads]


def norm(arrays: list[Array]) -> float:
    return float(np.sqrt(sum((a**2).sum() for a in arrays)))


@pytest.mark.parametrize("threshold", [0.1, 1.0, 100.0])
def test_clipping_beside_the_formulas(threshold: float) -> None:
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=(3, 2)), rng.normal(size=5), np.zeros(2)]
    grads = [pt.asarray(a) for a in arrays]
    for got, a in zip(optim.ClipByValue(threshold).clip(grads), arrays, strict=True):
        assert np.allclose(got.numpy(), np.clip(a, -threshold, threshold))
    for got, a in zip(optim.ClipByNorm(threshold).clip(grads), arrays, strict=True):
        assert np.allclose(got.numpy(), a * min(1, threshold / (norm([a]) + 1e-6)))
    together = optim.ClipByGlobalNorm(threshold).clip(grads)
    factor = min(1, threshold / (norm(arrays) + 1e-6))
    for got, a in zip(together, arrays, strict=True):
        assert np.allclose(got.numpy(), a * factor)
    assert norm([g.numpy() for g in together]) <= max(threshold, 0) * (1 + 1e-12) or factor == 1
    assert optim.ClipByGlobalNorm(threshold).clip([]) == []


def test_norms_of_narrow_floats_do_not_overflow() -> None:
    grads = [pt.full(4, 300.0, dtype="float16")]
    for clipping in (optim.ClipByNorm(6.0), optim.ClipByGlobalNorm(6.0)):
        (out,) = clipping.clip(grads)
        assert out.dtype is pt.float16
        assert np.allclose(out.numpy(), 3.0, rtol=1e-2)


@pytest.mark.parametrize("joint", [False, True])
def test_gradients_of_several_types_are_clipped_as_of_one(joint: bool) -> None:
    kind = optim.ClipByGlobalNorm if joint else optim.ClipByNorm
    arrays = [np.full((2, 2), 3.0), np.full(5, -1.0)]
    alike = kind(1.5).clip([pt.asarray(a, dtype="float64") for a in arrays])
    mixed = [pt.asarray(arrays[0], dtype="float64"), pt.asarray(arrays[1], dtype="float32")]
    for got, want, given in zip(kind(1.5).clip(mixed), alike, mixed, strict=True):
        assert got.dtype is given.dtype
        assert np.allclose(got.numpy(), want.numpy(), rtol=1e-5)


def test_gradients_of_several_types_and_devices_are_clipped_in_range() -> None:
    wide, narrow = pt.asarray([3e25, 4e25], dtype="float32"), pt.ones(2, dtype="float16")
    beside = pt.asarray([0.0, 0.0, 1.2e26], dtype="float32", device=Listed(pt.Numpy()))
    got = optim.ClipByGlobalNorm(1.0).clip([narrow, wide])
    assert np.allclose(got[1].numpy(), [0.6, 0.8])
    assert (got[0].dtype, got[0].tolist()) == (pt.float16, [0.0, 0.0])
    for grads in ([wide, narrow, beside], [beside, wide, narrow]):
        found = optim.ClipByGlobalNorm(1.0).clip(grads)
        assert [(x.device, x.dtype) for x in found] == [(x.device, x.dtype) for x in grads]
        by_size = {x.shape[0]: x.numpy() for x in found if x.dtype is pt.float32}
        assert np.allclose(by_size[2], [3 / 13, 4 / 13])
        assert np.allclose(by_size[3], [0.0, 0.0, 12 / 13])


class Listed(pt.Decorator):
    """Notes the ops that run."""

    name = "listed"

    def __init__(self, backend: Any) -> None:
        super().__init__(backend, id(self))
        self.found: list[str] = []

    def decorate(self, op: pt.Op, inside: Any) -> Any:
        def run(*args: Any) -> Any:
            self.found.append(op.name)
            return inside(*args)

        return run


def test_norms_of_many_gradients_are_one_call() -> None:
    device = Listed(pt.Numpy())
    grads = [pt.ones(n, device=device) for n in range(1, 20)]
    device.found.clear()
    for clipping in (optim.ClipByNorm(1.5), optim.ClipByGlobalNorm(1.5)):
        clipping.clip(grads)
    assert device.found == ["clip_norms"] * 2


def test_clipping_in_a_step() -> None:
    for clipping, want in ((optim.ClipByValue(0.5), 0.5), (Halves(), 1.0)):
        model = Net(Param(pt.zeros(1)), Param(pt.zeros(1)))
        grads: Any = {p.id: pt.full(1, 2.0) for p in model.params().values()}
        out = optim.SgdConfig(grad_clipping=clipping).init().step(1.0, model, grads)
        assert out.a.value.tolist() == [-want]


def test_bases_say_what_is_missing() -> None:
    base: Any = optim.GradientClipping
    with pytest.raises(TypeError, match=r"abstract.*clip"):
        base()
    with pytest.raises(TypeError, match="OptimizerConfig belongs to no rule"):
        optim.OptimizerConfig().rule()


@pytest.mark.parametrize("name", sorted(RULES))
def test_a_step_over_a_list_is_that_of_each_tensor(name: str) -> None:
    rule = RULES[name][0].rule()
    tensors: list[Any] = [pt.random.normal(shape) for shape in ((3, 4), (5,), ())]
    each: list[Any] = [(tensor, None) for tensor in tensors]
    states: list[Any] = [None] * 3
    for _ in range(3):
        grads: list[Any] = [pt.random.normal((4, 3)).T, pt.ones(1).broadcast_to((5,)), pt.ones(())]
        tensors, states = rule.step_list(0.1, tensors, grads, states)
        each = [rule.step(0.1, x, g, state) for (x, state), g in zip(each, grads, strict=True)]
        for got, state, (want, wanted) in zip(tensors, states, each, strict=True):
            assert np.allclose(got.numpy(), want.numpy(), rtol=1e-14, atol=1e-15)
            assert (state or {}).keys() == (wanted or {}).keys()
            for key, value in (wanted or {}).items():
                assert np.allclose(np.asarray((state or {})[key]), np.asarray(value), rtol=1e-14)


def test_parameters_of_different_ages_step_together() -> None:
    optimizer, alone = optim.AdamConfig().init(), optim.AdamConfig().init()
    model = net()
    first = gradients(model, 0)
    del first[model.b.id]
    late = optimizer.step(0.1, optimizer.step(0.1, model, first), gradients(model, 1))
    only_b = {model.b.id: gradients(model, 1)[model.b.id]}
    assert np.array_equal(late.b.value.numpy(), alone.step(0.1, model, only_b).b.value.numpy())
    states: Any = optimizer.into_record()["states"]
    assert [states[p.id]["time"] for p in (model.a, model.b)] == [2, 1]


def test_a_gradient_of_another_type_becomes_that_of_the_parameter() -> None:
    model = Net(Param(pt.ones(2, dtype="float32")), Param(pt.ones(1, dtype="float32")))
    grads: Any = {p.id: pt.ones(p.shape, dtype="float64") for p in model.params().values()}
    for config in (optim.AdamConfig(), optim.SgdConfig(momentum=0.5)):
        optimizer = config.init()
        out = optimizer.step(0.1, optimizer.step(0.1, model, grads), grads)
        assert {p.dtype.name for p in out.params().values()} == {"float32"}


class SignConfig(optim.OptimizerConfig):
    """Settings of a rule outside the package."""

    factor: float = 0.5


class SignBySettings(optim.ConfiguredRule[SignConfig]):
    """Steps by the sign."""

    def step(self, lr: float, tensor: Any, grad: Any, state: Any) -> tuple[Any, Any]:
        return tensor - grad.sign() * (lr * self._config.factor), state


def test_a_rule_belongs_to_the_config_it_names() -> None:
    made = SignConfig(factor=2.0).rule()
    assert type(made) is SignBySettings
    one = pt.ones(2)
    assert made.step(0.1, one, one, None)[0].tolist() == pytest.approx([0.8, 0.8])
    assert SignBySettings().step(0.1, one, one, None)[0].tolist() == pytest.approx([0.95, 0.95])

    class LoneConfig(optim.OptimizerConfig):
        """Nobody's settings."""

    with pytest.raises(TypeError, match="LoneConfig belongs to no rule"):
        LoneConfig().init()


def test_a_rule_that_is_given_a_module_says_what_steps_modules() -> None:
    model: Any = nn.Linear(2, 1)
    rule: Any = optim.AdamW()
    with pytest.raises(pt.WrongTypeError, match="AdamW is the rule for one tensor") as caught:
        rule.step(0.1, model, {})
    assert caught.value.hint == "optim.AdamWConfig().init().step(lr, model, grads)"


@dataclass(slots=True)
class InSlots(optim.SimpleOptimizer):
    """A rule of a user that keeps its settings, and how often it ran, in slots."""

    factor: float = 0.5
    calls: int = 0

    def step(self, lr: float, tensor: Any, grad: Any, state: Any) -> tuple[Any, Any]:
        self.calls += 1
        return tensor - grad * (lr * self.factor), state


class Named(dict[str, float], optim.SimpleOptimizer):
    """A rule that is a dict of its settings."""

    def step(self, lr: float, tensor: Any, grad: Any, state: Any) -> tuple[Any, Any]:
        return tensor - grad * (lr * self["factor"]), state


@pytest.mark.parametrize("rule", [InSlots(), Named(factor=0.5)], ids=["slots", "dict"])
def test_a_rule_is_laid_out_as_its_author_wants(rule: Any) -> None:
    ones = [pt.ones(2), pt.ones(3)]
    for count in (2, 4):
        values, states = rule.step_list(0.1, ones, ones, [None, None])
        assert [x.tolist() for x in values] == [[0.95] * 2, [0.95] * 3]
        assert states == [None, None]
        assert getattr(rule, "calls", count) == count
    again = pickle.loads(pickle.dumps(rule))
    assert repr(again) == repr(rule)
